"""`python -m bench.take_over`: Sluice takes the place of Pravega's own controller, and no client is started anew.

The original serves a cluster with streams of many epochs, open transactions, and groups in the middle of reading.
Beside that Java's client, PyPI's and ours write, commit and read all the while. All know one address, which leads to
Sluice's gateway as soon as the original is to go. How long each client was silent is printed.

What has to hold: all questions about streams and groups that rest are answered as before; every acknowledged event is
read once, in the order of its key; every transaction ends as its writer was told; `sluice verify` finds nothing, also
when Sluice has scaled, rolled and truncated streams. An original that is killed is so in the middle of all of that.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from integration.test_java_client import LOG_OPTIONS, build
from support.client_process import ClientProcess, our_client
from support.controller import Controller, controller, unique
from support.ports import free_ports
from support.pravega import check_exactly_once
from support.reader import ReaderProcess
from support.secured_system import Secured
from support.txn_traffic import TxnTraffic
from support.writer import WriterProcess
from support.writing_process import longest_silence

from bench import original_life, secured
from bench.balancer import Balancer
from bench.original_life import Begun, Life
from bench.peer import PeerController
from bench.resting import Resting, Size
from bench.systems import SERVICES, Say
from harness import System, eventually
from harness.system import claimed_ports
from sluice.addresses import host_and_port
from sluice.domain.host import Host
from sluice.pravega.container_map import CONTAINER_MAP_NODE, decode_container_map
from sluice.security.folder import File
from sluice_cli.migration.raw import Nodes
from sluice_cli.session import open_zookeeper
from sluice_client import Access, open_client
from sluice_local import jars, java
from sluice_local.settings import LocalSettings

LARGE = Size(streams=1000, epochs=5000, groups=20, transactions=200)
_PARTS = ("zookeeper", "bookie", "segment-store-0", "segment-store-1", "kafka", "redis")
_DEADLINE_S = 180.0
_COMMAND_S = 600.0
_KILLED_WITHIN_S = 1.0
_SLUICE = (str(Path(sys.executable).with_name("sluice")),)
_OF_ORIGINAL = 1 << 32
"""No id of a transaction of the original comes so far."""


class Original:
    """Pravega's own controller on a data plane of its own, beside an empty Kafka. `uri` leads to who serves."""

    def __init__(self, system: System, peer: PeerController, balancer: Balancer) -> None:
        self.system, self.peer = system, peer
        self._balancer = balancer
        self.address = self._published(host_and_port(balancer.address)[1])
        self.uri = self._uri(self.address)

    @property
    def uri_of_sluice(self) -> str:
        return self._uri(self._published(self.system.settings.grpc_port))

    @property
    def java_options(self) -> Sequence[str]:
        """What Java needs to trust it."""
        settings = self.system.settings
        return [f"-Djavax.net.ssl.trustStore={settings.security_dir / File.TRUST_STORE}"] if settings.secure else []

    def _published(self, port: int) -> str:
        return self.system.settings.published(port)

    def _uri(self, address: str) -> str:
        return f"{'tls' if self.system.settings.secure else 'tcp'}://{address}"

    def sluice(self, *words: object, may_differ: bool = False) -> str:
        """What a command prints; it must end with 0, or may with 1."""
        command = [*_SLUICE, *map(str, words)]
        found = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=_COMMAND_S)
        assert found.returncode in (0, int(may_differ)), f"{words}: {found.returncode} {found.stdout}{found.stderr}"
        return found.stdout

    def verify(self, say: Say) -> None:
        """Journal and stores agree, but for transactions of the original, whose ids count from 0; ours begin anywhere.

        A client that writes to one while it is aborted may have a store keep a segment of it; that is removed. And of
        one that was being created when the original was killed, no store has segments: no client knows of it, and it
        is aborted when its lease has run out.
        """
        found = self._left()
        if found:
            say(f"left by the original: {found}")
            self.sluice("verify", "--repair", may_differ=True)
            assert {problem for problem, _ in self._left()} <= {"missing"}

    def _left(self) -> list[tuple[str, str]]:
        """What is not as the journal says, with the segments."""
        *found, _ = map(json.loads, self.sluice("verify", "--json", may_differ=True).splitlines())
        findings = [one for one in found if one["type"] == "finding"]
        for one in findings:
            number = int(one["segment"].partition("#transaction.")[2][-24:] or "f" * 24, 16)
            is_unmade = (one["problem"], one["journal"]) == ("missing", "of an open transaction")
            assert number < _OF_ORIGINAL and (is_unmade or one["problem"] == "left-over"), one
        return [(one["problem"], one["segment"]) for one in findings]

    def cut_over(self, dump: Path, end: Callable[[], None], say: Say) -> float:
        """Put Sluice in its place; the monotonic time at which the original was ended, which `end` does."""
        settings, began = self.system.settings, 0.0
        words = ("migrate", "cut-over", dump, "--partitions", settings.partitions, "--controller", self.uri)
        command = [*_SLUICE, *map(str, words)]
        with open_zookeeper(self.system.zookeeper, settings.cluster_name) as nodes:
            placed = _placed(nodes)
            with subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True) as cut_over:
                assert cut_over.stdout is not None
                for line in cut_over.stdout:
                    say(f"{time.monotonic() - began if began else 0:5.1f} s: {line.rstrip()}")
                    if "3 of 6" in line:
                        for service in SERVICES:
                            self.system.start(service, wait=False)
                        self.system.wait_ready("api-gateway-0", _DEADLINE_S)
                        self._balancer.lead_to([self.system.grpc_address])
                        began = time.monotonic()
                        end()
            assert cut_over.returncode == 0
            for service in SERVICES:
                self.system.wait_ready(service, _DEADLINE_S)
            say(f"{time.monotonic() - began:5.1f} s: Sluice serves")
            assert _placed(nodes) == placed, "no container has moved"
        return began

    @property
    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "SLUICE_API": self.system.rest_url,
            "SLUICE_KAFKA_BOOTSTRAP": self.system.kafka_bootstrap,
            "SLUICE_ZOOKEEPER": self.system.zookeeper,
            "SLUICE_CLUSTER_NAME": self.system.settings.cluster_name,
        }


