"""Requests that were replied to: which are found, in which order, and what they were about."""

from typing import Any

from unit.lookback.recorded import RecordedTopics

from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId
from sluice.domain.status import Status
from sluice.domain.stream.events import StreamSealed
from sluice.lookback.jobs import run_job
from sluice.lookback.replies import REPLIES, RepliedRequests, RepliesQuestion

NOW = 1_700_000_000_000
MINUTE = 60_000
X, Y = StreamId("demo", "x"), StreamId("other", "y")


def replied(topics: RecordedTopics, id: StreamId, at: int, request: str, reply: Reply, *events: Any) -> None:
    topics.decide(id.key, at, *events, request=request, reply=reply)


def ask(topics: RecordedTopics, **more: Any) -> RepliedRequests:
    return run_job(REPLIES, RepliesQuestion(**{"since": NOW - 60 * MINUTE, "until": NOW, **more}), topics, NOW)


def test_replies_of_a_span_come_the_latest_first_by_outcome() -> None:
    topics = RecordedTopics()
    for id in (X, Y):
        topics.create(id, NOW - 90 * MINUTE)
    replied(topics, X, NOW - 70 * MINUTE, "before-1", Reply(Status.SUCCESS))
    replied(topics, X, NOW - 50 * MINUTE, "seal-1", Reply(Status.SUCCESS), StreamSealed(*X))
    topics.decide(X.key, NOW - 45 * MINUTE, request="work-1")
    topics.decide(
        Y.key, NOW - 40 * MINUTE, request="refused-1", reply=Reply(Status.STREAM_SEALED, "sealed"),
        expect={Y.aggregate: 1},
    )  # fmt: skip
    topics.decide(Y.key, NOW - 30 * MINUTE, request="void-1", reply=Reply(Status.SUCCESS), expect={Y.aggregate: 77})
    found = ask(topics)
    assert [one.request for one in found.items] == ["refused-1", "seal-1"], "what is void replied to nobody"
    refused, sealed = found.items
    assert (refused.status, refused.reason, refused.aggregates) == (Status.STREAM_SEALED, "sealed", [Y.aggregate])
    assert (sealed.aggregates, sealed.types) == ([X.aggregate], ["StreamSealed"])
    assert found.complete and found.next is None
    assert [one.request for one in ask(topics, refused=True).items] == ["refused-1"]
    assert [one.request for one in ask(topics, refused=False).items] == ["seal-1"]


def test_pages_of_replies_have_each_request_once() -> None:
    topics = RecordedTopics()
    topics.create(X, NOW - 90 * MINUTE)
    for minutes in range(50, 0, -1):
        replied(topics, X, NOW - minutes * MINUTE, f"{minutes}", Reply(Status.SUCCESS))
    seen: list[str] = []
    page = ask(topics, limit=7)
    while page.next is not None:
        seen += [one.request for one in page.items]
        page = ask(topics, limit=7, before=page.next)
    assert [*seen, *(one.request for one in page.items)] == [f"{minutes}" for minutes in range(1, 51)]
