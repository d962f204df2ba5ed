"""What nobody should send: each gets the answer that Pravega's clients know, and the services stay as they were.

The expected answers are those of the reference of the gRPC interface, sections 3 to 6.
"""

import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import grpc
import pytest
from support.controller import Controller, config, controller, cut, info, segment_id, unique
from support.health import await_ready, metric
from support.kafka import events, fold, header, produce, read

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_CLUSTER, REQUESTS_STREAMS

pytestmark = pytest.mark.integration

SERVICES = ("api-gateway-0", "stream-workflows-0", "cluster-manager-0", "txn-manager-0")
MISSING = "missing"
DEEP = b'{"a": ' + b"[" * 200_000
TOO_LONG = "x" * 256
BAD_NAMES = ("a_b", "_", "__a", "a/b", "a b", "a\n", "a\0b", "ünïcode", "a%", TOO_LONG)


class World(NamedTuple):
    """A scope with an open stream of two segments and a sealed one, and a scope without anything."""

    scope: str
    empty: str
    gateway: Controller


class Case(NamedTuple):
    """A call that has to end with `status`; `answers`, if given, must be true of the response."""

    name: str
    rpc: str
    request: Callable[[World], Any]
    status: str
    answers: Callable[[Any], bool] | None = None


@pytest.fixture(scope="module")
def world(system: System) -> Iterator[World]:
    with controller(system.grpc_address) as gateway:
        world = World(unique("bad"), unique("bad-empty"), gateway)
        assert gateway.create_scope(world.scope) == "SUCCESS"
        assert gateway.create_scope(world.empty) == "SUCCESS"
        assert gateway.create_stream(world.scope, "open", 2) == "SUCCESS"
        assert gateway.create_stream(world.scope, "sealed", 2) == "SUCCESS"
        assert gateway.seal(world.scope, "sealed") == "SUCCESS"
        yield world


