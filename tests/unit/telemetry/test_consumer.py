"""What a consumer shows: its queue, its oldest request, its partitions; and the spans of what it handles."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY
from support.engine_world import REQUESTS, EngineWorld, settle
from support.hand_source import HandConsumer
from unit.telemetry.spans import CALLER, TRACE, Spans, trace_of

from sluice.engine.consumer import Continuation, Delivery
from sluice.memory.broker import MemoryMessage
from sluice.telemetry import tracing

TRACED = {"ce_type": b"CreateStream", "traceparent": CALLER["traceparent"].encode()}


def gauge(name: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"topic": REQUESTS})


@pytest.fixture
async def made(world: EngineWorld) -> AsyncIterator[HandConsumer]:
    """A consumer that owns partition 0."""
    made = HandConsumer(world)
    await made.assign(0)
    yield made
    await made.consumer.stop()


class Traced:
    """Handlers that decide and then wait for `go`, or leave the waiting to a continuation."""

    def __init__(self, made: HandConsumer, has_continuation: bool = False) -> None:
        self.made = made
        self.go = asyncio.Event()
        self.has_continuation = has_continuation
        made.handler = self._handle

    async def _handle(self, delivery: Delivery) -> Continuation | None:
        tracing.child("decide").end()
        if delivery.offset == 13:
            raise ValueError("cannot be handled")
        if self.has_continuation:
            return self._go_on
        await self.go.wait()
        return None

    async def _go_on(self) -> None:
        await self.go.wait()
        tracing.child("carry out").end()

    async def take(self, offset: int, headers: dict[str, bytes]) -> None:
        message = MemoryMessage(REQUESTS, 0, offset, self.made.key("a", 0), b"", headers=headers)
        self.made.consumer.received([message])
        await settle()


async def test_the_oldest_open_request_shows_until_it_is_acknowledged(made: HandConsumer) -> None:
    ages = (("stucka", 0, 50_000), ("stucka", 1, 10_000), ("stuckb", 2, 0))
    made.consumer.received([made.message(0, name, offset, age_ms=age) for name, offset, age in ages])
    await settle()
    made.consumer.publish()
    assert gauge("sluice_open_records") == 3 and gauge("sluice_keys_at_work") == 2
    assert gauge("sluice_oldest_open_record_seconds") == pytest.approx(50, abs=0.01)
    assert gauge("sluice_partitions_owned") == 1
    made.deliveries[0].acknowledge()
    made.consumer.publish()
    assert gauge("sluice_oldest_open_record_seconds") == pytest.approx(10, abs=0.01), "the next one that waits"
    made.go.set()
    await settle()
    made.consumer.publish()
    assert gauge("sluice_open_records") == 0 and gauge("sluice_oldest_open_record_seconds") == 0


async def test_partitions_that_are_gone_leave_nothing_behind(made: HandConsumer) -> None:
    before = gauge("sluice_rebalances_total") or 0
    await made.take(0, "stuck", 0)
    await made.revoke(0)
    made.consumer.publish()
    assert gauge("sluice_partitions_owned") == 0 and gauge("sluice_open_records") == 0
    assert gauge("sluice_oldest_open_record_seconds") == 0
    await made.assign(1)
    assert gauge("sluice_rebalances_total") == before + 1


@pytest.mark.parametrize("has_continuation", [False, True])
async def test_a_request_is_one_span_until_all_of_it_is_done(
    made: HandConsumer, has_continuation: bool, spans: Spans
) -> None:
    scene = Traced(made, has_continuation)
    await scene.take(0, TRACED)
    assert set(spans.ended()) == {"decide"}
    scene.go.set()
    await settle()
    assert spans.parent_of("decide") == "handle CreateStream"
    assert trace_of(spans.ended()["handle CreateStream"]) == TRACE
    if has_continuation:
        assert spans.parent_of("carry out") == "handle CreateStream"


async def test_a_request_that_cannot_be_handled_is_an_error_of_its_span(made: HandConsumer, spans: Spans) -> None:
    await Traced(made).take(13, TRACED)
    assert "cannot be handled" in (spans.ended()["handle CreateStream"].status.description or "")
    assert len(made.kept) == 1


async def test_a_request_without_a_trace_does_not_run_in_that_of_another(made: HandConsumer, spans: Spans) -> None:
    scene = Traced(made)
    scene.go.set()
    await scene.take(0, TRACED)
    await scene.take(1, {"ce_type": b"CreateStream"})
    assert set(spans.ended()) == {"decide", "handle CreateStream"}


async def test_work_of_our_own_belongs_to_the_trace_that_began_it(made: HandConsumer, spans: Spans) -> None:
    async def job() -> None:
        tracing.child("workflow").end()

    with tracing.within(tracing.begin("call", "server", {}, {})):
        made.consumer.executor.run(0, "queue", job)
    await settle()
    assert spans.parent_of("workflow") == "call"
