"""The command line run in this process, on a fake of the API and on topics in memory."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner
from unit.cli.memory import History, MemorySource, MemoryTopics
from unit.migration.original import MemoryNodes, Original

from sluice.domain.host import Host
from sluice.pravega.container_map import CONTAINER_MAP_NODE, encode_container_map
from sluice.pravega.store import SegmentStore
from sluice_cli import session
from sluice_cli.addresses import VARIABLES
from sluice_cli.api import Api
from sluice_cli.main import app

COMMAND = typer.main.get_command(app)
"""Put together once: that takes longer than most commands."""


class Run:
    """What one run of a command came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """Runs commands. `answers` has what the API answers by method and path; `calls` the requests that it got."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.calls: list[tuple[str, Any]] = []
        self.history = History()

    def __call__(self, *arguments: object, typed: str | bytes | None = None) -> Run:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=typed)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Run(result.exit_code, result.stdout, result.stderr)

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/sluice/v1")
        query = f"?{request.url.query.decode()}" if request.url.query else ""
        called = f"{request.method} {path}{query}"
        self.calls.append((called, json.loads(request.content) if request.content else None))
        found = self.answers.get(called, self.answers.get(f"{request.method} {path}"))
        assert found is not None, f"unexpected {called}"
        answer = found(request) if callable(found) else found
        if isinstance(answer, httpx.Response):
            return answer
        headers = {} if request.method == "GET" else {"Sluice-Request": "abc-1"}
        return httpx.Response(200, json=answer, headers=headers)


def problem(status: int, detail: str, reason: str = "", request: str = "") -> httpx.Response:
    body = {"type": "about:blank", "title": "No", "status": status, "detail": detail}
    headers = {"content-type": "application/problem+json"} | ({"Sluice-Request": request} if request else {})
    return httpx.Response(status, json=body | ({"reason": reason} if reason else {}), headers=headers)


_ACCESS = ("SLUICE_USER", "SLUICE_PASSWORD", "SLUICE_PASSWORD_FILE", "SLUICE_CA")


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's folder for configuration, empty; no variable of the environment names an address or credentials."""
    for variable in [*os.environ]:
        if variable in (*VARIABLES.values(), *_ACCESS) or variable.startswith("pravega_client_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    run = Cli()
    monkeypatch.setattr(typer.testing, "_get_command", lambda _app: COMMAND)
    monkeypatch.setattr(session, "open_api", lambda base, **_: Api(base, transport=httpx.MockTransport(run.answer)))
    monkeypatch.setattr(session, "open_source", lambda _bootstrap: run.history.source)
    return run


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> MemorySource:
    """A system without a record."""
    found = MemorySource()
    cli.history.source = found
    monkeypatch.setattr(session, "open_topics", lambda _bootstrap: MemoryTopics(found))
    return found


STORE = Host("127.0.0.1", 6000)


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> Original:
    found = Original()
    found.nodes.all[CONTAINER_MAP_NODE] = encode_container_map({STORE: {0, 1, 2, 3}})

    @asynccontextmanager
    async def open_store(route: Any, container_count: int) -> AsyncIterator[SegmentStore]:
        assert (route(3), container_count) == (STORE, 4)
        yield found.store

    @contextmanager
    def open_zookeeper(address: str, cluster: str) -> Iterator[MemoryNodes]:
        assert (address, cluster) == ("zk:2181", "theirs")
        yield found.nodes

    monkeypatch.setattr(session, "open_store", open_store)
    monkeypatch.setattr(session, "open_zookeeper", open_zookeeper)
    asyncio.run(found.fill())
    return found
