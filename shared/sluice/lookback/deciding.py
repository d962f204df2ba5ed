"""What was decided on scaling and retention in a span of time, of one stream or of all, as the journal has it.

A decision that acts names its request. That is decided before the decision is recorded, since both pass the queue of
the stream's key: so whether it was carried out stands further back in the journal, as far as the request's work took.
Decisions that only say that an earlier one is under way are not recorded.
"""

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry, JournalRecord
from sluice.domain.status import DONE
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import DecisionRecorded, StreamTruncationStarted
from sluice.engine.fold import Outcome
from sluice.insight.decisions import DecisionModel
from sluice.lookback.backwards import BackwardSearch, Order
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import KafkaRecord

MARGIN_MS = 60_000
"""How far before the span requests of its decisions are looked for."""


class DecisionsQuestion(msgspec.Struct, frozen=True):
    """At most `limit` decisions recorded in [since, until), epoch ms; of one stream if it is given.

    `acts`: only those that change the stream, or only those that do not. With `before` only those before that one.
    """

    since: int
    until: int
    stream: StreamId | None = None
    kind: DecisionKind | None = None
    code: str = ""
    acts: bool | None = None
    before: Order | None = None
    limit: int = 100


class Decisions(msgspec.Struct, frozen=True):
    """The latest first. `searched_to` is the moment back to which none is missing, epoch ms.

    `next` is where to go on, None if all of the span is searched, that is, if it is `complete`. `kept_from` as in
    `FoundEvents`.
    """

    items: list[DecisionModel]
    searched_to: int
    complete: bool
    next: Order | None = None
    kept_from: int | None = None


class _Collector:
    """See `Collector`: decisions that fit, and beside them what became of requests."""

    def __init__(self, question: DecisionsQuestion) -> None:
        self.found: list[tuple[Order, DecisionRecorded]] = []
        self.carried_out: dict[str, bool] = {}
        self._question = question

    def look_at(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        """See Collector."""
        for number, (entry, outcome) in enumerate(zip(record.entries, outcomes, strict=True)):
            if outcome is not Outcome.COUNTED:
                continue
            self._look_at_request(entry)
            for index, event in enumerate(entry.events):
                order = (message.at, message.partition, message.offset, number, index)
                if isinstance(event, DecisionRecorded) and self._is_wanted(event, order):
                    self.found.append((order, event))

    def _look_at_request(self, entry: JournalEntry) -> None:
        """A truncation is begun by one entry and replied to by another one, a scale by the same."""
        if entry.request is not None and entry.reply is not None:
            self.carried_out[entry.request] = entry.reply.status in DONE
        for event in entry.events:
            if isinstance(event, StreamTruncationStarted) and event.request is not None:
                self.carried_out[event.request] = True

    def _is_wanted(self, event: DecisionRecorded, order: Order) -> bool:
        question = self._question
        return (
            question.since <= order[0] < question.until
            and (question.before is None or order < question.before)
            and (question.stream is None or event.stream_id == question.stream)
            and (question.kind is None or event.kind is question.kind)
            and (not question.code or event.code == question.code)
            and (question.acts is None or event.acts is question.acts)
        )


def decisions(context: JobContext, question: DecisionsQuestion) -> Decisions:
    """The decisions of the span, as many as may be and are found in time. Raises LookbackError."""
    upper = min(question.until, context.now_ms + 1)
    if question.before is not None:
        upper = min(upper, question.before[0] + 1)
    partitions = range(context.partitions) if question.stream is None else [context.partition_of(question.stream.key)]
    collector = _Collector(question)
    search = BackwardSearch(context, partitions, max(question.since - MARGIN_MS, 0), upper, collector)

    def is_enough() -> bool:
        found = search.found()
        return len(found) > question.limit and not any(
            event.request and event.request not in collector.carried_out and event.at < search.searched_to
            for _, event in found[: question.limit]
        )

    search.go_back(is_enough)
    found = search.found()
    kept_from = search.kept_from if search.kept_from is not None and search.kept_from > question.since else None
    items = [_past(order, event, collector.carried_out.get(event.request)) for order, event in found[: question.limit]]
    if len(found) > question.limit:
        last = found[question.limit - 1][0]
        return Decisions(items, last[0], complete=False, next=last)
    if search.complete or search.searched_to <= question.since:
        return Decisions(items, question.since, complete=True, kept_from=kept_from)
    goes_on = (search.searched_to, 0, 0, 0, 0) if search.searched_to < upper else question.before or (upper, 0, 0, 0, 0)
    return Decisions(items, search.searched_to, complete=False, next=goes_on, kept_from=kept_from)


def _past(order: Order, event: DecisionRecorded, carried_out: bool | None) -> DecisionModel:
    return DecisionModel(
        stream=str(event.stream_id),
        kind=event.kind.value,
        code=event.code,
        reason=event.reason,
        at=event.at,
        recorded_at=order[0],
        acts=event.acts or None,
        numbers=event.numbers or None,
        request=event.request or None,
        carried_out=carried_out,
    )


DECISIONS = Job("decisions", DecisionsQuestion, Decisions, decisions)
