"""What no client should send, over the wire and into the topics: the services stay as they were.

What is answered to calls with wrong arguments is in `tests/conformance`.
"""

import json
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import pytest
from support.controller import Controller, controller, unique
from support.health import await_ready, metric
from support.kafka import Folded, events, fold, header, produce, read

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.workflow import WorkflowStepFailed
from sluice.engine.fold import Outcome
from sluice.engine.partition import partition_of
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_STREAMS

pytestmark = pytest.mark.integration

SERVICES = ("api-gateway-0", "stream-workflows-0", "cluster-manager-0", "txn-manager-0")
DEAD_LETTER_S = 60.0


class World(NamedTuple):
    """A scope with a stream of two segments."""

    scope: str
    gateway: Controller


@pytest.fixture(scope="module")
def world(system: System) -> Iterator[World]:
    with controller(system.grpc_address) as gateway:
        world = World(unique("bad"), gateway)
        assert gateway.create_scope(world.scope) == "SUCCESS"
        assert gateway.create_stream(world.scope, "open", 2) == "SUCCESS"
        yield world


@pytest.fixture(autouse=True)
def still_healthy(system: System, world: World) -> Iterator[None]:
    """After every test all services are ready, and what should work works."""
    yield
    for name in SERVICES:
        await_ready(system, name)
    assert world.gateway.segments(world.scope, "open") == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    assert world.gateway.create_scope(world.scope) == "SCOPE_EXISTS"


# --- on the wire


def test_a_name_of_a_megabyte_is_just_a_bad_name(world: World) -> None:
    name = "x" * 1_000_000
    assert world.gateway.create_scope(name) == "INVALID_SCOPE_NAME"
    assert world.gateway.status("deleteScope", pb.ScopeInfo(scope=name)) == "SCOPE_NOT_FOUND"
    assert world.gateway.create_stream(world.scope, name) == "INVALID_STREAM_NAME"
    assert world.gateway.seal(world.scope, name) == "STREAM_NOT_FOUND"


def test_a_message_over_the_limit_is_refused(world: World) -> None:
    assert world.gateway.create_scope("x" * (5 * 1024 * 1024)) == "RESOURCE_EXHAUSTED"


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HALF_FRAMES = {
    "nothing": b"",
    "http/1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "half a preface": PREFACE[:11],
    "half a frame header": PREFACE + SETTINGS[:4],
    "half a headers frame": PREFACE + SETTINGS + b"\x00\x01\x00\x01\x04\x00\x00\x00\x01\x83\x86",
    "a frame of 16 MB": PREFACE + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 1000,
    "data without a stream": PREFACE + SETTINGS + b"\x00\x00\x05\x00\x00\x00\x00\x00\x09hello",
    "broken header compression": PREFACE + SETTINGS + b"\x00\x00\x04\x01\x04\x00\x00\x00\x01\xff\xff\xff\xff",
}


@pytest.mark.parametrize("kind", HALF_FRAMES)
def test_half_an_http2_conversation_disturbs_no_other_caller(system: System, world: World, kind: str) -> None:
    """The connections stay open while others are served."""
    with ExitStack() as held:
        for _ in range(20):
            held.enter_context(connect(system)).sendall(HALF_FRAMES[kind])
        assert world.gateway.segments(world.scope, "open")


def test_random_bytes_disturb_no_other_caller(system: System, world: World) -> None:
    pid, dice = system.pid("api-gateway-0"), random.Random(7)
    for number in range(50):
        preface = PREFACE + SETTINGS if number % 2 else b""
        # The server may hang up before all is sent.
        with connect(system) as connection, suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(preface + dice.randbytes(dice.randrange(1, 5000)))
    assert world.gateway.segments(world.scope, "open")
    await_ready(system, "api-gateway-0")
    assert system.pid("api-gateway-0") == pid


def connect(system: System) -> socket.socket:
    host, _, port = system.grpc_address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


# --- on the topics


def request_bytes(id: str, command: dict[str, Any]) -> bytes:
    return json.dumps({"id": id, "at": int(time.time() * 1000), "by": "test/1", "command": command}).encode()


