"""Commands of other distributions: found by entry points of distributions on the path, loaded only when called."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_cli.main import app

Install = Callable[[str, str, str], None]

GREETING = '''
import typer

app = typer.Typer(help="Say things.")


@app.callback()
def root() -> None:
    """Say things."""


@app.command()
def hello(name: str) -> None:
    """Say hello."""
    typer.echo(f"hello {name}")
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with one command on the path: the command's name, the entry point, the module's text."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(command: str, value: str, text: str) -> None:
        module = value.partition(":")[0]
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[sluice.commands]\n{command} = {value}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return put


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_a_command_of_another_distribution_is_listed_and_run(install: Install) -> None:
    install("greet", "plugin_greeting:app", GREETING)
    code, out, _ = run("--help")
    assert code == 0 and "greet " in out and "Say things." in out
    assert run("greet", "hello", "you") == (0, "hello you\n", "")
    assert run("greet", "-h")[0] == 0


def test_it_is_not_loaded_before_it_is_called(install: Install) -> None:
    install("greet", "plugin_lazy:app", GREETING)
    assert run("topic", "--help")[0] == 0
    assert "plugin_lazy" not in sys.modules
    assert run("greet", "hello", "you")[0] == 0
    assert "plugin_lazy" in sys.modules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("app = 5", "TypeError: plugin_broken:app is int, not a typer.Typer"),
        ("other = 5", "AttributeError"),
    ],
)
def test_a_broken_one_says_why_and_breaks_nothing_else(install: Install, text: str, reason: str) -> None:
    install("greet", "plugin_broken:app", text)
    code, out, _ = run("--help")
    assert code == 0 and "Cannot be loaded" in out and "scope" in out
    assert run("topic", "--help")[0] == 0
    code, out, err = run("greet", "hello", "--loud", "you")
    assert code == 1 and out == ""
    assert reason in err and "the distribution plugin_broken 1.2" in err and "Traceback" not in err


def test_own_commands_cannot_be_replaced(install: Install) -> None:
    install("scope", "plugin_scope:app", GREETING)
    code, out, _ = run("scope", "--help")
    assert code == 0 and "hello" not in out and "create" in out
    assert sum(line.strip().startswith("scope ") for line in run("--help")[1].splitlines()) == 1