class Clients:
    """Those that never rest. As a context they are gone after."""

    def __init__(self, cluster: Original, gateway: Controller) -> None:
        uri, options = cluster.uri, (*java.SHORT_LIVED, *LOG_OPTIONS, *cluster.java_options)
        classpath = build(LocalSettings().home / "java-client")
        command = [java.executable(), *options, "-cp", classpath, "io.sluice.client.ClientPeer", uri]
        scope = unique("pypi")
        assert gateway.create_scope(scope) == "SUCCESS" and gateway.create_stream(scope, "st", 2) == "SUCCESS"
        self._gateway = gateway
        self._pypi = scope, "st"
        self._opened = ExitStack()
        enter = self._opened.enter_context
        try:
            self._peers = [
                enter(ClientProcess(gateway, "java", command)),
                enter(ClientProcess(gateway, "ours", our_client(uri))),
            ]
            self._writer = enter(WriterProcess(uri, *self._pypi, "a"))
            self._reader = enter(ReaderProcess(uri, *self._pypi))
            self._traffic = enter(TxnTraffic(gateway, uri, 1, cluster.uri_of_sluice))
        except BaseException:
            self._opened.close()
            raise

    def __enter__(self) -> "Clients":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def go_on(self) -> None:
        """All of them write, commit and read more."""
        for peer in self._peers:
            peer.goes_on()
        written, read = self._writer.acknowledged, len(self._reader.events)
        eventually(lambda: self._writer.acknowledged > written + 5, _DEADLINE_S, f"PyPI's writer goes on at {written}")
        eventually(lambda: len(self._reader.events) > read + 5, _DEADLINE_S, f"PyPI's reader goes on at {read}")
        self._traffic.goes_on()

    def scale(self) -> None:
        """Replace the segments of all streams, so that all of them need a controller."""
        for peer in self._peers:
            peer.scale(self._gateway, 3)
        self._traffic.scale()

    def silences(self, since: float) -> dict[str, float]:
        """The longest of each, in s, that ended behind a monotonic time."""
        found = {f"{peer.name} {kind}": s for peer in self._peers for kind, s in peer.silences(since).items()}
        pypi = {"wrote": self._writer, "read": self._reader, "committed": self._traffic.writers[0]}
        return found | {f"pypi {kind}": longest_silence(process.said_at, since) for kind, process in pypi.items()}

    async def end_exactly_once(self) -> dict[str, Any]:
        """All end; all that was acknowledged was read once. Returns how far they came."""
        for peer in self._peers:
            await asyncio.to_thread(peer.ends_exactly_once)
        self._writer.stop()
        written = {"a": await asyncio.to_thread(self._writer.finish, _DEADLINE_S)}
        await asyncio.to_thread(
            eventually, lambda: len(self._reader.events) >= written["a"], _DEADLINE_S, "PyPI's reader has read all"
        )
        check_exactly_once(list(self._reader.events), written)
        outcomes = await self._traffic.ends_exactly_once(_DEADLINE_S)
        return {**{peer.name: peer.progress() for peer in self._peers}, "pypi": {**written, **outcomes}}


