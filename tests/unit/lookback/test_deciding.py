"""Decisions of the past: which are found, in which order, and whether what they asked for was carried out."""

from typing import Any

import msgspec
from unit.lookback.recorded import RecordedTopics

from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment
from sluice.domain.status import Status
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import (
    DecisionRecorded,
    Replacement,
    StreamScaleStarted,
    StreamTruncated,
    StreamTruncationStarted,
)
from sluice.lookback.deciding import DECISIONS, Decisions, DecisionsQuestion
from sluice.lookback.jobs import JobLimit, run_job

NOW = 1_700_000_000_000
MINUTE = 60_000
X, Y = StreamId("demo", "x"), StreamId("other", "y")


def world() -> RecordedTopics:
    topics = RecordedTopics()
    topics.create(X, NOW - 90 * MINUTE)
    topics.create(Y, NOW - 90 * MINUTE)
    return topics


def decided(topics: RecordedTopics, id: StreamId, at: int, code: str = "steady", **more: Any) -> None:
    """A decision that was made a second before it was recorded."""
    kind = more.pop("kind", DecisionKind.SCALE)
    event = DecisionRecorded(*id, kind=kind, code=code, reason="because", at=at - 1000, **more)
    topics.decide(id.key, at, event)


def ask(topics: RecordedTopics, **more: Any) -> Decisions:
    question = DecisionsQuestion(**{"since": NOW - 60 * MINUTE, "until": NOW, **more})
    return run_job(DECISIONS, question, topics, NOW)


def test_decisions_of_a_span_come_the_latest_first_of_one_stream_or_of_all() -> None:
    topics = world()
    decided(topics, X, NOW - 70 * MINUTE, "before")
    decided(topics, X, NOW - 50 * MINUTE, "split", numbers={"segments": 1})
    decided(topics, Y, NOW - 40 * MINUTE, "no-cut", kind=DecisionKind.RETENTION)
    decided(topics, X, NOW - 30 * MINUTE)
    found = ask(topics)
    assert [(one.stream, one.code) for one in found.items] == [
        (str(X), "steady"),
        (str(Y), "no-cut"),
        (str(X), "split"),
    ]
    assert found.complete and found.next is None and found.searched_to == NOW - 60 * MINUTE
    first = found.items[-1]
    assert (first.at, first.recorded_at, first.numbers) == (
        NOW - 50 * MINUTE - 1000,
        NOW - 50 * MINUTE,
        {"segments": 1},
    )
    assert [one.code for one in ask(topics, stream=X).items] == ["steady", "split"]
    assert [one.code for one in ask(topics, kind=DecisionKind.RETENTION).items] == ["no-cut"]
    assert [one.code for one in ask(topics, code="split").items] == ["split"]
    decided(topics, X, NOW - 20 * MINUTE, "merge", acts=True)
    assert [one.code for one in ask(topics, acts=True).items] == ["merge"]
    assert [one.code for one in ask(topics, acts=False).items] == ["steady", "no-cut", "split"]


def test_pages_have_each_decision_once() -> None:
    topics = world()
    for minutes in range(50, 0, -1):
        decided(topics, X if minutes % 3 else Y, NOW - minutes * MINUTE, f"{minutes}")
    seen: list[str] = []
    page = ask(topics, limit=7)
    while page.next is not None:
        seen += [one.code for one in page.items]
        page = ask(topics, limit=7, before=page.next)
    assert [*seen, *(one.code for one in page.items)] == [f"{minutes}" for minutes in range(1, 51)]


def test_what_was_asked_for_was_carried_out_refused_or_is_not_known() -> None:
    topics = world()
    at = NOW - 30 * MINUTE
    replacement = Replacement((0,), (Segment(1 << 32 | 1, 0.0, 0.5), Segment(1 << 32 | 2, 0.5, 1.0)), at)
    started = StreamScaleStarted(*X, replacement=replacement)
    topics.decide(X.key, at, started, request="scale-1", reply=Reply(Status.STARTED))
    decided(topics, X, at + 1, "scaled", acts=True, request="scale-1")
    truncation = StreamTruncationStarted(*Y, cut={0: 5}, deleted=(), size_till=5, request="truncate-1")
    topics.decide(Y.key, at + 2, truncation)
    topics.decide(Y.key, at + 3, StreamTruncated(*Y))
    decided(topics, Y, at + 4, "truncated", acts=True, request="truncate-1")
    topics.decide(Y.key, at + 5, request="truncate-2", reply=Reply(Status.FAILURE, "another policy by now"))
    decided(topics, Y, at + 6, "refused", acts=True, request="truncate-2")
    decided(topics, Y, at + 7, "lost", acts=True, request="truncate-3")
    decided(topics, Y, at + 8, "nothing asked")
    assert {one.code: one.carried_out for one in ask(topics).items} == {
        "scaled": True, "truncated": True, "refused": False, "lost": None, "nothing asked": None,
    }  # fmt: skip
    # What a page begins behind is looked at as far as its decisions need it.
    assert [one.carried_out for one in ask(topics, code="scaled", limit=1).items] == [True]


def test_a_decision_that_did_not_count_is_left_out() -> None:
    topics = world()
    event = DecisionRecorded(*X, kind=DecisionKind.SCALE, code="void", reason="because", at=1)
    topics.decide(X.key, NOW - 20 * MINUTE, event, expect={X.aggregate: 77})
    assert ask(topics).items == []


def test_without_time_for_all_the_answer_says_where_to_go_on() -> None:
    topics = world()
    for minutes in range(50, 0, -1):
        decided(topics, X, NOW - minutes * MINUTE, f"{minutes}")
    seconds = iter(range(10_000))
    limit = JobLimit(max_s=30, clock=lambda: float(next(seconds)))
    question = DecisionsQuestion(NOW - 60 * MINUTE, NOW, X, limit=1000)
    found = run_job(DECISIONS, question, topics, NOW, limit=limit)
    assert not found.complete and found.next is not None
    following = run_job(DECISIONS, msgspec.structs.replace(question, before=found.next), topics, NOW)
    assert [one.code for one in (*found.items, *following.items)] == [f"{minutes}" for minutes in range(1, 51)]
