"""`sluice up`, `sluice down`, `sluice status`: what those have who have no clone."""

import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import sluice_local
from sluice_local import commands
from sluice_local.home import CLONE

PACKAGE = Path(sluice_local.__file__).parent
SHOWS = "from sluice_local.home import COMMAND, default_home; print(COMMAND, default_home())"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PROFILE", "small")
    return tmp_path / "home"


def test_the_command_line_has_the_commands_by_their_names() -> None:
    project = tomllib.loads((CLONE / "deploy" / "local" / "pyproject.toml").read_text())["project"]
    named = {name: value.split(":") for name, value in project["entry-points"]["sluice.commands"].items()}
    assert named.keys() == {"up", "down", "status"}
    assert all(
        isinstance(getattr(import_module(module), attribute), typer.Typer) for module, attribute in named.values()
    )


def test_without_java_nothing_is_fetched_and_that_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home / "no-java"))
    ended = CliRunner().invoke(commands.up)
    assert ended.exit_code == 1 and "Java is missing" in ended.output
    assert not home.exists()


def test_where_nothing_is_up_down_and_status_say_so() -> None:
    down, status = (CliRunner().invoke(command) for command in (commands.down, commands.status))
    assert (down.exit_code, status.exit_code) == (0, 3)
    assert "nothing to stop" in down.output and "no system is up" in status.output


def test_what_was_installed_from_a_wheel_keeps_its_state_where_the_users_programs_do(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "lib" / "python" / "site-packages" / PACKAGE.name)
    shown = subprocess.run(
        [sys.executable, "-c", SHOWS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "lib" / "python" / "site-packages"), "XDG_STATE_HOME": "/state"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout == "sluice /state/sluice\n"
