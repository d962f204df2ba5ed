"""A cut-over from an original in memory into a journal in memory. Servers where controllers listen are real ones."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from grpc_health.v1 import health, health_pb2_grpc
from support.certificates import Authority, Pair
from unit.cli.conftest import Cli, Run
from unit.cli.memory import MemorySource
from unit.migration.original import CONTROLLER, REQUESTS_CREATED, RIGHT, SCOPE, MemoryNodes, Original, T, id_of, orders

from sluice.domain.model import decode_record
from sluice.domain.segment import segment_name
from sluice.engine.record import HELD
from sluice.kafka.topics import JOURNAL
from sluice.pravega.container_map import Controller, encode_host
from sluice_cli.errors import UnreachableError
from sluice_cli.migration import fences, tables
from sluice_cli.migration.dump import Dump
from sluice_cli.records.holding import Stage, stage

ANSWERS_NOT = "no gateway of Sluice answers at"
SOON_S = 60
"""How long a slow machine may take until a server here answers."""


@contextmanager
def server(port: int, *, is_sluice: bool, tls: Pair | None = None) -> Iterator[None]:
    """A server of gRPC; one of Sluice's has the health service."""
    found = grpc.server(ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    if is_sluice:
        health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), found)
    if tls is None:
        found.add_insecure_port(f"127.0.0.1:{port}")
    else:
        shown = (tls.key.read_bytes(), tls.certificate.read_bytes())
        found.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([shown]))
    found.start()
    try:
        yield
    finally:
        found.stop(None).wait()


class System:
    """An original that is to be taken over, and where its controller listens: the same as Sluice's gateway."""

    def __init__(self, cli: Cli, original: Original, source: MemorySource, folder: Path) -> None:
        self._cli = cli
        self.original = original
        self.source = source
        self.folder = folder
        # Held, and not listening: no other process is given it, and a server of the test can listen there all the same.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port: int = self._held.getsockname()[1]
        original.nodes.all[CONTROLLER] = encode_host(Controller("127.0.0.1", self.port, "one"))

    def close(self) -> None:
        self._held.close()

    def cut_over(self, *options: object, clients_call: str = "tcp://127.0.0.1", wait_s: int = 0) -> Run:
        at = ("--zookeeper", "zk:2181", "--cluster", "theirs", "--controller", f"{clients_call}:{self.port}")
        return self._cli("migrate", "cut-over", self.folder, "--partitions", 3, *at, "--wait", wait_s, *options)

    def stop_original(self) -> None:
        del self.original.nodes.all[CONTROLLER]

    @property
    def records(self) -> list[int]:
        """What each record of the journal says of where it is whole."""
        return [decode_record(record.value or b"").whole_at for log in self.source.logs[JOURNAL.name] for record in log]


