"""Which address counts: an option, before or after the command, the environment, a context, the default."""

import json
from pathlib import Path

import httpx
import pytest
from unit.cli.conftest import Cli
from unit.cli.shown import items


@pytest.fixture
def hosts(cli: Cli) -> list[str]:
    """The address of the gateway of each `scope list`."""
    found: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        found.append(str(request.url.copy_with(path="/", query=None)))
        return httpx.Response(200, json=items())

    cli.answers["GET /scopes"] = answer
    return found


def test_an_address_is_that_of_the_nearest_place(cli: Cli, hosts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cli("scope", "list")
    assert cli("context", "set", "prod", "--api", "http://context:3").code == 0
    cli("scope", "list")
    assert cli("context", "use", "prod").code == 0
    cli("scope", "list")
    monkeypatch.setenv("SLUICE_API", "http://env:1")
    cli("scope", "list")
    cli("--api", "http://before:4", "scope", "list")
    cli("--api", "http://before:4", "scope", "list", "--api", "http://option:2/")
    assert hosts == [
        "http://127.0.0.1:10080/", "http://127.0.0.1:10080/", "http://context:3/", "http://env:1/", "http://before:4/",
        "http://option:2/",
    ]  # fmt: skip


@pytest.mark.parametrize("address", ["localhost:10080", "tcp://a:1", "http://", "http://a:b", "http://[::1"])
def test_what_is_no_url_is_refused_wherever_it_is_from(
    cli: Cli, configuration: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    given, kept = cli("scope", "list", "--api", address), cli("context", "set", "prod", "--api", address)
    assert given.code == kept.code == 2 and not configuration.exists()
    assert f"'{address}' (--api) is no address of the api" in given.err and "http://HOST:PORT" in given.err
    monkeypatch.setenv("SLUICE_API", address)
    assert "(SLUICE_API)" in cli("scope", "list").err and address in cli("context", "show").out
    monkeypatch.delenv("SLUICE_API")
    file = configuration / "sluice" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"current": "prod", "contexts": {"prod": {"api": address}}}))
    found = cli("scope", "list")
    assert found.code == 2 and "(context prod)" in found.err


@pytest.mark.parametrize("address", ["http://a:1", "localhost", "::1:9090"])
def test_what_is_no_controller_is_refused(cli: Cli, address: str) -> None:
    for command in (("stream", "write", "demo/orders"), ("context", "set", "prod")):
        found = cli(*command, "--controller", address)
        assert found.code == 2 and "is no address of the controller" in found.err


def test_json_may_stand_before_the_command(cli: Cli) -> None:
    cli.answers["GET /scopes"] = items({"name": "demo"})
    assert cli("--json", "scope", "list").document == [{"name": "demo"}]


def test_contexts_are_kept_listed_shown_and_forgotten(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("context", "set", "prod", "--api", "http://a:1", "--kafka", "k:2")
    cli("context", "set", "dev", "--controller", "tcp://c:3")
    cli("context", "set", "prod", "--api", "http://a:9")
    assert cli("context", "use", "prod").out.startswith("context prod is in use")
    prod = {"name": "prod", "current": True, "api": "http://a:9", "kafka": "k:2"}
    assert cli("context", "list", "--json").document == [
        {"name": "dev", "current": False, "controller": "tcp://c:3"}, prod
    ]  # fmt: skip
    assert "http://a:9" in cli("context", "list").out
    monkeypatch.setenv("SLUICE_KAFKA_BOOTSTRAP", "env:5")
    assert cli("context", "show", "--json").document == {
        "context": "prod",
        "addresses": {
            "api": {"value": "http://a:9", "source": "context prod"},
            "kafka": {"value": "env:5", "source": "SLUICE_KAFKA_BOOTSTRAP"},
            "controller": {"value": "tcp://127.0.0.1:9090", "source": "default"},
            "archive": {"value": "", "source": "default"},
        },
    }
    assert "--api" in cli("context", "show", "--api", "http://b:1").out
    assert "http://***@b:1" in cli("context", "show", "--api", "http://me:hunter2@b:1").out
    assert cli("context", "delete", "prod").code == 0
    assert cli("context", "show", "--json").document["context"] == ""
    missing = cli("context", "use", "prod")
    assert missing.code == 1 and "'prod'" in missing.err and "sluice context list" in missing.err


def test_a_password_is_not_kept(cli: Cli, configuration: Path) -> None:
    for option in ("--api", "--kafka", "--controller"):
        found = cli("context", "set", "prod", option, "http://me:hunter2@host:1")
        assert found.code == 2 and "hunter2" not in found.err and option in found.err
    assert cli("context", "set", "prod").code == 2
    assert not configuration.exists()


def test_the_file_is_the_users_own_and_whole(cli: Cli, configuration: Path) -> None:
    file = configuration / "sluice" / "contexts.json"
    cli("context", "set", "prod", "--api", "http://a:1")
    assert file.stat().st_mode & 0o777 == 0o600 and [*file.parent.iterdir()] == [file]
    assert json.loads(file.read_text()) == {"current": "", "contexts": {"prod": {"api": "http://a:1"}}}
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert cli("context", "list").code == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"current": "a", "contexts": {"a": "b"}}', "\udcff"])
def test_a_file_that_is_no_such_file_is_named(cli: Cli, configuration: Path, text: str) -> None:
    file = configuration / "sluice" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, errors="surrogateescape")
    found = cli("scope", "list")
    assert found.code == 2 and str(file) in found.err and "mend the file or remove it" in found.err.lower()
    cli.answers["GET /scopes"] = items()
    assert cli("scope", "list", "--api", "http://a:1").code == 0, "what is given needs no file"
