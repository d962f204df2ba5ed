"""Completion of names asks the API and is silent when that fails; the start of the command line is light."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_cli import completion

ANSWERS = {
    "/sluice/v1/scopes": '{"items":[{"name":"demo"},{"name":"other"}]}',
    "/sluice/v1/scopes/demo/streams": '{"items":[{"name":"orders"},{"name":"omens"},{"name":"x"}]}',
    "/sluice/v1/scopes/demo/tables": '{"items":[{"name":"kv"}]}',
    "/sluice/v1/scopes/html/tables": "<html>hello</html>",
    "/sluice/v1/scopes/odd/tables": '{"items":[{"title":"kv"}]}',
    "/sluice/v1/scopes/list/tables": "[1]",
}
PATHS: list[str] = []
ANSWERS_S = 60
"""How long a slow machine may take until the server here answers."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        PATHS.append(self.path)
        found = ANSWERS.get(self.path.partition("?")[0])
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write((found or "").encode())

    def log_message(self, *_arguments: Any) -> None: ...


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "TIMEOUT_S", ANSWERS_S)


def complete(api: str, line: str) -> list[str]:
    """What bash would offer at the end of the line."""
    words = line.split(" ")
    environment = {
        **os.environ, "SLUICE_API": api, "_SLUICE_COMPLETE": "complete_bash", "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }  # fmt: skip
    program = (
        "import sys; sys.argv = ['sluice']",
        f"from sluice_cli import completion; completion.TIMEOUT_S = {ANSWERS_S}",
        "from sluice_cli.main import app; app(prog_name='sluice')",
    )
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        env=environment, capture_output=True, text=True, check=False, timeout=2 * ANSWERS_S,
    )  # fmt: skip
    assert run.stderr == "", run.stderr
    return run.stdout.split()


def test_the_shell_is_offered_streams(api: str) -> None:
    assert complete(api, "sluice stream show demo/o") == ["demo/orders", "demo/omens"]


def offered(complete: Callable[..., list[str]], incomplete: str, api: str | None = None) -> list[str]:
    context = SimpleNamespace(params={"api": api} if api else {})
    context.find_root = lambda: context
    return complete(context, incomplete)


def test_the_address_before_the_command_counts_too(api: str) -> None:
    assert complete("http://127.0.0.1:9", f"sluice --api {api} stream show demo/o") == ["demo/orders", "demo/omens"]


def test_scopes_and_what_is_in_them(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_API", api)
    assert offered(completion.scopes, "") == ["demo", "other"]
    assert offered(completion.streams, "de") == ["demo/"]
    assert offered(completion.streams, "demo/x") == ["demo/x"]
    assert offered(completion.tables, "demo/") == ["demo/kv"]


def test_a_failure_offers_nothing_and_says_nothing(api: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert offered(completion.streams, "nothing/o", api) == []
    assert offered(completion.groups, "demo/", api) == []
    assert offered(completion.scopes, "", "http://127.0.0.1:9") == []
    assert offered(completion.scopes, "", "no address") == []
    for scope in ("html", "odd", "list", "\udcff", "a/b"):
        assert offered(completion.tables, f"{scope}/", api) == []
    assert capfd.readouterr() == ("", "")


def test_completion_calls_the_api_for_names_that_begin_alike(api: str) -> None:
    PATHS.clear()
    assert offered(completion.streams, "demo/o", api) == ["demo/orders", "demo/omens"]
    assert PATHS == ["/sluice/v1/scopes/demo/streams?limit=100&prefix=o"]


def test_the_start_imports_nothing_heavy() -> None:
    """Help must come at once: what reads HTTP, Kafka or the journal, and what draws, is imported when it is needed."""
    heavy = ["httpx", "confluent_kafka", "rich", "msgspec", "sluice", "pydantic"]
    code = f"import sys, sluice_cli.main; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
