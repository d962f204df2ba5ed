"""A private system of real processes for a test: ports of its own, a folder of its own, gone when the test ends.

It is the library behind `make run` with other ports, so that what the tests see is what a user runs. All processes end
with the process of the test runner, even if that is killed.

Concurrency: methods block; call them through `asyncio.to_thread` where a loop must go on. Two calls about the same
process must not overlap.
"""

import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.ports import free_ports
from support.processes import stands_still
from support.wait import eventually

from harness.links import GONE, LOSSY, SLOW, Links
from harness.relay import WELL, Way
from harness.routes import CLIENT, is_called, join
from sluice_local import java, kafka
from sluice_local.home import HOST
from sluice_local.part import Part
from sluice_local.parts import parts_of
from sluice_local.services import SERVICES
from sluice_local.settings import LocalSettings
from sluice_local.system import System as LocalSystem

_FREEZES_S = 60.0
_STARTS_S, _STOPS_S = 180.0, 60.0
Fault = Callable[[], AbstractContextManager[None]]
_SINGLE_PORTS = ("redis_port", "zookeeper_port", "bookie_port")


class System:
    """One private system. As a context it is up inside and gone after.

    `links` are pairs of a client and a server whose network may break: each a process or all of a kind, and `client`
    for whatever calls a gateway at its `grpc_address`.

    Processes are named as the parts are: `kafka`, `zookeeper`, `bookie`, `redis`, `segment-store-0`, `api-gateway-0`,
    `stream-workflows-0`, `cluster-manager-0`, `txn-manager-0`, `retention-spark-0`, and so on.
    """

    def __init__(
        self,
        home: Path,
        *,
        kafka_brokers: int = 1,
        segment_stores: int = 2,
        api_gateways: int = 1,
        stream_workflows: int = 1,
        cluster_managers: int = 1,
        txn_managers: int = 1,
        retention_sparks: int = 0,
        keep_logs: bool = True,
        links: Iterable[tuple[str, str]] = (),
        **settings: Any,
    ) -> None:
        counts = {
            "kafka_brokers": kafka_brokers,
            "segment_stores": segment_stores,
            "api_gateways": api_gateways,
            "stream_workflows": stream_workflows,
            "cluster_managers": cluster_managers,
            "txn_managers": txn_managers,
            "retention_sparks": retention_sparks,
        }
        times = {"start_timeout_s": _STARTS_S, "stop_timeout_s": _STOPS_S}
        shared = {"home": home, "jars": LocalSettings().jars_dir, **times}
        self.settings = LocalSettings(**{**shared, **counts, **_free_ports(counts), **settings})
        self._keep_logs = keep_logs
        self._local = LocalSystem(self.settings)
        self._links = Links()
        self._pairs: list[tuple[str, str]] = []
        for client, server in links:
            self._join(client, server)

    # --- all processes

    def up(self) -> Self:
        """Start every process that does not run and wait until all are ready."""
        self._local.start()
        return self

    def change(self, **settings: Any) -> None:
        """End every process; the next `up` starts those of the changed settings, on the same data and ports."""
        self._local.close()
        self.settings = self.settings.model_copy(update=settings)
        self._local = LocalSystem(self.settings)

    def down(self) -> None:
        """End every process and remove the data; the logs stay."""
        self._local.close()
        self._links.close()
        shutil.rmtree(self.settings.data_dir, ignore_errors=True)
        if not self._keep_logs:
            shutil.rmtree(self.settings.home, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.up()
        except BaseException:
            self.down()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    # --- one process

    @property
    def names(self) -> list[str]:
        """The names of all processes."""
        return list(self._local.parts)

    def start(
        self,
        name: str,
        *,
        wait: bool = True,
        deadline_s: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process that does not run, and wait until it is ready; `environment` is added for this once."""
        part = self._local.parts[name]
        self._local.parts[name] = replace(part, environment={**part.environment, **(environment or {})})
        try:
            self._local.start_part(name)
        finally:
            self._local.parts[name] = part
        if wait:
            self.wait_ready(name, deadline_s)

    def configure(self, name: str, environment: Mapping[str, str]) -> None:
        """Have a process start with these variables, besides the usual ones or in their place."""
        part = self._local.parts[name]
        self._local.parts[name] = replace(part, environment={**part.environment, **environment})

    def add(self, part: Part) -> None:
        """Have one process more."""
        self._local.parts[part.name] = part

    def environment(self, name: str) -> Mapping[str, str]:
        """The variables that a process starts with, besides those of this one."""
        return self._local.parts[name].environment

    def configure_kafka(self, changes: Mapping[str, str | int | bool], log4j: str = "") -> None:
        """Have the broker start with these settings of its own, besides the usual ones or in their place.

        `log4j` is more of what it logs, as properties.
        """
        part = self._local.parts[kafka.NAME]
        properties = java.properties({**kafka.server_properties(self.settings), **changes})
        files = {
            path: properties if path.name == "server.properties" else text + log4j for path, text in part.files.items()
        }
        self._local.parts[kafka.NAME] = replace(part, files=files)

    def stop(self, name: str) -> None:
        """End a process gently (SIGTERM), or by force after the stop time-out."""
        self._local.stop_part(name)

    def kill(self, name: str) -> None:
        """End a process by force (kill -9); it is gone on return."""
        self._local.signal_part(name, signal.SIGKILL)

    def freeze(self, name: str) -> None:
        """Have a process stand still (SIGSTOP); every thread of it does on return."""
        self._local.signal_part(name, signal.SIGSTOP)
        eventually(lambda: stands_still(self.pid(name)), _FREEZES_S, f"{name} stands still")

    def thaw(self, name: str) -> None:
        """Have a frozen process go on (SIGCONT)."""
        self._local.signal_part(name, signal.SIGCONT)

    def restart(self, name: str, *, wait: bool = True, deadline_s: float | None = None) -> None:
        """End a process gently, if it runs, and start it again."""
        self._local.stop_part(name)
        self.start(name, wait=wait, deadline_s=deadline_s)

    def wait_ready(self, name: str, deadline_s: float | None = None) -> None:
        """Wait until a process is ready; raise PartFailed, with the end of its log, if it is not in time."""
        self._local.wait_ready(name, deadline_s)

    def is_running(self, name: str) -> bool:
        """Whether the process exists; ready or not, frozen or not."""
        return self._local.is_running(name)

    def is_ready(self, name: str) -> bool:
        """Whether the process says that it is ready, now."""
        return self.is_running(name) and self._local.parts[name].probe.look().ready

    def wait_ended(self, name: str, deadline_s: float) -> bool:
        """Wait for the end of a process that another one ends; return whether it has come."""
        return self._local.child(name).wait(deadline_s)

    def exit_code(self, name: str) -> int | None:
        """How the process ended: None while it runs, negative if a signal ended it."""
        return self._local.child(name).exit_code

    def pid(self, name: str) -> int:
        """The number of the process that runs, or ran last."""
        return self._local.child(name).pid

    # --- faults, each of which is over when its context is left

    @property
    def faults(self) -> dict[str, Fault]:
        """Each process killed and frozen; what links it to servers of a kind cut, one-way, slow, lossy; by name."""
        found: dict[str, Fault] = {}
        for name in self.names:
            found[f"{name} killed"] = partial(self.killed, name)
            found[f"{name} frozen"] = partial(self.frozen, name)
        for ends in self._pairs:
            for what, fault in (("cut", self.cut), ("slow", self.slow), ("lossy", self.lossy)):
                found[f"{'->'.join(ends)} {what}"] = partial(fault, *ends)
            for speaker, listener in (ends, ends[::-1]):
                found[f"{speaker}->{listener} unheard"] = partial(self.one_way, speaker, listener)
        return found

    @contextmanager
    def killed(self, name: str) -> Iterator[None]:
        """A process is away, and ready again after."""
        self.kill(name)
        try:
            yield
        finally:
            self.start(name)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """A process stands still."""
        try:
            self.freeze(name)
            yield
        finally:
            self.thaw(name)

    def cut(self, one: str, other: str) -> AbstractContextManager[None]:
        """Nothing comes through between two, which do not notice. Each is a process or all of a kind, such as `kafka`.

        Needs a link between them, as `slow` and the others do.
        """
        return self._network(one, other, GONE, GONE)

    def one_way(self, speaker: str, listener: str) -> AbstractContextManager[None]:
        """Nothing of what the one sends reaches the other."""
        return self._network(speaker, listener, GONE, WELL)

    def slow(self, one: str, other: str) -> AbstractContextManager[None]:
        """Everything takes longer between two."""
        return self._network(one, other, SLOW, SLOW)

    def lossy(self, one: str, other: str) -> AbstractContextManager[None]:
        """Packets are lost between two, and come at the second or third try."""
        return self._network(one, other, LOSSY, LOSSY)

    @contextmanager
    def _network(self, one: str, other: str, there: Way, back: Way) -> Iterator[None]:
        ones, others = (
            {end for link in self._links.all for end in (link.client, link.server) if is_called(end, name)}
            for name in (one, other)
        )
        try:
            self._links.set(ones, others, there)
            self._links.set(others, ones, back)
            yield
        finally:
            self._links.set(ones, others, WELL)
            self._links.set(others, ones, WELL)

    def _join(self, client: str, server: str) -> None:
        for one in [name for name in self.names if is_called(name, client)] or [client]:
            self._pairs.append((one, server))
            for other in [name for name in self.names if is_called(name, server)]:
                join(self._links, self._local.parts, one, other, self._free_port)

    def _free_port(self) -> int:
        taken = [*claimed_ports(self.settings), *(link.target_port for link in self._links.all)]
        return free_ports(1, taken).start

    # --- addresses

    @property
    def kafka_bootstrap(self) -> str:
        """Kafka's bootstrap servers."""
        return self.settings.kafka_address

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's connect string."""
        return self.settings.zookeeper_address

    @property
    def redis_url(self) -> str:
        """The URL of Redis."""
        return self.settings.redis_address

    @property
    def grpc_addresses(self) -> list[str]:
        """`host:port` of every api-gateway, for gRPC; by its link, if `client` has one."""
        ports = range(self.settings.grpc_port, self.settings.grpc_port + self.settings.api_gateways)
        linked = {link.port: link.address for link in self._links.all if link.client == CLIENT}
        return [linked.get(port, f"{HOST}:{port}") for port in ports]

    @property
    def grpc_address(self) -> str:
        """`host:port` of the first api-gateway, for gRPC."""
        return self.grpc_addresses[0]

    @property
    def rest_urls(self) -> list[str]:
        """The REST base URL of every api-gateway."""
        scheme = "https" if self.settings.secure else "http"
        ports = range(self.settings.rest_port, self.settings.rest_port + self.settings.api_gateways)
        return [f"{scheme}://{self.settings.published(port)}" for port in ports]

    @property
    def rest_url(self) -> str:
        """The REST base URL of the first api-gateway."""
        return self.rest_urls[0]

    @property
    def page_url(self) -> str:
        """The address of the page, as the first api-gateway shows it to browsers."""
        scheme = "https" if self.settings.secure else "http"
        return f"{scheme}://{HOST}:{self.settings.page_port}/ui/"

    @property
    def segment_store_addresses(self) -> list[str]:
        """`host:port` of every segment store."""
        return [self.address(name) for name in self.names if name.startswith("segment-store-")]

    def health_url(self, name: str) -> str:
        """Base URL of a service's /livez, /readyz and /metrics."""
        return f"http://{HOST}:{self._local.parts[name].environment['SLUICE_HEALTH_PORT']}"

    def address(self, name: str) -> str:
        """Where a process is reached, for people; see the other properties for addresses to connect to."""
        return self._local.parts[name].address

    def log(self, name: str) -> Path:
        """The log file of a process."""
        return self._local.parts[name].log


def _free_ports(counts: dict[str, int]) -> dict[str, int]:
    """Choose ports for everything in one free block."""
    services = sum(counts[service.count_field] for service in SERVICES)
    sizes = dict.fromkeys(_SINGLE_PORTS, 1) | {
        "kafka_port": 2 * counts["kafka_brokers"],
        "kafka_controller_port": 2 * counts["kafka_brokers"],
        "segment_store_port": counts["segment_stores"],
        "grpc_port": counts["api_gateways"],
        "rest_port": counts["api_gateways"],
        "page_port": counts["api_gateways"],
        "health_port": services,
    }
    port = free_ports(sum(max(1, size) for size in sizes.values())).start
    chosen = {}
    for name, size in sizes.items():
        chosen[name] = port
        port += max(1, size)
    return chosen


def claimed_ports(settings: LocalSettings) -> Iterable[int]:
    """Return every port that a system with these settings listens on."""
    return [claim.port for part in parts_of(settings) for claim in part.claims]
