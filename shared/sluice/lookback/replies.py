"""The job that lists requests that were replied to, the latest first: what the journal says became of each.

A request is replied to by one entry, with the events that it led to, or none if it was refused. A request whose work
takes longer is replied to when that ends.
"""

import msgspec

from sluice.domain.model import JournalEntry, JournalRecord
from sluice.domain.status import DONE, Status
from sluice.engine.fold import Outcome
from sluice.lookback.backwards import BackwardSearch, Order
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import KafkaRecord


class RepliesQuestion(msgspec.Struct, frozen=True):
    """At most `limit` requests replied to in [since, until), epoch ms.

    `refused`: only those that were, or only those that were not. With `before` only those before that one.
    """

    since: int
    until: int
    refused: bool | None = None
    before: Order | None = None
    limit: int = 100


class RepliedRequest(msgspec.Struct, frozen=True):
    """A request and its reply; `order` begins with when the broker appended that, epoch ms.

    `aggregates` are those it changed, or else those that the refusal rests on. `by` is the instance that decided it;
    `principal` who called, empty if that is not known. `types` are those of the events.
    """

    order: Order
    request: str
    status: Status
    reason: str
    by: str
    principal: str
    aggregates: list[str]
    types: list[str]


class RepliedRequests(msgspec.Struct, frozen=True):
    """The latest first; `searched_to`, `complete`, `next` and `kept_from` as in `FoundEvents`."""

    items: list[RepliedRequest]
    searched_to: int
    complete: bool
    next: Order | None = None
    kept_from: int | None = None


class _Collector:
    """See `Collector`: entries that reply to a request."""

    def __init__(self, question: RepliesQuestion, before: Order) -> None:
        self.found: list[tuple[Order, RepliedRequest]] = []
        self._question = question
        self._before = before

    def look_at(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        """See Collector."""
        for number, (entry, outcome) in enumerate(zip(record.entries, outcomes, strict=True)):
            order = (message.at, message.partition, message.offset, number, 0)
            if outcome is Outcome.COUNTED and order < self._before and message.at >= self._question.since:
                one = _replied(order, record.by, entry)
                if one is not None and self._question.refused in (None, one.status not in DONE):
                    self.found.append((order, one))


def _replied(order: Order, by: str, entry: JournalEntry) -> RepliedRequest | None:
    if entry.request is None or entry.reply is None:
        return None
    changed = {event.aggregate for event in entry.events}
    return RepliedRequest(
        order=order,
        request=entry.request,
        status=entry.reply.status,
        reason=entry.reply.reason,
        by=by,
        principal=entry.principal,
        aggregates=sorted(changed or entry.expect),
        types=list(dict.fromkeys(type(event).__name__ for event in entry.events)),
    )


def _replies(context: JobContext, question: RepliesQuestion) -> RepliedRequests:
    """Raises LookbackError."""
    before = question.before or (min(question.until, context.now_ms + 1), 0, 0, 0, 0)
    upper = before[0] + (1 if any(before[1:]) else 0)
    collector = _Collector(question, before)
    search = BackwardSearch(context, range(context.partitions), question.since, upper, collector)
    search.go_back(lambda: len(search.found()) > question.limit)
    found = [one for _, one in search.found()]
    items = found[: question.limit]
    if len(found) > question.limit:
        return RepliedRequests(items, items[-1].order[0], complete=False, next=items[-1].order)
    if search.complete:
        return RepliedRequests(items, question.since, complete=True, kept_from=search.kept_from)
    goes_on = (search.searched_to, 0, 0, 0, 0) if search.searched_to < upper else before
    return RepliedRequests(items, search.searched_to, complete=False, next=goes_on, kept_from=search.kept_from)


REPLIES = Job("replies", RepliesQuestion, RepliedRequests, _replies)
