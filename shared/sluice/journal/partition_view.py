"""The fold rule: what the records of one journal partition make true.

Every follower folds the same records in the same order and reads nothing but them, so all decide alike which ones
count. A record counts if every aggregate in `expect` has the version given there and its request has not been
answered yet; then its events are applied and each touched aggregate's version goes up by one. Otherwise it is void:
it has no effect at all. Belongs to the thread that folds.

Requests of a key are decided in the order of their topic. So an aggregate remembers the place of the last one that
changed it or was refused, for ever and beyond its end: one from there or before has come again, and means what was
there then.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.names import scope_aggregate
from sluice.domain.transaction.index import forget_old
from sluice.domain.workflow import is_under_way
from sluice.journal.record import Place, Record

ANSWERS_KEPT = 20_000
ANSWERS_KEPT_MS = 10 * 60 * 1000
LOOK_THROUGH_MS = 60 * 60 * 1000
"""How often the indexes are looked through for what is to be forgotten, by the broker's clock: one with each record."""

_SCOPES = scope_aggregate("")


class Outcome(Enum):
    COUNTED = "counted"
    STALE = "stale"
    ANSWERED = "answered"


Index = Callable[[dict[str, Any], Event], Iterable[str]]
"""Folds an event into indexes, by name, and names the aggregates that are not needed any more."""


def _no_index(_indexes: dict[str, Any], _event: Event) -> Iterable[str]:
    return ()


class _Cell:
    """An aggregate's version and state: side by side, because a fold of a long journal is a matter of lookups."""

    __slots__ = ("is_under_way", "place", "state", "version")

    def __init__(self) -> None:
        self.version = 0
        self.state: Any = None
        self.is_under_way = False
        self.place: Place | None = None


