"""Traces through the journal: an append is part of whoever decided it, one for many requests is part of all."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.memory_journal import JournalWorld, settle
from unit.telemetry.spans import CALLER, TRACE, trace_of, traced

from sluice.domain import events as ev
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.journal.group_commit import GroupCommit
from sluice.messaging.requests import Headers
from sluice.telemetry import tracing
from txn_manager.abort_agent import _aborting


def creates(scope: str) -> Any:
    def decide(_reader: Reader, _context: Context) -> Decision:
        return Decision((ev.ScopeCreated(scope=scope, at=1),), Reply("SUCCESS"))

    return decide


async def test_an_append_is_a_span_until_it_is_folded_and_its_record_carries_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = JournalWorld()
    sent: list[Headers] = []
    appending = world.first.send_quietly

    def send(topic: str, key: str, value: bytes, headers: Headers, failed: Any) -> None:
        sent.append(headers)
        appending(topic, key, value, headers, failed)

    monkeypatch.setattr(world.first, "send_quietly", send)
    with traced() as spans:
        with tracing.within(tracing.begin("call", "server", {}, CALLER)):
            await world.first.journal.execute("sc", "1", creates("sc"))
        span = spans.ended()["append ScopeCreated"]
    await world.first.journal.execute("other", "2", creates("other"))
    assert trace_of(span) == TRACE and spans.parent_of("append ScopeCreated") == "call"
    assert (span.attributes or {})["sluice.outcome"] == "counted"
    carried = [dict(headers).get("traceparent") for headers in sent]
    assert str(carried[0]).split("-")[1] == TRACE and carried[1] is None


async def test_requests_that_share_a_record_have_it_in_each_of_their_traces() -> None:
    world = JournalWorld()
    group = GroupCommit(world.first.journal)
    with traced() as spans:
        calls = [tracing.begin(f"call {n}", "server", {}, {}) for n in range(3)]
        decided = []
        for number, call in enumerate(calls):
            with call.active():
                decided.append(group.submit("sc", str(number), 1, creates("sc" if not number else f"sc{number}")))
        await settle(50)
        assert all(future.done() for future in decided)
        for call in calls:
            call.end()
        finished = spans.finished("decide together")
    assert {trace_of(span) for span in finished} == {trace_of(spans.ended_one(f"call {n}")) for n in range(3)}
    assert sum(len(span.links) for span in finished) == 2, "all but the one that has the record are linked to it"
    await group.stop()


def test_an_abort_brings_its_trace_along_only_while_traces_are_on() -> None:
    headers = [("ce_type", b"AbortTransaction"), ("traceparent", CALLER["traceparent"].encode())]
    message = SimpleNamespace(key=b"a", value=b"{}", partition=0, offset=1, timestamp=1.0, headers=headers)
    assert _aborting(message).headers == ()
    with traced():
        assert _aborting(message).headers == tuple(headers)
        message.headers = dict(headers)
        assert _aborting(message).headers == tuple(headers)
        message.headers = None
        assert _aborting(message).headers == ()
