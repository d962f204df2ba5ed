"""A service as a container: from its image, as an unprivileged user, on a root file system that cannot be written to.

Blocking. The container ends with the context; what it said is kept in `logs` before.
"""

import logging
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
from testcontainers.core.network import Network

from containers.backing import Backing
from harness import eventually
from sluice_local.home import HOST

log = logging.getLogger(__name__)

HEALTH_PORT = 10100
INSTANCE = "under-test"
LIVES_S = 120.0
ENDS_S = 60.0
_ASK_S = 30.0


class Ended(msgspec.Struct, frozen=True):
    """How a container ended on SIGTERM: its status, and whether memory ran out."""

    status: int
    out_of_memory: bool


class ServiceContainer(Backing):
    """One instance of a service. `ports` are reached from here, beside the one of health.

    Nothing but /tmp can be written to, which has room for `scratch` and is counted as memory.
    """

    def __init__(
        self,
        image: str,
        network: Network,
        service: str,
        environment: dict[str, str],
        *,
        logs: Path,
        memory: str = "256m",
        ports: tuple[int, ...] = (),
        scratch: str = "64m",
    ) -> None:
        super().__init__(image, network, service, memory)
        self.service = service
        self.with_kwargs(
            **self._kwargs,
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=512,
        )
        self.with_tmpfs_mount("/tmp", f"exec,size={scratch},mode=1777")
        shared = {"SLUICE_HEALTH_PORT": str(HEALTH_PORT), "SLUICE_INSTANCE": INSTANCE}
        self.with_envs(**(shared | environment))
        self.with_exposed_ports(HEALTH_PORT, *ports)
        self._logs = logs

    @property
    def source(self) -> str:
        """How the instance names itself in what it writes."""
        return f"{self.service}/{INSTANCE}"

    def address(self, port: int) -> str:
        """`host:port` by which a port of the service is reached from here."""
        return f"{HOST}:{self.get_exposed_port(port)}"

    def get(self, path: str) -> httpx.Response:
        """What the HTTP interface for health answers."""
        return httpx.get(f"http://{self.address(HEALTH_PORT)}{path}", timeout=_ASK_S)

    def wait_ready(self, deadline_s: float = LIVES_S) -> None:
        """Return once the service calls itself ready; the error says what keeps it if it does not in time.

        Raises ContainerEndedError if it ends instead.
        """
        eventually(self._is_settled, deadline_s, f"{self.service} is ready")
        if self.status == "exited":
            raise ContainerEndedError(f"{self.service} has ended by itself:\n{self.tail()}")

    def _is_settled(self) -> bool:
        self.reload()
        if self.status == "exited":
            return True
        answer = self.get("/readyz")
        if answer.status_code != httpx.codes.OK:
            raise NotReadyError(answer.text)
        return True

    def users(self) -> set[str]:
        """The numbers of the users that its processes run as."""
        listed = cast(Any, self.get_wrapped_container()).top(ps_args="-eo pid,uid")
        column = [title.lower() for title in listed["Titles"]].index("uid")
        return {process[column] for process in listed["Processes"]}

    def setting(self, *path: str) -> Any:
        """A value of what the engine knows of the container."""
        value = cast(Any, self.get_wrapped_container()).attrs
        for name in path:
            value = value[name]
        return value

    def end(self) -> Ended:
        """Tell it to end (SIGTERM) and wait; after the time it may take it is killed, which shows in the status."""
        container = cast(Any, self.get_wrapped_container())
        container.stop(timeout=round(ENDS_S))
        self.reload()
        return Ended(self.setting("State", "ExitCode"), self.setting("State", "OOMKilled"))

    def start_again(self) -> None:
        """Start what has ended, and return once it is ready."""
        cast(Any, self.get_wrapped_container()).start()
        self.wait_ready()

    def tail(self, lines: int = 20) -> str:
        """The last lines of its log."""
        return "\n".join(b"".join(self.get_logs()).decode(errors="replace").splitlines()[-lines:])

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Remove the container; its log is kept in a file."""
        if self._container is not None:
            self._logs.mkdir(parents=True, exist_ok=True)
            (self._logs / f"{self.service}.log").write_bytes(b"".join(self.get_logs()))
        super().stop(force, delete_volume)


class NotReadyError(Exception):
    """The service says that it is not ready, and why."""


class ContainerEndedError(Exception):
    """The service has ended by itself."""
