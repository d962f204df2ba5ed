"""The start of a system: which parts it waits for. Real processes that do nothing, behind a port where none listens."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from support.ports import free_port

from sluice_local.errors import PartFailed
from sluice_local.part import Part, StopRank
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings
from sluice_local.system import System

PATIENCE_S = 2.0


class Reported(list[str]):
    """What the system has reported."""


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def system(tmp_path: Path, reported: Reported) -> Iterator[System]:
    system = System(LocalSettings(home=tmp_path, start_timeout_s=0.2), reported.append)
    system.parts.clear()
    yield system
    system.close()


def never_ready(folder: Path, *command: str) -> Part:
    probe = Probe(ProbeKind.TCP, free_port())
    return Part("late", command, folder, folder / "late.log", "nowhere", (), probe, StopRank.SERVICE)


def test_the_start_goes_on_without_a_part_that_may_be_late(system: System, reported: Reported, tmp_path: Path) -> None:
    system.parts["late"] = replace(never_ready(tmp_path, "sleep", "600"), may_be_late=True)
    system.start()
    assert "nothing has changed for 0.2 s (SLUICE_START_TIMEOUT_S):\n    late: no connection" in reported[0]
    assert system.is_running("late")


def test_the_start_fails_for_any_other_part_that_is_late(system: System, tmp_path: Path) -> None:
    system.parts["late"] = never_ready(tmp_path, "sleep", "600")
    with pytest.raises(PartFailed, match="not ready, and nothing has changed") as failure:
        system.start()
    assert str(failure.value).count("no connection") == 1


def test_the_start_fails_for_a_part_that_ends_also_if_it_may_be_late(tmp_path: Path) -> None:
    system = System(LocalSettings(home=tmp_path))
    system.parts.clear()
    system.parts["late"] = replace(never_ready(tmp_path, "false"), may_be_late=True)
    try:
        with pytest.raises(PartFailed, match="late ended with exit code 1"):
            system.start()
    finally:
        system.close()


def test_what_may_be_late_starts_when_the_rest_is_ready_and_need_not_be_waited_for(
    system: System, reported: Reported, tmp_path: Path
) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    probe = Probe(ProbeKind.TCP, listening.getsockname()[1])
    system.parts["needed"] = replace(never_ready(tmp_path, "sleep", "600"), name="needed", probe=probe)
    late = replace(never_ready(tmp_path, "sleep", "600"), may_be_late=True, starts_after=("needed",))
    system.parts["late"] = late
    with listening:
        system.start(wait_for_late=False)
    assert [line.split()[:2] for line in reported] == [["needed", "ready"], ["late", "follows,"]]
    assert system.is_running("late")


def test_what_a_start_stumbles_over_is_the_failure_of_its_part(system: System, tmp_path: Path) -> None:
    def prepare() -> None:
        raise RuntimeError("ZooKeeper is away")

    system.parts["bookie"] = replace(never_ready(tmp_path, "sleep", "600"), name="bookie", prepare=prepare)
    with pytest.raises(PartFailed, match="bookie cannot be started: RuntimeError: ZooKeeper is away"):
        system.start()


class SlowService:
    """A service that says each time what it lacks; an empty text: it is ready."""

    def __init__(self, lacks: Callable[[int], str]) -> None:
        self.looks_taken = 0
        """How often a probe has looked."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(this) -> None:  # noqa: N805 - `self` is the service
                self.looks_taken += 1
                wrong = lacks(self.looks_taken)
                this.send_response(503 if wrong else 200)
                this.end_headers()
                this.wfile.write(
                    json.dumps(
                        {"not_ready": {"journal": wrong} if wrong else {}, "outage": {}, "degraded": {}}
                    ).encode()
                )

            def log_message(this, *_arguments: object) -> None:  # noqa: N805
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.probe = Probe(ProbeKind.SERVICE, self._server.server_address[1])
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def service(system: System, folder: Path, name: str, lacks: Callable[[int], str]) -> Iterator[SlowService]:
    """A part of the system that is this service."""
    slow = SlowService(lacks)
    system.parts[name] = replace(never_ready(folder, "sleep", "600"), name=name, probe=slow.probe)
    yield slow
    slow.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[System]:
    """One that gives time for a look at a service, also on a busy machine."""
    system = System(LocalSettings(home=tmp_path, start_timeout_s=PATIENCE_S))
    system.parts.clear()
    yield system
    system.close()


def test_what_takes_long_is_waited_for_while_anything_gets_on(patient: System, tmp_path: Path) -> None:
    """So is a part that says the same all the time, as one that waits for another."""
    looks = 40
    with (
        service(patient, tmp_path, "loads", lambda n: f"loading, {n} records so far" if n < looks else "") as loads,
        service(patient, tmp_path, "waits", lambda _: "waiting" if loads.looks_taken < looks else ""),
    ):
        began = time.monotonic()
        patient.start()
        assert time.monotonic() - began > PATIENCE_S


def test_seconds_that_a_part_has_waited_are_no_progress(patient: System, tmp_path: Path) -> None:
    with (
        service(patient, tmp_path, "silent", lambda n: f"no answer for {n} s"),
        pytest.raises(PartFailed, match=r"silent: journal: no answer for \d+ s"),
    ):
        patient.start()


def test_a_part_that_lacks_now_this_now_that_gets_on_with_nothing(patient: System, tmp_path: Path) -> None:
    with (
        service(patient, tmp_path, "undecided", lambda n: "joining" if n % 2 else "leaving" if n < 100 else ""),
        pytest.raises(PartFailed, match=r"undecided: journal: (joining|leaving)"),
    ):
        patient.start()


def test_a_start_waits_for_what_runs_and_is_not_ready(patient: System, tmp_path: Path) -> None:
    """As after a full disk: the broker is started, and the services join their groups once it is there."""
    with service(patient, tmp_path, "joins", lambda n: "joining its group" if n <= 3 else "") as joins:
        patient.start_part("joins")
        patient.start()
        assert joins.looks_taken > 3
