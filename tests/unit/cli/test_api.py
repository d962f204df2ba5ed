"""Paths, replies that are not Sluice's, and replies that take long."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.certificates import Authority
from unit.cli.conftest import Cli, problem

from api_gateway.settings import GatewaySettings
from sluice_cli import api as module
from sluice_cli import session
from sluice_cli.api import Api, path_of
from sluice_cli.errors import CommandError, NoAnswerError, UnreachableError, UsageError


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


@pytest.mark.parametrize("base", ["http://me:hunter2@127.0.0.1:1", "http://me:hunter2@host:x", "http://me:hunter/2@h"])
def test_an_address_is_named_without_its_password(base: str) -> None:
    with pytest.raises(CommandError, match=r"http://\*\*\*@") as refused, Api(base) as api:
        api.get("/scopes")
    assert "hunter" not in f"{refused.value} {refused.value.hint}"


def test_a_gateway_times_out_before_the_command_line() -> None:
    assert GatewaySettings.model_fields["request_timeout_s"].default < module.READ_S


def test_only_a_call_that_was_made_may_go_on() -> None:
    def failing(kind: type[httpx.TransportError]) -> Api:
        def fail(request: httpx.Request) -> httpx.Response:
            raise kind("", request=request)

        return Api("http://gateway", transport=httpx.MockTransport(fail))

    with pytest.raises(NoAnswerError, match="in time"):
        failing(httpx.ReadTimeout).get("/")
    for broken in (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError):
        with pytest.raises(NoAnswerError, match="without an answer") as changing:
            failing(broken).change("PUT", "/")
        assert "may go on" in changing.value.hint
        with pytest.raises(NoAnswerError, match="without an answer") as looking:
            failing(broken).get("/")
        assert "is that the address" in looking.value.hint
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


class Gateway:
    """Serves an empty list of scopes, and keeps what the callers sent as `Authorization`."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.authorizations: list[str | None] = []
        gateway = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gateway.authorizations.append(self.headers.get("Authorization"))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"items": []}')

            def log_message(self, *_arguments: Any) -> None:
                """Not on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_the_credentials_of_the_environment_go_with_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(None)
    try:
        for variables in ({}, {"SLUICE_USER": "me", "SLUICE_PASSWORD": "secret"}):
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            with session.open_api(f"http://127.0.0.1:{gateway.port}") as api:
                assert [*api.pages("/sluice/v1/scopes")] == []
    finally:
        gateway.close()
    assert gateway.authorizations == [None, "Basic bWU6c2VjcmV0"]


def test_a_gateway_with_a_certificate_of_a_known_authority_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair = authority.issue("server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    gateway = Gateway(tls)
    address = f"https://localhost:{gateway.port}"
    try:
        monkeypatch.setenv("SLUICE_CA", str(authority.file))
        with session.open_api(address) as api:
            assert api.get("/sluice/v1/scopes") == {"items": []}
        for variables in ({"SLUICE_CA": str(other.file)}, {"SLUICE_CA": ""}):
            monkeypatch.setenv("SLUICE_CA", variables["SLUICE_CA"])
            with session.open_api(address) as api, pytest.raises(UnreachableError) as refused:
                api.get("/sluice/v1/scopes")
            assert "SLUICE_CA" in refused.value.hint
    finally:
        gateway.close()
    assert gateway.authorizations == [None]


@pytest.mark.parametrize("variables", [{"SLUICE_USER": "me"}, {"SLUICE_CA": "/none"}])
def test_access_that_cannot_be_used_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError):
        session.open_api("https://gateway")
    with pytest.raises(UsageError):
        session.open_client("tls://controller:9090")


@pytest.mark.parametrize(("status", "hint"), [(401, "SLUICE_USER"), (403, "sluice security may")])
def test_a_refusal_says_what_to_do(cli: Cli, status: int, hint: str) -> None:
    cli.answers["GET /scopes"] = problem(status, "said the test")
    found = cli("scope", "list")
    assert found.code == 1 and hint in found.err