@pytest.fixture(autouse=True)
def still_healthy(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test of the session's system: all are ready, and what should work works."""
    yield
    if "world" in request.fixturenames:
        system: System = request.getfixturevalue("system")
        world: World = request.getfixturevalue("world")
        for name in SERVICES:
            await_ready(system, name)
        assert world.gateway.segments(world.scope, "open") == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
        assert world.gateway.create_scope(world.scope) == "SCOPE_EXISTS"


def scope_info(name: str) -> pb.ScopeInfo:
    return pb.ScopeInfo(scope=name)


def tags(*names: str) -> pb.Tags:
    return pb.Tags(tag=names)


def scaling(kind: int, segments: int = 1) -> Any:
    return pb.ScalingPolicy(scaleType=kind, minNumSegments=segments)  # type: ignore[arg-type]


def retention(kind: int) -> Any:
    return pb.RetentionPolicy(retentionType=kind, retentionParam=1, retentionMax=1)  # type: ignore[arg-type]


def cut_range(scope: str, stream: str, start: dict[int, int], end: dict[int, int]) -> pb.StreamCutRange:
    return pb.StreamCutRange(streamInfo=info(scope, stream), **{"from": start, "to": end})


def epoch(scope: str, stream: str, number: int) -> pb.GetEpochSegmentsRequest:
    return pb.GetEpochSegmentsRequest(streamInfo=info(scope, stream), epoch=number)


def head(scope: str, stream: str) -> pb.GetSegmentsRequest:
    return pb.GetSegmentsRequest(streamInfo=info(scope, stream))


def streams_in(scope: str, token: str = "") -> pb.StreamsInScopeRequest:
    return pb.StreamsInScopeRequest(
        scope=scope_info(scope), continuationToken=pb.ContinuationToken(token=token) if token else None
    )


def tagged(scope: str, tag: str) -> pb.StreamsInScopeWithTagRequest:
    return pb.StreamsInScopeWithTagRequest(scope=scope_info(scope), tag=tag)


def always(request: Any) -> Callable[[World], Any]:
    return lambda _: request


def named(stream: str) -> Callable[[World], Any]:
    return lambda w: config(w.scope, stream)


SCOPES = [
    Case("no name", "createScope", lambda _: scope_info(""), "INTERNAL"),
    *(Case(repr(n[:9]), "createScope", always(scope_info(n)), "INVALID_SCOPE_NAME") for n in BAD_NAMES),
    Case("there", "createScope", lambda w: scope_info(w.scope), "SCOPE_EXISTS"),
    Case("system", "createScope", lambda _: scope_info("_system"), "SCOPE_EXISTS"),
    Case("no name", "checkScopeExists", lambda _: scope_info(""), "INTERNAL"),
    Case("missing", "checkScopeExists", lambda _: scope_info(MISSING), "OK", lambda r: not r.exists),
    Case("impossible", "checkScopeExists", lambda _: scope_info("a_b/c"), "OK", lambda r: not r.exists),
    Case("there", "checkScopeExists", lambda w: scope_info(w.empty), "OK", lambda r: r.exists),
    Case("no name", "deleteScope", lambda _: scope_info(""), "INTERNAL"),
    Case("missing", "deleteScope", lambda _: scope_info(MISSING), "SCOPE_NOT_FOUND"),
    Case("impossible", "deleteScope", lambda _: scope_info("a_b"), "SCOPE_NOT_FOUND"),
    Case("not empty", "deleteScope", lambda w: scope_info(w.scope), "SCOPE_NOT_EMPTY"),
    Case("bad token", "listScopes", lambda _: pb.ScopesRequest(continuationToken={"token": "!"}), "INTERNAL"),
    Case("token of no text", "listScopes", lambda _: pb.ScopesRequest(continuationToken={"token": "/w=="}), "INTERNAL"),
    Case("no name", "listStreamsInScope", lambda _: streams_in(""), "INTERNAL"),
    Case("nothing", "listStreamsInScope", lambda _: pb.StreamsInScopeRequest(), "INTERNAL"),
    Case("missing", "listStreamsInScope", lambda _: streams_in(MISSING), "SCOPE_NOT_FOUND"),
    Case("bad token", "listStreamsInScope", lambda w: streams_in(w.scope, "???"), "INTERNAL"),
    Case("empty", "listStreamsInScope", lambda w: streams_in(w.empty), "SUCCESS", lambda r: not r.streams),
    Case("no name", "listStreamsInScopeForTag", lambda _: tagged("", "t"), "INTERNAL"),
    Case("no tag", "listStreamsInScopeForTag", lambda w: tagged(w.scope, ""), "INTERNAL"),
    Case("missing", "listStreamsInScopeForTag", lambda _: tagged(MISSING, "t"), "SCOPE_NOT_FOUND"),
]

CREATE = [
    Case("no scope", "createStream", lambda _: config("", "st"), "INTERNAL"),
    Case("nothing", "createStream", lambda _: pb.StreamConfig(), "INTERNAL"),
    Case("no name", "createStream", lambda w: config(w.scope, ""), "INVALID_STREAM_NAME"),
    *(Case(repr(n[:9]), "createStream", named(n), "INVALID_STREAM_NAME") for n in BAD_NAMES),
    Case("bad name, no scope", "createStream", lambda _: config(MISSING, "a_b"), "INVALID_STREAM_NAME"),
    Case("missing scope", "createStream", lambda _: config(MISSING, "st"), "SCOPE_NOT_FOUND"),
    Case("there", "createStream", lambda w: config(w.scope, "open", 2), "STREAM_EXISTS"),
    Case("there, sealed", "createStream", lambda w: config(w.scope, "sealed", 5), "STREAM_EXISTS"),
    Case("mark stream", "createStream", lambda w: config(w.scope, "_MARKopen"), "STREAM_EXISTS"),
    Case("no segments", "createStream", lambda w: config(w.scope, "none", 0), "FAILURE"),
    Case("no policy", "createStream", lambda w: pb.StreamConfig(streamInfo=info(w.scope, "none")), "FAILURE"),
    Case("negative segments", "createStream", lambda w: config(w.scope, "none", -1), "FAILURE"),
    Case("more segments than can be", "createStream", lambda w: config(w.scope, "none", 2**31 - 1), "FAILURE"),
]

UPDATE = [
    Case("no scope", "updateStream", lambda _: config("", "open"), "INTERNAL"),
    Case("no name", "updateStream", lambda w: config(w.scope, ""), "INTERNAL"),
    Case("missing", "updateStream", lambda w: config(w.scope, MISSING), "STREAM_NOT_FOUND"),
    Case("missing scope", "updateStream", lambda _: config(MISSING, "st"), "STREAM_NOT_FOUND"),
    Case("sealed", "updateStream", lambda w: config(w.scope, "sealed", 2), "STREAM_SEALED"),
    Case("no segments", "updateStream", lambda w: config(w.scope, "open", 0), "FAILURE"),
    Case("more segments than can be", "updateStream", lambda w: config(w.scope, "open", 2**31 - 1), "FAILURE"),
]


def configurations(rpc: str, stream: str) -> list[Case]:
    """Limits of a configuration that are checked before anything else."""

    def sent(**more: Any) -> Callable[[World], pb.StreamConfig]:
        policy = more.pop("scalingPolicy", scaling(0))
        return lambda w: pb.StreamConfig(streamInfo=info(w.scope, stream), scalingPolicy=policy, **more)

    return [
        Case("128 tags", rpc, sent(tags=tags(*map(str, range(128)))), "INTERNAL"),
        Case("128 times one tag", rpc, sent(tags=tags(*["t"] * 128)), "INTERNAL"),
        Case("long tag", rpc, sent(tags=tags("t" * 256)), "INTERNAL"),
        Case("negative rollover", rpc, sent(rolloverSizeBytes=-1), "INTERNAL"),
        Case("unknown scale type", rpc, sent(scalingPolicy=scaling(7)), "INTERNAL"),
        Case("unknown retention type", rpc, sent(retentionPolicy=retention(9)), "INTERNAL"),
    ]


STREAMS = [
    Case("no scope", "checkStreamExists", lambda _: info("", "open"), "INTERNAL"),
    Case("no name", "checkStreamExists", lambda w: info(w.scope, ""), "INTERNAL"),
    Case("missing", "checkStreamExists", lambda w: info(w.scope, MISSING), "OK", lambda r: not r.exists),
    Case("missing scope", "checkStreamExists", lambda _: info(MISSING, "st"), "OK", lambda r: not r.exists),
    Case("sealed", "checkStreamExists", lambda w: info(w.scope, "sealed"), "OK", lambda r: r.exists),
    Case("no name", "getStreamConfiguration", lambda w: info(w.scope, ""), "INTERNAL"),
    Case("missing", "getStreamConfiguration", lambda w: info(w.scope, MISSING), "NOT_FOUND"),
    Case("missing scope", "getStreamConfiguration", lambda _: info(MISSING, "st"), "NOT_FOUND"),
    Case("no name", "sealStream", lambda w: info(w.scope, ""), "INTERNAL"),
    Case("missing", "sealStream", lambda w: info(w.scope, MISSING), "STREAM_NOT_FOUND"),
    Case("missing scope", "sealStream", lambda _: info(MISSING, "st"), "STREAM_NOT_FOUND"),
    Case("sealed", "sealStream", lambda w: info(w.scope, "sealed"), "SUCCESS"),
    Case("no name", "deleteStream", lambda w: info(w.scope, ""), "INTERNAL"),
    Case("missing", "deleteStream", lambda w: info(w.scope, MISSING), "STREAM_NOT_FOUND"),
    Case("missing scope", "deleteStream", lambda _: info(MISSING, "st"), "STREAM_NOT_FOUND"),
    Case("not sealed", "deleteStream", lambda w: info(w.scope, "open"), "STREAM_NOT_SEALED"),
    Case("no name", "truncateStream", lambda w: cut(w.scope, "", {0: 0}), "INTERNAL"),
    Case("missing", "truncateStream", lambda w: cut(w.scope, MISSING, {0: 0}), "STREAM_NOT_FOUND"),
    Case("missing scope", "truncateStream", lambda _: cut(MISSING, "st", {0: 0}), "STREAM_NOT_FOUND"),
    Case("sealed", "truncateStream", lambda w: cut(w.scope, "sealed", {0: 0, 1: 0}), "STREAM_SEALED"),
    Case("empty cut", "truncateStream", lambda w: cut(w.scope, "open", {}), "FAILURE"),
    Case("half a cut", "truncateStream", lambda w: cut(w.scope, "open", {0: 0}), "FAILURE"),
    Case("foreign segment", "truncateStream", lambda w: cut(w.scope, "open", {0: 0, 7: 0}), "FAILURE"),
    Case("nothing reached", "truncateStream", lambda w: cut(w.scope, "open", {0: -1, 1: -1}), "FAILURE"),
]


def following(rpc: str) -> list[Case]:
    """The call has two names."""

    def none(response: Any) -> bool:
        return not response.segments

    return [
        Case("no name", rpc, lambda w: segment_id(w.scope, "", 0), "INTERNAL"),
        Case("missing", rpc, lambda w: segment_id(w.scope, MISSING, 0), "NOT_FOUND"),
        Case("active", rpc, lambda w: segment_id(w.scope, "open", 0), "OK", none),
        Case("unknown", rpc, lambda w: segment_id(w.scope, "open", 9), "OK", none),
        Case("sealed", rpc, lambda w: segment_id(w.scope, "sealed", 0), "OK", none),
    ]


SEGMENTS = [
    Case("no name", "getCurrentSegments", lambda w: info(w.scope, ""), "INTERNAL"),
    Case("nothing", "getCurrentSegments", lambda _: pb.StreamInfo(), "INTERNAL"),
    Case("missing", "getCurrentSegments", lambda w: info(w.scope, MISSING), "NOT_FOUND"),
    Case("missing scope", "getCurrentSegments", lambda _: info(MISSING, "st"), "NOT_FOUND"),
    Case("sealed", "getCurrentSegments", lambda w: info(w.scope, "sealed"), "OK", lambda r: not r.segmentRanges),
    Case("negative epoch", "getEpochSegments", lambda w: epoch(w.scope, "open", -1), "INTERNAL"),
    Case("unknown epoch", "getEpochSegments", lambda w: epoch(w.scope, "open", 99), "NOT_FOUND"),
    Case("missing", "getEpochSegments", lambda w: epoch(w.scope, MISSING, 0), "NOT_FOUND"),
    Case(
        "sealed", "getEpochSegments", lambda w: epoch(w.scope, "sealed", 0), "OK", lambda r: len(r.segmentRanges) == 2
    ),
    Case("no name", "getSegments", lambda w: head(w.scope, ""), "INTERNAL"),
    Case("missing", "getSegments", lambda w: head(w.scope, MISSING), "NOT_FOUND"),
    Case("missing scope", "getSegments", lambda _: head(MISSING, "st"), "NOT_FOUND"),
    Case("sealed", "getSegments", lambda w: head(w.scope, "sealed"), "OK", lambda r: len(r.segments) == 2),
    Case("both empty", "getSegmentsBetween", lambda w: cut_range(w.scope, "open", {}, {}), "INTERNAL"),
    Case(
        "backwards", "getSegmentsBetween", lambda w: cut_range(w.scope, "open", {0: 5, 1: 5}, {0: 1, 1: 1}), "UNKNOWN"
    ),
    Case("foreign segment", "getSegmentsBetween", lambda w: cut_range(w.scope, "open", {7: 0}, {}), "UNKNOWN"),
    Case("missing", "getSegmentsBetween", lambda w: cut_range(w.scope, MISSING, {0: 0}, {}), "NOT_FOUND"),
    Case("missing", "isSegmentValid", lambda w: segment_id(w.scope, MISSING, 0), "NOT_FOUND"),
    Case("unknown", "isSegmentValid", lambda w: segment_id(w.scope, "open", 9), "OK", lambda r: not r.response),
    Case("negative", "isSegmentValid", lambda w: segment_id(w.scope, "open", -1), "OK", lambda r: not r.response),
    Case("sealed", "isSegmentValid", lambda w: segment_id(w.scope, "sealed", 0), "OK", lambda r: not r.response),
    Case("empty", "isStreamCutValid", lambda w: cut(w.scope, "open", {}), "INTERNAL"),
    Case("missing", "isStreamCutValid", lambda w: cut(w.scope, MISSING, {0: 0}), "NOT_FOUND"),
    Case("half a cut", "isStreamCutValid", lambda w: cut(w.scope, "open", {0: 0}), "OK", lambda r: not r.response),
    Case("unknown epoch", "isStreamCutValid", lambda w: cut(w.scope, "open", {2**33: 0, 1: 0}), "NOT_FOUND"),
    Case("unknown number", "isStreamCutValid", lambda w: cut(w.scope, "open", {7: 0, 1: 0}), "UNKNOWN"),
]

PLACES = [
    Case("no name", "getURI", lambda w: segment_id(w.scope, "", 0), "INTERNAL"),
    Case("no scope", "getURI", lambda _: segment_id("", "st", 0), "INTERNAL"),
    Case("nothing", "getURI", lambda _: pb.SegmentId(), "INTERNAL"),
    Case("missing scope", "getURI", lambda _: segment_id(MISSING, "st", 0), "OK", lambda r: r.endpoint and r.port),
    Case("table", "getURI", lambda w: segment_id(w.scope, "t_kvtable", 0), "OK", lambda r: r.endpoint and r.port),
    Case("negative", "getURI", lambda w: segment_id(w.scope, "open", -1), "OK", lambda r: r.endpoint and r.port),
    Case("all", "getControllerServerList", lambda _: pb.ServerRequest(), "OK", lambda r: len(r.nodeURI) > 0),
    Case("nothing", "getDelegationToken", lambda _: pb.StreamInfo(), "OK", lambda r: not r.delegationToken),
    Case("missing", "getDelegationToken", lambda _: info(MISSING, "st"), "OK", lambda r: not r.delegationToken),
]

CASES = [
    *SCOPES,
    *CREATE,
    *configurations("createStream", "none"),
    *UPDATE,
    *configurations("updateStream", "open"),
    *STREAMS,
    *SEGMENTS,
    *following("getSegmentsImmediatlyFollowing"),
    *following("getSegmentsImmediatelyFollowing"),
    *PLACES,
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.rpc}-{case.name}" for case in CASES])
def test_a_wrong_argument_gets_the_answer_clients_know(world: World, case: Case) -> None:
    request = case.request(world)
    assert world.gateway.status(case.rpc, request) == case.status
    if case.answers is not None:
        response = world.gateway.call(case.rpc, request)
        assert case.answers(response), response


def test_nothing_was_created_by_what_was_refused(world: World) -> None:
    assert world.gateway.streams(world.scope) == ["_MARKopen", "_MARKsealed", "open", "sealed"]
    assert world.gateway.streams(world.empty) == []


# --- on the wire


def test_bytes_that_are_no_message_are_an_internal_error(world: World) -> None:
    dice = random.Random(1)
    service = pb.DESCRIPTOR.services_by_name["ControllerService"]
    for method in service.methods:
        with pytest.raises(grpc.RpcError, match=r"INTERNAL|UNIMPLEMENTED"):
            send_raw(world, method.name, b"\xff" + dice.randbytes(40))


def test_a_call_that_does_not_exist_is_unimplemented(world: World) -> None:
    with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
        send_raw(world, "noSuchCall", b"")


def send_raw(world: World, rpc: str, data: bytes) -> bytes:
    service = pb.DESCRIPTOR.services_by_name["ControllerService"]
    answer: bytes = world.gateway.channel.unary_unary(
        f"/{service.full_name}/{rpc}", request_serializer=None, response_deserializer=None
    )(data, timeout=10)
    return answer


def test_a_message_over_the_limit_is_refused(world: World) -> None:
    assert world.gateway.status("createScope", scope_info("x" * (5 * 1024 * 1024))) == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_name_of_any_length_is_just_a_bad_name(world: World, size: int) -> None:
    assert world.gateway.status("createScope", scope_info("x" * size)) == "INVALID_SCOPE_NAME"
    assert world.gateway.status("deleteScope", scope_info("x" * size)) == "SCOPE_NOT_FOUND"
    assert world.gateway.create_stream(world.scope, "x" * size) == "INVALID_STREAM_NAME"
    assert world.gateway.seal(world.scope, "x" * size) == "STREAM_NOT_FOUND"


def test_a_request_too_large_for_its_topic_is_not_to_be_sent_again(world: World) -> None:
    assert world.gateway.status("createScope", scope_info("x" * 3_500_000)) == "INTERNAL"


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
def test_half_an_http2_conversation_disturbs_nobody(system: System, world: World, kind: str) -> None:
    """The connections stay open while others are served."""
    with ExitStack() as held:
        for _ in range(20):
            connection = held.enter_context(connect(system))
            connection.sendall(HALF_FRAMES[kind])
        assert world.gateway.segments(world.scope, "open")


def test_random_bytes_disturb_nobody(system: System, world: World) -> None:
    dice = random.Random(7)
    for number in range(50):
        with connect(system) as connection:
            try:
                connection.sendall(
                    (PREFACE + SETTINGS if number % 2 else b"") + dice.randbytes(dice.randrange(1, 5000))
                )
            except (BrokenPipeError, ConnectionResetError):
                continue
    assert world.gateway.segments(world.scope, "open")


def connect(system: System) -> socket.socket:
    host, _, port = system.grpc_address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


# --- on the topics


def request_bytes(id: str, command: dict[str, Any]) -> bytes:
    return json.dumps({"id": id, "at": int(time.time() * 1000), "by": "test/1", "command": command}).encode()


def not_requests() -> dict[str, bytes]:
    return {
        "no json": b"hello",
        "nothing": b"",
        "half": b'{"id": "x", "at": 1, "by"',
        "no text": b"\xff\xfe\x00",
        "no text inside": b'{"id": "\xff", "at": 1, "by": "test", "command": {"type": "CreateScope", "scope": "s"}}',
        "a list": b"[]",
        "empty": b"{}",
        "wrong type of id": b'{"id": 7, "at": 1, "by": "test", "command": {"type": "CreateScope", "scope": "s"}}',
        "unknown command": request_bytes(unique("id"), {"type": "MakeCoffee", "scope": "s"}),
        "wrong type of field": request_bytes(unique("id"), {"type": "CreateScope", "scope": ["s"]}),
        "wrong topic": request_bytes(
            unique("id"), {"type": "Heartbeat", "service": "x", "instance": "x", "endpoints": {}}
        ),
        "very deep": DEEP,
    }


@pytest.mark.parametrize("kind", not_requests())
def test_what_is_no_request_is_kept_as_a_dead_letter_and_its_key_goes_on(
    system: System, world: World, kind: str
) -> None:
    key, value = unique("garbage"), not_requests()[kind]
    before = metric(system, "stream-workflows-0", "sluice_dead_letters_total")
    (sent,) = produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, key, value)
    assert world.gateway.create_scope(key) == "SUCCESS"
    letter = dead_letter(system, key)
    assert letter.value() == value
    assert header(letter, "sluice_topic") == REQUESTS_STREAMS.name
    assert header(letter, "sluice_partition") == str(sent.partition())
    assert header(letter, "sluice_offset") == str(sent.offset())
    assert header(letter, "sluice_service").startswith("stream-workflows")
    assert "Error" in header(letter, "sluice_reason")
    assert metric(system, "stream-workflows-0", "sluice_dead_letters_total") == before + 1


