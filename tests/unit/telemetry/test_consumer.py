"""What a keyed consumer tells: its queue, its oldest record, its partitions; and the spans of what it handles."""

import asyncio
import time
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.memory_journal import settle
from unit.telemetry.spans import CALLER, TRACE, trace_of, traced

from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer, Rest
from sluice.telemetry import tracing

TOPIC = "test.telemetry"


class Message:
    def __init__(self, offset: int, age_s: float = 0.0, key: bytes = b"a", traced: bool = False) -> None:
        self._offset, self._key = offset, key
        self._at_ms = int((time.time() - age_s) * 1000)
        self._headers = [("ce_type", b"CreateStream"), ("traceparent", CALLER["traceparent"].encode())]
        self._headers = self._headers if traced else self._headers[:1]

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return b""

    def timestamp(self) -> tuple[int, int]:
        return 2, self._at_ms

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers

    def error(self) -> None:
        return None


class Scene:
    """A consumer whose handlers wait for `go`; with `rests` they leave the waiting to what is done beside."""

    def __init__(self, rests: bool = False) -> None:
        self.go = asyncio.Event()
        self.rests = rests
        self.failures: list[Exception] = []
        self.consumer = KeyedConsumer({}, TOPIC, "g", self.handle, self.assigned, self.failed)

    async def handle(self, delivery: Delivery) -> Rest | None:
        tracing.child("decide").end()
        if delivery.key == "bad":
            raise ValueError("cannot be handled")
        if self.rests:
            return self.rest
        await self.go.wait()
        return None

    async def rest(self) -> None:
        await self.go.wait()
        tracing.child("carry out").end()

    async def assigned(self, _partition: int) -> None:
        return None

    async def failed(self, _delivery: Delivery, error: Exception) -> None:
        self.failures.append(error)

    async def take(self, *messages: Any) -> None:
        self.consumer._assigned([0])
        await settle()
        self.consumer._on_batch(list(messages))
        await settle()


def gauge(name: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"topic": TOPIC})


async def test_the_oldest_open_record_shows_until_it_is_accepted() -> None:
    scene = Scene()
    await scene.take(Message(0, 50.0, b"a"), Message(1, 10.0, b"a"), Message(2, 0.0, b"b"))
    scene.consumer.publish()
    assert gauge("sluice_open_records") == 3 and gauge("sluice_keys_at_work") == 2
    assert gauge("sluice_oldest_open_record_seconds") == pytest.approx(50, abs=5)
    assert gauge("sluice_partitions_owned") == 1
    scene.consumer.accepted(0, 0)
    scene.consumer.accepted(0, 2)
    assert scene.consumer.oldest_s() == pytest.approx(10, abs=5), "the next one that waits"
    scene.go.set()
    await settle()
    scene.consumer.publish()
    assert gauge("sluice_open_records") == 0 and gauge("sluice_oldest_open_record_seconds") == 0


async def test_partitions_that_are_gone_leave_nothing_behind() -> None:
    scene = Scene()
    before = gauge("sluice_rebalances_total") or 0
    await scene.take(Message(0, 50.0))
    scene.consumer._revoked([0])
    scene.consumer.publish()
    assert gauge("sluice_partitions_owned") == 0 and gauge("sluice_open_records") == 0
    assert gauge("sluice_oldest_open_record_seconds") == 0
    assert gauge("sluice_rebalances_total") == before + 1
    assert scene.consumer.joined, "a member without partitions is a standby"


async def test_a_member_whom_the_group_lost_has_to_join_again() -> None:
    scene = Scene()
    await scene.take()
    assert (scene.consumer.joined, scene.consumer.partitions) == (True, {0})
    scene.consumer._lost([0])
    assert (scene.consumer.joined, scene.consumer.partitions) == (False, set())
    scene.consumer._assigned([])
    assert (scene.consumer.joined, scene.consumer.partitions) == (True, set())


@pytest.mark.parametrize("rests", [False, True])
async def test_a_record_is_one_span_until_all_is_done(rests: bool) -> None:
    with traced() as spans:
        scene = Scene(rests)
        await scene.take(Message(0, traced=True))
        assert set(spans.ended()) == {"decide"}
        scene.go.set()
        await settle()
        assert spans.parent_of("decide") == "handle CreateStream"
        assert trace_of(spans.ended()["handle CreateStream"]) == TRACE
        if rests:
            assert spans.parent_of("carry out") == "handle CreateStream"


async def test_a_record_that_cannot_be_handled_is_an_error_of_its_span() -> None:
    with traced() as spans:
        scene = Scene()
        await scene.take(Message(0, key=b"bad", traced=True))
        assert "cannot be handled" in (spans.ended()["handle CreateStream"].status.description or "")
    assert len(scene.failures) == 1


async def test_a_record_of_no_trace_has_no_span_and_does_not_run_in_that_of_another() -> None:
    with traced() as spans:
        scene = Scene()
        scene.go.set()
        await scene.take(Message(0, traced=True), Message(1))
        await settle()
        assert set(spans.ended()) == {"decide", "handle CreateStream"}


async def test_work_of_our_own_belongs_to_the_trace_that_asked_for_it() -> None:
    with traced() as spans:
        scene = Scene()
        scene.consumer._assigned([0])

        async def job(_delivery: Delivery) -> None:
            tracing.child("workflow").end()

        with tracing.within(tracing.begin("call", "server", {}, {})):
            scene.consumer.run(0, "lane", job)
        await settle()
        assert spans.parent_of("workflow") == "call"
