"""`make up` on a system that is up already: with its own settings or with others, or while it is being stopped."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

import pytest
from support.wait import eventually

from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from retention_spark.settings import SparkSettings
from sluice.settings import ServiceSettings
from sluice_local import background, checks, services, supervisor
from sluice_local.cli import main
from sluice_local.errors import LocalError
from sluice_local.ownership import SupervisorRecord
from sluice_local.part import Part, StopRank
from sluice_local.probes import Probe, ProbeKind
from sluice_local.process import start_ticks
from sluice_local.running import KnownPart, Status
from sluice_local.settings import LocalSettings, variable_of
from sluice_local.system import say_nothing
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings

ENDS_S = 60.0


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalSettings:
    """The settings of a system that is up and ready, as far as its state folder shows."""
    for name in list(os.environ):
        if name.startswith("SLUICE_") or name == "SEGMENT_STORES":
            monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    settings = LocalSettings(stream_workflows=2, redis_url="redis://:secret@r:6379/0")
    settings.run_dir.mkdir()
    monkeypatch.setenv("SLUICE_WATERMARK_INTERVAL_S", "20")
    supervisor.store(settings)
    SupervisorRecord(os.getpid(), start_ticks(os.getpid()) or 0, "ready", "", 1).write(settings.home)
    kafka = KnownPart("kafka", "127.0.0.1:9092", "kafka.log", "data", Probe(ProbeKind.KAFKA, 9092), False, False)
    ready = Status(kafka, os.getpid(), True, "ready")
    monkeypatch.setattr(background, "statuses", lambda _home: iter([ready]))
    return settings


def test_settings_are_stored_for_their_user_alone(running: LocalSettings) -> None:
    path = running.run_dir / "settings.json"
    path.chmod(0o644)
    supervisor.store(running)
    assert path.stat().st_mode & 0o777 == 0o600 and "secret" in path.read_text()


def refused_up(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What `up` says when it does nothing."""
    monkeypatch.setattr("sys.argv", ["sluice_local", "up"])
    assert main() == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("value", [None, "2"])
@pytest.mark.usefixtures("running")
def test_a_system_that_has_the_requested_settings_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str | None
) -> None:
    """Settings that are not given are not requested."""
    if value is not None:
        monkeypatch.setenv("SLUICE_STREAM_WORKFLOWS", value)
    background.up(LocalSettings())
    assert capsys.readouterr().out.startswith("already up")


@pytest.mark.usefixtures("running")
def test_other_settings_are_named_and_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_STREAM_WORKFLOWS", "4")
    monkeypatch.setenv("SEGMENT_STORES", "3")
    said = refused_up(monkeypatch, capsys)
    assert "SLUICE_STREAM_WORKFLOWS is 2 there, not 4" in said
    assert "SEGMENT_STORES is 1 there, not 3" in said
    assert "make down" in said


@pytest.mark.usefixtures("running")
def test_an_address_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_REDIS_URL", "redis://:other@r:6379/0")
    said = refused_up(monkeypatch, capsys)
    assert "SLUICE_REDIS_URL" in said
    assert "secret" not in said and "other@" not in said


@pytest.mark.parametrize(("name", "value"), [("SLUICE_WATERMARK_INTERVAL_S", "30"), ("SLUICE_BATCH", "7")])
@pytest.mark.usefixtures("running")
def test_other_settings_of_services_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert f"a system is up with other settings ({name}): " in refused_up(monkeypatch, capsys)