def _placed(nodes: Nodes) -> Mapping[Host, frozenset[int]]:
    """The containers of each segment store."""
    found = nodes.get(CONTAINER_MAP_NODE)
    assert found is not None
    return decode_container_map(found[0])


@contextmanager
def original(home: Path, secure: bool) -> Iterator[Original]:
    """It is up inside, and everything is gone after."""
    system = System(home, segment_stores=2, secure=secure)
    settings = system.settings
    secured.become_admin(settings)
    jars.fetch_besides(jars.PEER, settings.jars_dir, print)
    grpc_port, rest_port = free_ports(2, claimed_ports(settings))
    peer = PeerController(settings.model_copy(update={"grpc_port": grpc_port, "rest_port": rest_port}))
    try:
        for part in _PARTS:
            system.start(part)
        with peer, Balancer([peer.address]) as balancer, ExitStack() as user:
            if secure:
                # Java's client and PyPI's have variables of their own.
                known = Secured(system)
                user.enter_context(known.as_user("admin"))
                os.environ |= known.java_environment("admin")
            peer.start()
            yield Original(system, peer, balancer)
    finally:
        system.down()


async def take_over(cluster: Original, size: Size, is_killed: bool, folder: Path, say: Say) -> None:
    """All of it; who is killed is so while it scales. Raises AssertionError if something does not hold."""
    with controller(cluster.uri) as gateway:
        async with open_client(cluster.uri, access=Access.of_environment()) as client:
            resting = Resting(client, size)
            await resting.grow_up(say)
            before = await resting.answers()
            say("all is asked")
            with await asyncio.to_thread(Clients, cluster, gateway) as clients:
                await asyncio.to_thread(clients.go_on)
                await asyncio.to_thread(clients.scale)
                await asyncio.to_thread(clients.go_on)
                dump = folder / "dump"
                if is_killed:
                    began = await asyncio.to_thread(_killed, cluster, clients, dump, say)
                else:
                    began = await asyncio.to_thread(cluster.cut_over, dump, cluster.peer.stop, say)
                await asyncio.to_thread(clients.go_on)
                for name, silence_s in clients.silences(began).items():
                    say(f"longest silence of {name}: {silence_s:.1f} s")
                assert await resting.answers() == before
                say("all is answered as before")
                await asyncio.to_thread(cluster.sluice, "verify", "--scope", resting.scope)
                await asyncio.to_thread(clients.scale)
                await asyncio.to_thread(clients.go_on)
                await resting.end_exactly_once()
                await resting.live_on()
                say(f"read once: {await clients.end_exactly_once()}")
            await asyncio.to_thread(cluster.verify, say)


def _killed(cluster: Original, clients: Clients, dump: Path, say: Say) -> float:
    """See `Original.cut_over`. It dies while it scales, truncates, commits and aborts; all that ends."""
    at_first, later = Life(cluster.peer.address), Life(cluster.address)
    with closing(at_first), closing(later), ThreadPoolExecutor() as aside:
        original_life.grow_up(at_first, cluster.system)
        calls = original_life.last_calls(at_first)
        begun: list[Begun] = []
        scaled: list[Future[None]] = []

        def kill() -> None:
            scaled.append(aside.submit(clients.scale))
            begun.extend(original_life.begin_all(at_first, calls))
            time.sleep(random.uniform(0.0, _KILLED_WITHIN_S))
            cluster.peer.kill()

        began = cluster.cut_over(dump, kill, say)
        for one in scaled:
            one.result()
        say(f"answered before it was killed: {dict(original_life.come_to_the_end(later, begun))} of {len(begun)}")
    return began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in LARGE._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    parser.add_argument("--secure", action="store_true", help="with TLS, users and tokens everywhere")
    parser.add_argument("--kill", action="store_true", help="the original, while it scales")
    given = vars(parser.parse_args())
    secure, is_killed, began = given.pop("secure"), given.pop("kill"), time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory() as folder, original(Path(folder) / "system", secure) as cluster:
        say("the original serves")
        asyncio.run(take_over(cluster, Size(**given), is_killed, Path(folder), say))


if __name__ == "__main__":
    main()