NOT_REQUESTS = {
    "no json": b"hello",
    "nothing": b"",
    "half": b'{"id": "x", "at": 1, "by"',
    "no text": b"\xff\xfe\x00",
    "no text inside": b'{"id": "\xff", "at": 1, "by": "test", "command": {"type": "CreateScope", "scope": "s"}}',
    "a list": b"[]",
    "empty": b"{}",
    "wrong type of id": b'{"id": 7, "at": 1, "by": "test", "command": {"type": "CreateScope", "scope": "s"}}',
    "unknown command": request_bytes("id", {"type": "MakeCoffee", "scope": "s"}),
    "wrong type of field": request_bytes("id", {"type": "CreateScope", "scope": ["s"]}),
    "very deep": b'{"a": ' + b"[" * 200_000,
}


def test_what_is_no_request_is_a_dead_letter_and_its_key_goes_on(system: System, world: World) -> None:
    key = unique("garbage")
    before = metric(system, "stream-workflows-0", "sluice_dead_letters_total")
    offsets = produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, key, *NOT_REQUESTS.values())
    assert world.gateway.create_scope(key) == "SUCCESS"

    def dead_letters() -> list[Any]:
        found = [m for m in read(system.kafka_bootstrap, DEAD_LETTERS.name) if m.key() == key.encode()]
        return found if len(found) >= len(offsets) else []

    letters = eventually(dead_letters, DEAD_LETTER_S, "all dead letters of the key")
    for kind, each, letter in zip(NOT_REQUESTS, offsets, letters, strict=True):
        assert letter.value() == NOT_REQUESTS[kind], kind
        assert header(letter, "sluice_topic") == REQUESTS_STREAMS.name
        assert header(letter, "sluice_partition") == str(each.partition())
        assert header(letter, "sluice_offset") == str(each.offset())
        assert header(letter, "sluice_service").startswith("stream-workflows")
        assert "Error" in header(letter, "sluice_reason"), kind
    assert metric(system, "stream-workflows-0", "sluice_dead_letters_total") == before + len(offsets)


def test_a_record_without_a_key_is_a_dead_letter(system: System) -> None:
    mark = unique("keyless").encode()
    produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, None, mark)
    letters = eventually(
        lambda: [m for m in read(system.kafka_bootstrap, DEAD_LETTERS.name) if m.value() == mark],
        DEAD_LETTER_S,
        "a dead letter",
    )
    assert len(letters) == 1


def test_a_creation_that_is_redelivered_is_done_once(system: System, world: World) -> None:
    """Each request is decided. The first reply is the one that its caller waits for."""
    id, scope = unique("request"), unique("redelivered")
    assert world.gateway.create_scope(scope) == "SUCCESS"
    command = {"type": "CreateStream", "scope": scope, "stream": "st", "config": {"scaling": {"min_segments": 3}}}
    value = request_bytes(id, command)
    produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, f"{scope}/st", value, value, value)

    def folded() -> list[Folded]:
        return fold(system.kafka_bootstrap, [partition_of(f"{scope}/st", system.settings.partitions)])

    def created() -> list[Any]:
        """Without the attempts that a store refused."""
        ours = events(folded(), lambda e: e.aggregate == f"stream:{scope}/st")
        return [event for event in ours if not isinstance(event, WorkflowStepFailed)]

    eventually(lambda: len(created()) == 2, DEAD_LETTER_S, "the stream is created")
    # Requests of the stream's key are decided in order: behind this one ours are done.
    assert world.gateway.create_stream(scope, "st") == "STREAM_EXISTS"
    assert [type(e).__name__ for e in created()] == ["StreamCreationStarted", "StreamCreated"]
    replies = [f.entry.reply for f in folded() if f.entry.request == id and f.outcome is Outcome.COUNTED]
    assert [reply.status for reply in replies if reply] == ["SUCCESS", "STREAM_EXISTS", "STREAM_EXISTS"]
    assert len(world.gateway.segments(scope, "st")) == 3
