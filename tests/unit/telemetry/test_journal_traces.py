"""Traces through the journal: an append is part of what decided it, one for many requests is part of all."""

import asyncio

from support.counters import add
from support.engine_world import JOURNAL, EngineWorld
from unit.telemetry.spans import CALLER, TRACE, Spans, trace_of, traced

from sluice.telemetry import tracing

KEY = "k"


async def test_an_append_is_a_span_until_it_is_folded_and_its_record_carries_the_trace(world: EngineWorld) -> None:
    with traced() as spans:
        with tracing.within(tracing.begin("call", "server", {}, CALLER)):
            await world.journal.append(KEY, ())
        span = spans.ended()["append Refusal"]
    await world.journal.append(KEY, ())
    assert trace_of(span) == TRACE and spans.parent_of("append Refusal") == "call"
    log = world.broker.log(JOURNAL, world.journal.partition_of(KEY))
    carried = [dict(message.headers()).get("traceparent") for message in log]
    assert carried[0] is not None and carried[0].split(b"-")[1] == TRACE.encode() and carried[1] is None


async def test_requests_that_share_a_record_have_it_in_each_of_their_traces(world: EngineWorld, spans: Spans) -> None:
    calls = [tracing.begin(f"call {n}", "server", {}, {}) for n in range(3)]
    decided = []
    for number, call in enumerate(calls):
        with call.active():
            decided.append(world.journal.propose(KEY, add(f"{KEY}:{number}")))
    await asyncio.gather(*decided)
    for call in calls:
        call.end()
    finished = spans.finished("decide together")
    (appended,) = spans.finished("append Added")
    assert (appended.attributes or {})["sluice.outcome"] == "counted"
    assert {trace_of(span) for span in finished} == {trace_of(spans.ended_one(f"call {n}")) for n in range(3)}
    assert sum(len(span.links) for span in finished) == 2, "all but the one that has the record are linked to it"