def test_a_record_without_a_key_is_kept_as_a_dead_letter(system: System, world: World) -> None:
    mark = unique("keyless").encode()
    produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, None, mark)
    letters = eventually(
        lambda: [m for m in read(system.kafka_bootstrap, DEAD_LETTERS.name) if m.value() == mark], 20, "a dead letter"
    )
    assert len(letters) == 1


def test_what_is_no_heartbeat_is_kept_as_a_dead_letter_and_the_cluster_goes_on(system: System, world: World) -> None:
    mark = unique("member")
    garbage = [f"{mark}: hello".encode(), request_bytes(mark, {"type": "CreateScope", "scope": mark}), DEEP]
    beat = {"type": "Heartbeat", "service": "test", "instance": mark, "endpoints": {"test": mark}}
    produce(system.kafka_bootstrap, REQUESTS_CLUSTER.name, "cluster", *garbage, request_bytes(mark, beat))
    eventually(
        lambda: events(fold(system.kafka_bootstrap), lambda e: getattr(e, "instance", None) == mark),
        20,
        "the heartbeat behind the garbage is recorded",
    )
    letters = [m for m in read(system.kafka_bootstrap, DEAD_LETTERS.name) if m.value() in garbage]
    of_cluster = [m for m in letters if header(m, "sluice_topic") == REQUESTS_CLUSTER.name]
    assert sorted(m.value() or b"" for m in of_cluster) == sorted(garbage)
    assert all(header(m, "sluice_reason") for m in of_cluster)
    assert not world.gateway.call("checkScopeExists", scope_info(mark)).exists


