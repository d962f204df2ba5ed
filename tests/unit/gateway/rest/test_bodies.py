"""Bodies: how large they may be, how long they may take, and that one on its way keeps no other call waiting."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError
from support.wait import SOON_S
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import World

from api_gateway.console.rest.base import MAX_PROPERTIES, Body
from api_gateway.edge.rest import boundary
from api_gateway.edge.shares import Shares
from api_gateway.pravega.rest.models import CreateScopeRequest, CreateStreamRequest, StreamState
from sluice.telemetry.health import HttpServer

TO = {"/sluice/v1/scopes/sc/streams/st": "PUT", "/v1/scopes": "POST"}


def call_scope(path: str) -> dict[str, Any]:
    """A call as the HTTP server passes it to the application, with a body of 10 bytes."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"10")]
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": TO[path], "path": path,
        "raw_path": path.encode(), "query_string": b"", "headers": headers, "scheme": "http", "root_path": "",
        "client": ("127.0.0.1", 1), "server": ("gateway", 80),
    }  # fmt: skip


class HalfSent:
    """A call whose body never ends; `answer` is what it was answered with."""

    def __init__(self, world: World, path: str) -> None:
        self.answer: list[Any] = []
        self._sent_half = False
        self.reading = asyncio.Event()
        self.task = asyncio.create_task(world.app(call_scope(path), self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._sent_half:
            self._sent_half = True
            return {"type": "http.request", "body": b"{", "more_body": True}
        self.reading.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def _send(self, message: Any) -> None:
        self.answer.append(message)


async def test_a_body_on_its_way_keeps_no_other_call_waiting(world: World) -> None:
    capacity = world.app.state.capacity
    capacity.calls, capacity.bodies = Shares(1, "calls"), Shares(1, "bodies")
    half = HalfSent(world, "/sluice/v1/scopes/sc/streams/st")
    try:
        await asyncio.wait_for(half.reading.wait(), SOON_S)
        for path in ("/sluice/v1/scopes", "/v1/scopes", "/ping"):
            assert (await world.call("GET", path)).status_code == 200
        assert (await world.call("PUT", "/sluice/v1/scopes/sc")).status_code == 201
        refused = await world.call("PUT", "/sluice/v1/scopes/sc/streams/other", {})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    finally:
        half.task.cancel()
        await asyncio.gather(half.task, return_exceptions=True)
    assert (await world.call("PUT", "/sluice/v1/scopes/sc/streams/other", {})).status_code == 201


@pytest.mark.parametrize("path", TO)
async def test_a_body_that_does_not_end_times_out(world: World, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "BODY_S", 0.01)
    half = HalfSent(world, path)
    await asyncio.wait_for(half.task, SOON_S)
    start, *rest = half.answer
    assert start["status"] == 408 and (b"connection", b"close") in start["headers"]
    body = b"".join(part["body"] for part in rest)
    if path.startswith("/sluice/"):
        assert b'"status":408' in body
    else:
        assert body == b""


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_body_that_is_too_large_is_refused_in_the_form_of_its_interface(
    world: World, scope: str, is_announced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary, "MAX_BODY_BYTES", 100)

    async def parts() -> Any:
        for _ in range(3):
            yield b'{"tags": ["' + b"x" * 40
        yield b'"]}'

    async def send(path: str) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        content = b"".join([part async for part in parts()]) if is_announced else parts()
        return await world.client.request(TO[path], path, content=content, headers=headers)

    ours = await send("/sluice/v1/scopes/sc/streams/st")
    assert problem(ours) == (413, None) and "100 bytes" in ours.json()["detail"]
    pravegas = await send("/v1/scopes")
    assert (pravegas.status_code, pravegas.content) == (413, b"")


async def test_the_server_ends_the_connection_of_a_body_that_does_not_end(
    world: World, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(boundary, "BODY_S", 0.01)
    server = HttpServer(world.app, "127.0.0.1", unused_tcp_port)
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        head = "PUT /sluice/v1/scopes/sc/streams/st HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 10\r\n\r\n{{".encode())
        answer = await asyncio.wait_for(reader.read(), SOON_S)
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()
    finally:
        await server.stop()


async def test_a_caller_that_leaves_is_no_failure_of_ours(world: World, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await world.app(call_scope("/sluice/v1/scopes/sc/streams/st"), receive, send)
    assert sent[0]["status"] == 400 and not caplog.records


def models_of_bodies(known: type[BaseModel] = Body) -> Iterator[type[BaseModel]]:
    for model in known.__subclasses__():
        yield model
        yield from models_of_bodies(model)


MANY = 2_000
FLOODS: dict[str, Any] = {
    "a list of objects": [{}] * MANY,
    "a list of null": [None] * MANY,
    "a list of lists": [[{}] * MANY] * 100,
    "an object of null": {str(n): None for n in range(MANY)},
    "an object of wrong names": {f"x y {n}": [] for n in range(MANY)},
}


@pytest.mark.parametrize(
    "model",
    [*models_of_bodies(), CreateScopeRequest, CreateStreamRequest, StreamState],
    ids=lambda model: model.__name__,
)
@pytest.mark.parametrize("flood", FLOODS)
def test_however_much_is_wrong_with_a_body_few_errors_are_made(model: type[BaseModel], flood: str) -> None:
    value = FLOODS[flood]
    for sent in (value, {field.alias: value for field in model.model_fields.values()}):
        found = 0
        try:
            model.model_validate(sent)
        except ValidationError as error:
            found = error.error_count()
        assert found <= 2 * MAX_PROPERTIES


async def test_a_body_with_thousands_of_wrong_items_is_a_wrong_request(world: World, scope: str) -> None:
    flood = {str(n): 0 for n in range(MANY)}
    ours = await world.call("PUT", "/sluice/v1/scopes/sc/streams/st", flood)
    assert problem(ours) == (400, None)
    assert ours.json()["detail"] == f"body: it has {MANY} properties, there are not so many"
    pravegas = await world.call(
        "POST", "/v1/scopes/sc/streams", {"streamName": "st", "scalingPolicy": {}, "streamTags": [{}] * MANY}
    )
    assert pravegas.status_code == 400


async def test_a_scale_of_as_many_segments_as_may_be_is_not_too_large(world: World, stream: str) -> None:
    count = 10_000
    body = {
        "sealed": [2**53 + number for number in range(count)],
        "ranges": [[low / 3, (low + 1) / 3] for low in range(count)],
    }
    assert problem(await world.call("POST", f"{stream}/scale", body)) != (413, None)


async def test_a_byte_order_mark_is_no_part_of_a_body(world: World) -> None:
    assert (await world.call("POST", "/v1/scopes", b'\xef\xbb\xbf{"scopeName": "sc"}')).status_code == 201
    tagged = await world.call("PUT", "/sluice/v1/scopes/sc/streams/st", b'\xef\xbb\xbf{"tags": ["a"]}')
    assert tagged.status_code == 201
