"""The start of a system: which parts it waits for. Real processes that do nothing, behind a port where none listens."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.ports import free_port

from sluice_local.errors import PartFailed
from sluice_local.part import Part, StopRank
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings
from sluice_local.system import System


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
    assert "late is not ready after 0 s: no connection" in reported[0]
    assert system.is_running("late")


def test_the_start_fails_for_any_other_part_that_is_late(system: System, tmp_path: Path) -> None:
    system.parts["late"] = never_ready(tmp_path, "sleep", "600")
    with pytest.raises(PartFailed, match="late is not ready"):
        system.start()


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