class PartitionView:
    """State, versions and remembered answers of one partition.

    `next_offset` is the first one not folded; `last_ms` is when the broker appended the last one that is.
    """

    def __init__(self, evolve: Callable[[Any, Event], Any], index: Index = _no_index) -> None:
        self._evolve = evolve
        self._index = index
        self._cells: dict[str, _Cell] = {}
        self._scopes: list[_Cell] = []
        self._indexes: dict[str, Any] = {}
        self._under_way: dict[str, int] = {}
        self._answers: OrderedDict[str, tuple[int, Reply]] = OrderedDict()
        self._oldest_ms = 0
        self._looked_ms = 0
        self._to_look: list[str] = []
        self.next_offset = 0
        self.last_ms = 0

    def get(self, aggregate: str) -> Any | None:
        cell = self._cells.get(aggregate)
        return cell.state if cell is not None else None

    def version(self, aggregate: str) -> int:
        cell = self._cells.get(aggregate)
        return cell.version if cell is not None else 0

    def has_come(self, aggregate: str, place: Place) -> bool:
        """Whether the request at this place, or one behind it, has changed the aggregate or was refused."""
        cell = self._cells.get(aggregate)
        return cell is not None and cell.place is not None and not place.is_behind(cell.place)

    def index(self, name: str) -> Any | None:
        """What the events were folded into beside the aggregates; it has no version."""
        return self._indexes.get(name)

    def indexes(self) -> Iterator[tuple[str, Any]]:
        """All indexes with their names."""
        return iter(self._indexes.items())

    def answer(self, request: str) -> Reply | None:
        """The reply to a request that was answered lately."""
        found = self._answers.get(request)
        return found[1] if found is not None else None

    def aggregates(self) -> Iterator[tuple[str, Any]]:
        """All aggregates that exist, with their states."""
        return ((name, cell.state) for name, cell in self._cells.items() if cell.state is not None)

    def scopes(self) -> Iterator[Any]:
        """The states of all scopes that exist."""
        return (cell.state for cell in self._scopes if cell.state is not None)

    def under_way(self) -> Mapping[str, int]:
        """The aggregates that a workflow is changing or waits to, and since when: epoch ms, by the broker's clock."""
        return self._under_way

    def fold(self, record: Record, offset: int, timestamp_ms: int) -> Outcome:
        """Apply the record if it counts. `timestamp_ms` is the broker's; answers older than it by far are forgotten."""
        self.next_offset = offset + 1
        self.last_ms = timestamp_ms
        request = record.request
        if request is not None and request in self._answers:
            return Outcome.ANSWERED
        only = None
        for aggregate, version in record.expect.items():
            only = self._cells.get(aggregate)
            if (0 if only is None else only.version) != version:
                return Outcome.STALE
        if record.events:
            # What is touched is expected, too; so where one aggregate is expected there is nothing to look up.
            touched = self._apply(record.events, only if len(record.expect) == 1 else None, timestamp_ms)
            if record.place is not None:
                for cell in touched:
                    cell.place = record.place.after(cell.place)
            if self._to_look or timestamp_ms - self._looked_ms >= LOOK_THROUGH_MS:
                self._look_through(timestamp_ms)
        elif record.place is not None:
            refused = self._cells.get(next(iter(record.expect), ""))
            if refused is not None:
                refused.place = record.place.after(refused.place)
        if request is not None and record.reply is not None:
            self._remember(request, record.reply, timestamp_ms)
        return Outcome.COUNTED

    def _apply(self, events: tuple[Event, ...], only: _Cell | None, timestamp_ms: int) -> set[_Cell]:
        touched = set()
        for event in events:
            cell = only or self._cell(event.aggregate)
            state = cell.state = self._evolve(cell.state, event)
            if is_under_way(state) is not cell.is_under_way:
                self._turn(event.aggregate, cell, timestamp_ms)
            touched.add(cell)
            for forgotten in self._index(self._indexes, event):
                self._cells.pop(forgotten, None)
        for cell in touched:
            cell.version += 1
        return touched

    def _look_through(self, timestamp_ms: int) -> None:
        """Which index comes when is said by the records alone, so that all followers forget alike."""
        if not self._to_look:
            self._to_look, self._looked_ms = list(self._indexes), timestamp_ms
        elif (found := self._indexes.get(name := self._to_look.pop())) is not None:
            for forgotten in forget_old(found, name, timestamp_ms):
                self._cells.pop(forgotten, None)

    def _turn(self, aggregate: str, cell: _Cell, timestamp_ms: int) -> None:
        cell.is_under_way = not cell.is_under_way
        if cell.is_under_way:
            self._under_way[aggregate] = timestamp_ms
        else:
            self._under_way.pop(aggregate, None)

    def _cell(self, aggregate: str) -> _Cell:
        cell = self._cells.get(aggregate)
        if cell is None:
            cell = self._cells[aggregate] = _Cell()
            if aggregate.startswith(_SCOPES):
                self._scopes.append(cell)
        return cell

    def _remember(self, request: str, reply: Reply, timestamp_ms: int) -> None:
        answers = self._answers
        if not answers:
            self._oldest_ms = timestamp_ms
        answers[request] = (timestamp_ms, reply)
        while len(answers) > ANSWERS_KEPT or self._oldest_ms < timestamp_ms - ANSWERS_KEPT_MS:
            answers.popitem(last=False)
            self._oldest_ms = next(iter(answers.values()))[0]


class GuardedReader:
    """Reads one partition for a decision and remembers the versions it saw, which guard the decision's record."""

    def __init__(self, view: PartitionView) -> None:
        self._view = view
        self.seen: dict[str, int] = {}

    def get(self, aggregate: str) -> Any | None:
        self.seen[aggregate] = self._view.version(aggregate)
        return self._view.get(aggregate)

    def version(self, aggregate: str) -> int:
        return self._view.version(aggregate)

    def index(self, name: str) -> Any | None:
        return self._view.index(name)

    def has_come(self, aggregate: str, place: Place) -> bool:
        """Whether the request at this place, or one behind it, has changed the aggregate or was refused."""
        self.get(aggregate)
        return self._view.has_come(aggregate, place)