@pytest.fixture
def system(
    cli: Cli, original: Original, source: MemorySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[System]:
    monkeypatch.setattr(fences, "ANSWER_S", SOON_S)
    with closing(System(cli, original, source, tmp_path / "dump")) as found:
        yield found


def test_a_cut_over_that_is_run_again_goes_on_until_services_begin(system: System) -> None:
    with server(system.port, is_sluice=False):
        refused = system.cut_over()
        assert refused.code == 1 and "controller one is registered" in refused.err
        assert "1 of 6, look: " in refused.out and "3 of 6, stop: " in refused.out and "4 of 6" not in refused.out
        assert system.records == [HELD] * 3 and Dump(system.folder).names()
        system.stop_original()
        refused = system.cut_over()
        assert refused.code == 1 and f"127.0.0.1:{system.port} answers, where" in refused.err
        assert "is registered" not in refused.err and system.records == [HELD] * 3
    assert ANSWERS_NOT in system.cut_over().err
    with server(system.port, is_sluice=True):
        done = system.cut_over(wait_s=SOON_S)
        assert done.code == 0 and "1 of 6" not in done.out and "it was held already" in done.out
        assert "The journal has what the original knew" in done.out and "services begin now" in done.out
        released = system.records
        assert len(released) > 6 and released.count(0) > 3
    for options in ((), ("--dry-run",)):
        refused = system.cut_over(*options)
        assert refused.code == 1 and "it was released already" in refused.err and "1 of 6" not in refused.out
    assert system.records == released


def test_a_release_that_was_broken_off_goes_on(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    system.stop_original()
    append = system.source.append

    def breaks_off(*arguments: Any) -> Any:
        if stage(system.source) is Stage.RELEASING:
            raise UnreachableError("Kafka is away", "")
        return append(*arguments)

    with server(system.port, is_sluice=True), monkeypatch.context() as patch:
        patch.setattr(system.source, "append", breaks_off)
        assert "Kafka is away" in system.cut_over(wait_s=SOON_S).err and stage(system.source) is Stage.RELEASING
    rehearsed = system.cut_over("--dry-run")
    assert rehearsed.code == 0 and rehearsed.out.count("was done") == 5
    done = system.cut_over("--json")
    assert done.code == 0 and [line["name"] for line in done.lines] == ["release", "release"]
    assert stage(system.source) is Stage.RELEASED


def test_a_dry_run_says_what_stands_in_the_way_and_does_nothing(system: System) -> None:
    found = system.cut_over("--dry-run", "--json")
    assert found.code == 0 and [line["name"] for line in found.lines if "does" in line] == [
        *("look", "hold", "stop", "read", "import", "release")
    ]
    assert [line["says"] for line in found.lines if line.get("name") == "stop" and "says" in line] == [
        "in the way: the original's controller one is registered",
        f"in the way: {ANSWERS_NOT} tcp://127.0.0.1:{system.port}, where clients call",
    ]
    asyncio.run(system.original.store.delete_segment(segment_name(SCOPE, "orders", RIGHT.id)))
    found = system.cut_over("--dry-run")
    assert found.code == 1 and f"in the way: stream shop/orders: segment {RIGHT.id} is missing" in found.out
    assert system.records == [] and not system.folder.exists()


def test_without_a_way_back_the_first_and_the_last_step_say_so(system: System) -> None:
    system.original.nodes.all[REQUESTS_CREATED] = T.to_bytes(8)
    found = system.cut_over("--dry-run", "--json")
    assert [line["name"] for line in found.lines if "there is no way back" in line.get("back", "")] == [
        *("look", "release")
    ]


def test_what_cannot_be_brought_along_is_refused_before_anything_is_made(system: System) -> None:
    asyncio.run(system.original.put_stream("orders", msgspec.structs.replace(orders(), current_epoch=7)))
    refused = system.cut_over()
    assert refused.code == 1 and "stream shop/orders: " in refused.err and system.records == []
    system.stop_original()
    with server(system.port, is_sluice=True):
        refused = system.cut_over(wait_s=SOON_S)
        assert refused.code == 1 and "4 of 6" in refused.out and system.records == [HELD] * 3
        assert system.cut_over("--except", "stream shop/orders", wait_s=SOON_S).code == 0


def test_an_entry_that_cannot_be_read_is_left_out_with_its_thing_alone(system: System) -> None:
    metadata = tables.of_stream("metadata", SCOPE, "orders", id_of("orders"))
    asyncio.run(system.original.put_values(metadata, {"state": b"\0"}))
    refused = system.cut_over("--except", "table shop/stock")
    assert refused.code == 1 and "stream shop/orders: state: " in refused.err and system.records == []
    assert "controller one is registered" in system.cut_over("--except", "stream shop/orders").err


def test_with_tls_a_gateway_is_known_by_the_name_that_clients_use(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system.cut_over().code == 1
    system.stop_original()
    authority = Authority(tmp_path)
    monkeypatch.setenv("SLUICE_CA", str(authority.file))
    with server(system.port, is_sluice=True, tls=authority.issue("gateway", "DNS:localhost")):
        assert "answers, where" in system.cut_over().err
        assert system.cut_over(clients_call="tls://localhost", wait_s=SOON_S).code == 0


class Counting(MemoryNodes):
    """Somebody goes on to give ids of transactions."""

    def get(self, path: str) -> Any:
        if path == "counter":
            self.all[path] = (int.from_bytes(self.all[path]) + 1).to_bytes(12)
        return super().get(path)


def test_an_original_that_goes_on_to_change_is_not_imported(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    system.stop_original()
    monkeypatch.setattr(system.original, "nodes", Counting(system.original.nodes.all))
    with server(system.port, is_sluice=True):
        refused = system.cut_over(wait_s=SOON_S)
    assert refused.code == 1 and "changed between its last two readings" in refused.err
    assert system.records == [HELD] * 3


def test_segments_are_asked_for_once_unless_the_original_goes_on_to_change_their_stream(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: Counter[str] = Counter()

    class Leaving(MemoryNodes):
        """The last controller changes a stream and ends when it was looked at."""

        def children(self, path: str) -> list[str]:
            if system.records and self.all.pop(CONTROLLER, None) is not None:
                changed = msgspec.structs.replace(orders(), cold_until={RIGHT.id: T})
                with ThreadPoolExecutor(1) as aside:
                    aside.submit(asyncio.run, system.original.put_stream("orders", changed)).result()
            return super().children(path)

    def ask(moment: str, request: str, name: str) -> None:
        questions[name] += moment == "before" and request == "GetStreamSegmentInfo"

    monkeypatch.setattr(system.original, "nodes", Leaving(system.original.nodes.all))
    system.original.store.fault = ask
    with server(system.port, is_sluice=True):
        done = system.cut_over(wait_s=SOON_S)
    assert done.code == 0 and "1 of 6" in done.out and "6 of 6" in done.out
    assert questions[segment_name(SCOPE, "orders", RIGHT.id)] == 2 and questions[segment_name(SCOPE, "_RGtill", 0)] == 1


def test_a_controller_that_comes_back_before_the_release_stops_it(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.stop_original()

    class ComingBack(MemoryNodes):
        """A controller registers when what was imported has been compared, but for the tables."""

        def get(self, path: str) -> Any:
            if path == REQUESTS_CREATED and any(whole_at != HELD for whole_at in system.records):
                self.all[CONTROLLER] = b""
            return super().get(path)

    with server(system.port, is_sluice=True):
        with monkeypatch.context() as patch:
            patch.setattr(system.original, "nodes", ComingBack(system.original.nodes.all))
            refused = system.cut_over(wait_s=SOON_S)
        assert refused.code == 1 and "5 of 6" in refused.out and "controller one is registered" in refused.err
        assert stage(system.source) is Stage.HELD
        system.stop_original()
        assert "all is the same" in system.cut_over(wait_s=SOON_S).out and stage(system.source) is Stage.RELEASED


def test_a_controller_that_came_and_went_before_the_release_stops_it(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.stop_original()
    append = system.source.append

    def comes_and_goes(*arguments: Any) -> Any:
        asyncio.run(system.original.put_stream("orders", orders()))
        return append(*arguments)

    with server(system.port, is_sluice=True):
        with monkeypatch.context() as patch:
            patch.setattr(system.source, "append", comes_and_goes)
            refused = system.cut_over(wait_s=SOON_S)
        assert refused.code == 1 and "5 of 6" in refused.out and "changed between its last two readings" in refused.err
        assert stage(system.source) is Stage.HELD
        assert system.cut_over(wait_s=SOON_S).code == 0


def test_a_look_at_an_original_that_runs_judges_what_it_says_now(system: System) -> None:
    assert "controller one is registered" in system.cut_over().err
    asyncio.run(system.original.put_stream("orders", msgspec.structs.replace(orders(), current_epoch=7)))
    refused = system.cut_over()
    assert refused.code == 1 and "stream shop/orders: " in refused.err and "2 of 6" not in refused.out