def dead_letter(system: System, key: str) -> Any:
    """The one dead letter of a key."""

    def found() -> list[Any]:
        return [m for m in read(system.kafka_bootstrap, DEAD_LETTERS.name) if m.key() == key.encode()]

    (letter,) = eventually(found, 20, f"a dead letter of {key}")
    return letter


def replies_to(system: System, request: str) -> list[str]:
    entries = (f.entry for f in fold(system.kafka_bootstrap))
    return [e.reply.status for e in entries if e.request == request and e.reply is not None]


def test_a_request_that_is_twice_in_the_topic_is_done_once(system: System, world: World) -> None:
    """Each is decided. The first reply is the one that the asker waits for."""
    scope, asked = unique("twice"), unique("request")
    value = request_bytes(asked, {"type": "CreateScope", "scope": scope})
    produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, scope, value, value)
    assert eventually(lambda: world.gateway.create_scope(scope) == "SCOPE_EXISTS", 20, "the scope is there")
    assert replies_to(system, asked) == ["SUCCESS", "SCOPE_EXISTS"]
    assert len(events(fold(system.kafka_bootstrap), lambda e: e.aggregate == f"scope:{scope}")) == 1


def test_a_creation_that_is_often_in_the_topic_is_done_once(system: System, world: World) -> None:
    asked, name = unique("request"), unique("st")
    command = {"type": "CreateStream", "scope": world.empty, "stream": name, "config": {"scaling": {"min_segments": 3}}}
    value = request_bytes(asked, command)
    produce(system.kafka_bootstrap, REQUESTS_STREAMS.name, f"{world.empty}/{name}", value, value, value)

    def created() -> list[Any]:
        return events(fold(system.kafka_bootstrap), lambda e: e.aggregate == f"stream:{world.empty}/{name}")

    assert eventually(lambda: len(created()) == 2 and created(), 20, "the stream is created")
    # The requests of the stream's key that come behind ours see to it that ours are through.
    assert world.gateway.create_stream(world.empty, name) == "STREAM_EXISTS"
    assert [type(e).__name__ for e in created()] == ["StreamCreationStarted", "StreamCreated"]
    assert replies_to(system, asked) == ["SUCCESS", "STREAM_EXISTS", "STREAM_EXISTS"]
    assert len(world.gateway.segments(world.empty, name)) == 3
    assert world.gateway.seal(world.empty, name) == "SUCCESS"
    assert world.gateway.delete(world.empty, name) == "SUCCESS"