def test_settings_of_services_are_stored_as_hashes(running: LocalSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_TOKEN_KEY", "k-e-y")
    supervisor.store(running)
    stored = "".join((running.run_dir / name).read_text() for name in ("settings.json", "passed-on.json"))
    assert "SLUICE_TOKEN_KEY" in stored and "k-e-y" not in stored


@pytest.mark.parametrize(
    "kind", [GatewaySettings, WorkflowSettings, TxnSettings, ClusterManagerSettings, SparkSettings]
)
def test_every_setting_of_a_service_is_its_parts_or_passed_on(
    running: LocalSettings, monkeypatch: pytest.MonkeyPatch, kind: type[ServiceSettings]
) -> None:
    names = {f"SLUICE_{field.upper()}" for field in kind.model_fields}
    for name in names:
        monkeypatch.setenv(name, "1")
    said = {variable_of(field) for field in LocalSettings.model_fields}
    said.update(*(part.environment for part in services.parts(running)))
    assert names - said <= set(supervisor.passed_on(running))


@pytest.mark.usefixtures("running")
def test_what_is_exported_for_the_command_line_is_no_other_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """README has the user of a secured system do so when it is up."""
    for name in ("API", "CONTROLLER", "CA", "USER", "PASSWORD_FILE", "KAFKA_CONF", "STORE_TLS", "TOKEN_KEY_FILE"):
        monkeypatch.setenv(f"SLUICE_{name}", ".sluice/security/ca.pem")
    monkeypatch.setenv("SLUICE_INGEST_STORE", "/tmp/ingest")
    monkeypatch.delenv("SLUICE_WATERMARK_INTERVAL_S")
    background.up(LocalSettings())
    assert capsys.readouterr().out.startswith("already up")


def test_a_system_that_is_being_stopped_is_started_anew_when_it_has_ended(
    running: LocalSettings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(running.home))  # without Java the one that is started ends at once
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with subprocess.Popen(["/bin/sleep", "600"]) as stopping, ThreadPoolExecutor(1) as beside:
        SupervisorRecord(stopping.pid, start_ticks(stopping.pid) or 0, "stopping", "", 1).write(running.home)
        up = beside.submit(background.up, running)
        try:
            eventually(lambda: "waiting for its end" in capsys.readouterr().out, ENDS_S, "it waits")
            assert not up.done()
        finally:
            stopping.kill()
        with pytest.raises(LocalError, match="the system did not start"):
            up.result(ENDS_S)


def test_a_supervisor_says_that_it_stops(running: LocalSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []

    class System:
        parts: Mapping[str, object] = MappingProxyType({})

        def __init__(self, *_: object) -> None:
            """As a system is made."""

        def start(self, *, wait_for_late: bool) -> None:
            raise LocalError("no port is free")

        def close(self) -> None:
            record = SupervisorRecord.read(running.home)
            states.append(record.state if record is not None else "")

    monkeypatch.setattr(supervisor, "System", System)
    monkeypatch.setattr(checks, "require_java", lambda: "17")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    said: list[str] = []
    assert supervisor.supervise(running, said.append) == 1
    assert states == ["stopping"] and said[1:] == ["stopping", "stopped", "no port is free"]


@pytest.mark.parametrize(("number", "hint"), [(signal.SIGINT, "; a second Ctrl-C kills at once"), (signal.SIGTERM, "")])
def test_a_supervisor_speaks_of_ctrl_c_to_one_who_pressed_it(
    running: LocalSettings, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    handlers: dict[int, Callable[[int, None], None]] = {}

    class System:
        parts: Mapping[str, Part] = MappingProxyType({})

        def __init__(self, *_: object) -> None:
            """As a system is made."""

        def start(self, *, wait_for_late: bool) -> None:
            handlers[number](number, None)

        def abandon_start(self) -> None:
            """It has ended already."""

        def close(self) -> None:
            """Nothing runs."""

    monkeypatch.setattr(supervisor, "System", System)
    monkeypatch.setattr(checks, "require_java", lambda: "17")
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    said: list[str] = []
    assert supervisor.supervise(running, said.append) == 0
    assert f"stopping{hint}" in said


def test_a_supervisor_stops_the_services_and_nothing_else_when_it_is_told_to(
    running: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[int, Callable[[int, None], None]] = {}
    stopped: list[StopRank] = []

    class System:
        parts: Mapping[str, Part] = MappingProxyType({})

        def __init__(self, *_: object) -> None:
            """As a system is made."""

        def start(self, *, wait_for_late: bool) -> None:
            handlers[signal.SIGUSR2](signal.SIGUSR2, None)

        def ended(self) -> list[str]:
            return []

        def stop_all(self, rank: StopRank) -> None:
            stopped.append(rank)
            handlers[signal.SIGTERM](signal.SIGTERM, None)

        def close(self) -> None:
            """Nothing runs."""

    monkeypatch.setattr(supervisor, "System", System)
    monkeypatch.setattr(checks, "require_java", lambda: "17")
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    assert supervisor.supervise(running, say_nothing) == 0
    assert stopped == [StopRank.SERVICE]
