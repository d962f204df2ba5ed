"""Paths, replies that are not Sluice's, and replies that take long."""

import threading
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli

from api_gateway.settings import GatewaySettings
from sluice_cli import api as module
from sluice_cli import session
from sluice_cli.api import Api, path_of
from sluice_cli.errors import NoAnswerError, UnreachableError, UsageError


def path_sent(path: str) -> str:
    """What stands in the request line."""
    found: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        found.append(request.url.raw_path.decode())
        return httpx.Response(204)

    with Api("http://gateway/", transport=httpx.MockTransport(answer)) as api:
        api.change("DELETE", path)
    return found[0]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("...", "..."),
        ("a.b", "a.b"),
        ("a b?c#d", "a%20b%3Fc%23d"),
        ("%2e%2e", "%252e%252e"),
        ("%2F", "%252F"),
        ("\u00e9", "%C3%A9"),
    ],
)
def test_a_name_stays_one_part_of_the_path(name: str, written: str) -> None:
    assert path_sent(path_of("scopes", "demo", "streams", name)) == f"/sluice/v1/scopes/demo/streams/{written}"


@pytest.mark.parametrize("name", ["", "a/b", "/", "../..", "\udcff"])
def test_what_is_no_part_of_a_path(name: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        path_of("scopes", name)


@pytest.mark.parametrize(
    "command",
    [
        ["scope", "delete", "demo/streams/orders"],
        ["scope", "show", ""],
        ["scope", "show", "\udcff"],
        ["transaction", "show", "demo/orders", "../.."],
        ["stream", "list", "demo", "--tag", "\udcff"],
        ["stream", "update", "demo/orders", "--tag", "\udcff"],
    ],
)
def test_a_name_that_is_none_is_wrong_usage(cli: Cli, command: list[str]) -> None:
    cli.answers["GET /scopes/demo/streams/orders"] = {"config": {}}
    found = cli(*command)
    assert found.code == 2 and found.err.startswith("Error: ")
    assert all(call.startswith("GET /scopes/demo/streams/orders") for call, _ in cli.calls)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, html="<html>hello</html>"),
        httpx.Response(200, content=b"\xff\xfe\xfd"),
        httpx.Response(200, json={"hello": 1}),
        httpx.Response(200, json=[1]),
        httpx.Response(200, json={"items": 1}),
        httpx.Response(200, json={"items": ["demo"]}),
        httpx.Response(200, json={"items": [{"title": "demo"}]}),
        httpx.Response(200),
        httpx.Response(302, headers={"Location": "/login"}),
    ],
)
def test_a_reply_of_another_server_is_an_error_with_a_hint(cli: Cli, answer: httpx.Response) -> None:
    cli.answers["GET /scopes"] = cli.answers["POST /scopes/demo/streams/orders/transactions"] = answer
    found = cli("scope", "list")
    assert found.code == 1 and "Sluice" in found.err and "SLUICE_API" in found.err and found.out == ""
    assert cli("transaction", "begin", "demo/orders").code == 1


def test_a_gateway_times_out_before_the_command_line() -> None:
    assert GatewaySettings.model_fields["request_timeout_s"].default < module.READ_S


def test_only_a_call_that_was_made_may_go_on() -> None:
    def failing(kind: type[httpx.TransportError]) -> Api:
        def fail(request: httpx.Request) -> httpx.Response:
            raise kind("", request=request)

        return Api("http://gateway", transport=httpx.MockTransport(fail))

    with pytest.raises(NoAnswerError, match="in time"):
        failing(httpx.ReadTimeout).get("/")
    for kind in (httpx.ConnectTimeout, httpx.ConnectError):
        with pytest.raises(UnreachableError, match="cannot reach") as refused:
            failing(kind).get("/")
        assert not isinstance(refused.value, NoAnswerError)


def test_a_late_reply_is_announced_while_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.001)
    announced = threading.Event()

    def answer(_request: httpx.Request) -> httpx.Response:
        assert announced.wait(30)
        return httpx.Response(200, json={"items": []})

    with Api("http://gateway", transport=httpx.MockTransport(answer), waiting=announced.set) as api:
        assert api.get("/scopes") == {"items": []}


def test_the_waiting_is_announced_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(module, "Api", lambda base, waiting, **_: made.append((base, waiting)))
    session.open_api("http://gateway")
    ((base, waiting),) = made
    waiting()
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(f"Still waiting for {base}")
