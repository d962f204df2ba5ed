"""The job that searches the journal: its events, the latest first, each with whether it counted.

`order` is the position of an event among all events of the journal, and where the next search goes on.
"""

from collections.abc import Iterable

import msgspec

from sluice.domain.cluster.state import CLUSTER
from sluice.domain.events import Event
from sluice.domain.model import JournalEntry, JournalRecord
from sluice.domain.names import group_stream, key_of, stream_key
from sluice.engine.fold import Outcome
from sluice.engine.partition import partition_of
from sluice.lookback.backwards import BackwardSearch, Order
from sluice.lookback.decoding import ids_of, names_of
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import KafkaRecord

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""How much of values one result holds, unless one event alone is larger."""


class SearchQuestion(msgspec.Struct, frozen=True):
    """What to find: at most `limit` events, appended in [from_ms, to_ms], epoch ms; `to_ms` 0 is now.

    `key` is an aggregate (`stream:demo/orders`, `cluster`), a name in a scope (`demo/orders`: all that has it), or a
    scope with all that is in it; empty: everything. `types` are those of events; none: all. `before` has what comes
    before that position only.
    """

    key: str = ""
    types: tuple[str, ...] = ()
    from_ms: int = 0
    to_ms: int = 0
    limit: int = 100
    before: Order | None = None


class FoundEvent(msgspec.Struct, frozen=True):
    """An event of the journal: `value` is its JSON. Of a void one `why` is `stale` or `duplicate`.

    `at` is when the broker appended its record, epoch ms; `key` is what the work on its aggregate is serialised by.
    `by` is the instance that proposed it; `principal` who called for `request`. Either is empty if that is not known.
    """

    order: Order
    aggregate: str
    type: str
    by: str
    request: str
    principal: str
    why: str
    value: bytes

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


class FoundEvents(msgspec.Struct, frozen=True):
    """Events, the latest first. `searched_to` is the moment back to which all that fit are here, epoch ms.

    `next` is where to go on, None if all is searched, that is, if it is `complete`. Before `kept_from` (epoch ms), if
    that is given, not all can be searched: records are gone, and no snapshot is as old.
    """

    items: list[FoundEvent]
    searched_to: int
    complete: bool
    next: Order | None = None
    kept_from: int | None = None


def is_aggregate(key: str) -> bool:
    """Whether a `key` names one aggregate, and not all that has a name."""
    return ":" in key or key == CLUSTER


class _Wanted:
    """Which events fit, and in which partitions they are."""

    def __init__(self, question: SearchQuestion) -> None:
        self._key = question.key
        self._types = frozenset(question.types)
        self._is_aggregate = is_aggregate(question.key)

    def fits(self, event: Event) -> bool:
        if self._types and type(event).__name__ not in self._types:
            return False
        if not self._key:
            return True
        if self._is_aggregate:
            return event.aggregate == self._key
        if "/" in self._key:
            return self._key in names_of(event)
        return any(name == self._key or name.startswith(f"{self._key}/") for name in names_of(event))

    def partitions(self, count: int) -> list[int]:
        if self._is_aggregate:
            return [partition_of(key_of(self._key), count)]
        scope, slash, name = self._key.partition("/")
        if slash:
            keys = (stream_key(scope, name), stream_key(scope, group_stream(name)))
            return sorted({partition_of(key, count) for key in keys})
        return list(range(count))


class _Candidate(msgspec.Struct, frozen=True):
    order: Order
    by: str
    entry: JournalEntry
    event: Event
    outcome: Outcome


class _Collector:
    """See `Collector`: events that fit."""

    def __init__(self, wanted: _Wanted, before: Order) -> None:
        self.found: list[tuple[Order, _Candidate]] = []
        self._wanted = wanted
        self._before = before

    def look_at(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        """See Collector."""
        for number, (entry, outcome) in enumerate(zip(record.entries, outcomes, strict=True)):
            for index, event in enumerate(entry.events):
                order = (message.at, message.partition, message.offset, number, index)
                if order < self._before and self._wanted.fits(event):
                    self.found.append((order, _Candidate(order, record.by, entry, event, outcome)))


def _search(context: JobContext, question: SearchQuestion) -> FoundEvents:
    """Raises TimeIsOverError if even what is kept takes too long to be unpacked: then a `key` helps."""
    wanted = _Wanted(question)
    before = question.before or ((question.to_ms or context.now_ms) + 1, 0, 0, 0, 0)
    upper_ms = before[0] + (1 if any(before[1:]) else 0)
    collector = _Collector(wanted, before)
    search = BackwardSearch(context, wanted.partitions(context.partitions), question.from_ms, upper_ms, collector)
    search.go_back(lambda: len(search.found()) > question.limit)
    fitting = [candidate for _, candidate in search.found()]
    items = _page(fitting, question.limit)
    if len(items) < len(fitting):
        return FoundEvents(items, items[-1].order[0], complete=False, next=items[-1].order)
    if search.complete:
        return FoundEvents(items, question.from_ms, complete=True, kept_from=search.kept_from)
    goes_on = (search.searched_to, 0, 0, 0, 0) if search.searched_to < upper_ms else before
    return FoundEvents(items, search.searched_to, complete=False, next=goes_on, kept_from=search.kept_from)


def _page(fitting: Iterable[_Candidate], limit: int) -> list[FoundEvent]:
    items: list[FoundEvent] = []
    size = 0
    for one in fitting:
        found = _found(one)
        size += len(found.value)
        if len(items) == limit or (items and size > MAX_PAGE_BYTES):
            break
        items.append(found)
    return items


def _found(one: _Candidate) -> FoundEvent:
    named = (one.entry.request, *ids_of(one.event))
    return FoundEvent(
        order=one.order,
        aggregate=one.event.aggregate,
        type=type(one.event).__name__,
        by=one.by,
        request=next((id for id in named if id), ""),
        principal=one.entry.principal,
        why="" if one.outcome is Outcome.COUNTED else one.outcome.value,
        value=msgspec.json.encode(one.event),
    )


JOURNAL_SEARCH = Job("search-journal", SearchQuestion, FoundEvents, _search)
