"""What no client sends, for a while and without credentials: others are served, and nothing comes of it.

`make fuzz` does the same to a whole system, for longer.
"""

import asyncio
import logging
from typing import Any

import pytest
from support.fuzzing import GRPC, HTTP, Attack
from unit.gateway.conftest import served
from unit.gateway.rest.world import World
from unit.gateway.security.support import ALL, READ, READ_UPDATE, Callers, as_

from api_gateway.edge.security.guard import Guard
from sluice.controller_api import controller_pb2 as pb
from sluice.telemetry.health import HttpServer

CONVERSATIONS = 60
DEADLINE_S = 60.0
HOST = "127.0.0.1"
SCOPE = pb.ScopeInfo(scope="fuzzed")


def tells_nothing(answer: bytes) -> None:
    for inside in (b"Traceback", b"site-packages", b'File "'):
        assert inside not in answer, answer[:500]


def callers() -> Callers:
    return Callers(writer={ALL: READ_UPDATE}, reader={ALL: READ})


async def test_broken_http2_and_grpc_disturb_no_reader_and_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with served(Guard(callers(), readers_write=True), max_calls=20_000) as gateway:
        await gateway.stub.createScope(SCOPE, metadata=as_("writer"))
        sent = len(gateway.sent)
        attack = Attack({(HOST, gateway.port): GRPC}, 1, tells_nothing)
        await attacked(attack, lambda: gateway.stub.checkScopeExists(SCOPE, metadata=as_("reader")))
        assert len(gateway.sent) == sent, "no request came of it"
    assert attack.wrong == []
    assert errors(caplog) == []


async def test_broken_http_disturbs_no_reader_and_changes_nothing(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(guard=Guard(callers(), readers_write=True))
    await world.start()
    server = HttpServer(world.app, HOST, unused_tcp_port)
    await server.start()
    try:
        attack = Attack({(HOST, unused_tcp_port): HTTP}, 1, tells_nothing)
        await attacked(attack, lambda: read(unused_tcp_port))
        assert world.system.sent == []
    finally:
        await server.stop()
        await world.stop()
    assert attack.wrong == []
    assert errors(caplog) == []


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is logged as a fault of ours; gRPC also says of what is no message that it is none."""
    ours = (record for record in caplog.records if record.name != "grpc._cython.cygrpc")
    return [record.getMessage() for record in ours if record.levelno >= logging.ERROR]


async def attacked(attack: Attack, read: Any) -> None:
    """Read while the attack goes on; each call must be answered in time."""
    await asyncio.to_thread(attack.__enter__)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while attack.conversations < CONVERSATIONS:
                await asyncio.wait_for(read(), DEADLINE_S / 2)
    finally:
        await asyncio.to_thread(attack.__exit__)


async def read(port: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(
        b"GET /sluice/v1/scopes HTTP/1.1\r\nHost: x\r\nAuthorization: Basic reader\r\nConnection: close\r\n\r\n"
    )
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()
