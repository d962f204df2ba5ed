"""The fold rule: what the records of one journal partition make true.

Every follower folds the same records in the same order and reads nothing but them, so all judge alike which entries
count. An entry counts if its source was not decided before and every aggregate in `expect` has the version given
there; then its events are applied and each touched aggregate's version goes up by one. Otherwise it has no effect at
all. Each entry is judged by itself. Belongs to the thread that folds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from sluice.engine.ports import Model
from sluice.engine.record import Entry, Record, Source
from sluice.engine.sources import DecidedSources

FORGET_EVERY_MS = 60 * 60 * 1000
"""How often projections forget what is old, by the log's time: one of them with each record."""


class Outcome(Enum):
    COUNTED = "counted"
    STALE = "stale"
    DUPLICATE = "duplicate"


class _Cell:
    """An aggregate's version and state: side by side, because a fold of a long journal is a matter of lookups."""

    __slots__ = ("aggregate", "is_under_way", "state", "version")

    def __init__(self, aggregate: str) -> None:
        self.aggregate = aggregate
        self.version = 0
        self.state: Any = None
        self.is_under_way = False


class PartitionView:
    """States, versions and decided sources of one partition.

    `partition_key` is a key of this partition, of no resource. `next_offset` is the first one not folded; `last_ms`
    is when the log took the last one that is.
    """

    def __init__(
        self,
        model: Model,
        partition_key: str = "",
        elsewhere: "Callable[[str], PartitionView] | None" = None,
        everywhere: "Callable[[], Sequence[PartitionView]] | None" = None,
    ) -> None:
        self.partition_key = partition_key
        self.next_offset = 0
        self.last_ms = 0
        self._model = model
        self._elsewhere = elsewhere
        self._everywhere = everywhere
        self._cells: dict[str, _Cell] = {}
        self._projections: dict[str, Any] = {}
        self._under_way: dict[str, int] = {}
        self._sources = DecidedSources()
        self._looked_ms = 0
        self._to_look: list[str] = []

    # Reading.

    def get(self, aggregate: str) -> Any | None:
        cell = self._cells.get(aggregate)
        return cell.state if cell is not None else None

    def version(self, aggregate: str) -> int:
        cell = self._cells.get(aggregate)
        return cell.version if cell is not None else 0

    def index(self, name: str) -> Any | None:
        """A projection: what the events were folded into beside the aggregates; it has no version."""
        return self._projections.get(name)

    def indexes(self) -> Iterator[tuple[str, Any]]:
        """All projections with their names."""
        return iter(self._projections.items())

    def elsewhere(self, key: str) -> "PartitionView":
        """The view of another key's partition: what is read there guards nothing, and may lag."""
        return self._elsewhere(key) if self._elsewhere is not None else self

    def everywhere(self) -> "Sequence[PartitionView]":
        """The views of all partitions, in the same way."""
        return self._everywhere() if self._everywhere is not None else (self,)

    def is_decided(self, source: Source) -> bool:
        """Whether the request was decided before."""
        return self._sources.is_decided(source)

    @property
    def sources(self) -> DecidedSources:
        return self._sources

    def aggregates(self) -> Iterator[tuple[str, Any]]:
        """All aggregates that exist, with their states."""
        return ((name, cell.state) for name, cell in self._cells.items() if cell.state is not None)

    def under_way(self) -> Mapping[str, int]:
        """The aggregates that a workflow is changing or waits to, and since when: epoch ms, by the log's clock."""
        return self._under_way

    # Folding.

    def fold(self, record: Record[Any, Any], offset: int, timestamp_ms: int) -> list[Outcome]:
        """Apply what counts of the record; the outcome of each entry. `timestamp_ms` is the log's."""
        self.next_offset = offset + 1
        self.last_ms = timestamp_ms
        sources = self._sources
        if record.floors:
            sources.raise_floors(record.floors)
        outcomes = [self._judge(entry, offset, timestamp_ms) for entry in record.entries]
        if self._to_look or timestamp_ms - self._looked_ms >= FORGET_EVERY_MS:
            self._forget_old(timestamp_ms)
        return outcomes

    def _judge(self, entry: Entry[Any, Any], offset: int, timestamp_ms: int) -> Outcome:
        source = entry.source
        if source is not None and self._sources.is_decided(source):
            return Outcome.DUPLICATE
        only = None
        for aggregate, version in entry.expect.items():
            only = self._cells.get(aggregate)
            if (0 if only is None else only.version) != version:
                return Outcome.STALE
        if source is not None:
            self._sources.mark(source)
        if entry.events:
            # What is touched is expected, too; so where one aggregate is expected there is nothing to look up.
            self._apply(entry.events, only if len(entry.expect) == 1 else None, offset, timestamp_ms)
        return Outcome.COUNTED

    def _apply(self, events: tuple[Any, ...], only: _Cell | None, offset: int, timestamp_ms: int) -> None:
        model = self._model
        touched = set()
        for event in events:
            cell = only if only is not None else self._cell(event.aggregate)
            state = cell.state = model.evolve(cell.state, event)
            if model.is_under_way(state) is not cell.is_under_way:
                self._toggle(cell, timestamp_ms)
            touched.add(cell)
            for forgotten in model.project(self._projections, event, offset):
                self._cells.pop(forgotten, None)
        for cell in touched:
            cell.version += 1

    def _forget_old(self, timestamp_ms: int) -> None:
        """The records alone determine when, so that all followers forget alike."""
        if not self._to_look:
            self._to_look, self._looked_ms = list(self._projections), timestamp_ms
        elif (found := self._projections.get(name := self._to_look.pop())) is not None:
            for forgotten in self._model.forget(found, name, timestamp_ms):
                self._cells.pop(forgotten, None)

    def _toggle(self, cell: _Cell, timestamp_ms: int) -> None:
        cell.is_under_way = not cell.is_under_way
        if cell.is_under_way:
            self._under_way[cell.aggregate] = timestamp_ms
        else:
            self._under_way.pop(cell.aggregate, None)

    def _cell(self, aggregate: str) -> _Cell:
        cell = self._cells.get(aggregate)
        if cell is None:
            cell = self._cells[aggregate] = _Cell(aggregate)
        return cell


class GuardedReader:
    """Reads one partition for a decision and remembers the versions it saw, which guard the decision's entry."""

    def __init__(self, view: PartitionView) -> None:
        self._view = view
        self.seen: dict[str, int] = {}

    @property
    def partition_key(self) -> str:
        return self._view.partition_key

    def get(self, aggregate: str) -> Any | None:
        self.seen[aggregate] = self._view.version(aggregate)
        return self._view.get(aggregate)

    def version(self, aggregate: str) -> int:
        return self._view.version(aggregate)

    def index(self, name: str) -> Any | None:
        return self._view.index(name)

    def elsewhere(self, key: str) -> PartitionView:
        """See PartitionView."""
        return self._view.elsewhere(key)

    def everywhere(self) -> Sequence[PartitionView]:
        """See PartitionView."""
        return self._view.everywhere()
