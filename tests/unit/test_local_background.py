"""`make up` on a system that is up already: with its own settings or with others."""

import os
from pathlib import Path

import pytest

from sluice_local import background, supervisor
from sluice_local.cli import main
from sluice_local.ownership import SupervisorRecord
from sluice_local.probes import Probe, ProbeKind
from sluice_local.process import start_ticks
from sluice_local.running import KnownPart, Status
from sluice_local.settings import LocalSettings


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalSettings:
    """The settings of a system that is up and ready, as far as its state folder shows."""
    for name in list(os.environ):
        if name.startswith("SLUICE_") or name == "SEGMENT_STORES":
            monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    settings = LocalSettings(stream_workflows=2, redis_url="redis://:secret@r:6379/0")
    settings.run_dir.mkdir()
    (settings.run_dir / "settings.json").write_text(settings.model_dump_json())
    SupervisorRecord(os.getpid(), start_ticks(os.getpid()) or 0, "ready", "", 1).write(settings.home)
    kafka = KnownPart("kafka", "127.0.0.1:9092", "kafka.log", Probe(ProbeKind.KAFKA, 9092), may_be_late=False)
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
