"""The fold rule: what the records of one journal partition make true.

Every follower folds the same records in the same order and reads nothing but them, so all judge alike which entries
count. An entry counts if its source was not decided before and every aggregate in `expect` has the version given
there; then its events are applied and each touched aggregate's version goes up by one. Otherwise it has no effect at
all. Each entry is judged by itself. Belongs to the thread that folds.

An aggregate at rest is its bytes; it is decoded when it is touched, and stays so while it is warm or a workflow changes
it. So a state is good until the next await: behind that, what it says may be old. Nothing compares states by identity.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

from sluice.engine.capture import CaptureInvalidError, Head, Part, PartKind, decoded, head_of, head_part
from sluice.engine.lately import Lately
from sluice.engine.ports import Model
from sluice.engine.record import Entry, Record, Source
from sluice.engine.sources import DecidedSources

FORGET_EVERY_MS = 60 * 60 * 1000
"""How often projections forget what is old, by the log's time: one of them with each record."""


class Outcome(Enum):
    COUNTED = "counted"
    STALE = "stale"
    DUPLICATE = "duplicate"


_COUNTED = Outcome.COUNTED
"""A member of an enum is found in 0.1 microseconds, a name of the module in none."""

_OUTCOME_CODES = {Outcome.COUNTED: 1, Outcome.STALE: 2, Outcome.DUPLICATE: 3}
_HASH_BASIS, _HASH_PRIME, _HASH_MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1

WARM = 1_000
"""How many aggregates of a partition stay decoded if nothing else is set."""

_SETTLED_PER_RECORD = 8

_VERSION_BYTES = 5
"""At rest the version stands before the state's bytes, little endian."""


class _Cell:
    """An aggregate that is decoded: version and state side by side, for a fold of a long journal is about lookups.

    `is_hot` since it was used last, until `settle` has looked at it; `is_queued` while it is among those that it looks
    at.
    """

    __slots__ = ("aggregate", "is_hot", "is_queued", "is_under_way", "state", "version")

    def __init__(self, aggregate: str, version: int = 0, state: Any = None, *, is_under_way: bool = False) -> None:
        self.aggregate = aggregate
        self.version = version
        self.state = state
        self.is_under_way = is_under_way
        self.is_hot = False
        self.is_queued = False


class PartitionView:
    """States, versions and decided sources of one partition.

    `partition_key` is a key of this partition, of no resource. `next_offset` is the first one not folded; `last_ms`
    is when the log took the last one that is. Before `whole_at` the state is a part of what a restore has written.
    `lately` says what happened in the last hour. About `warm` aggregates stay decoded, and those under way; `on_excess`
    is called when more are, and has `settle` called soon; without it, folding does so.

    `outcome_hash` tells apart two followers that have judged any entry differently. It takes in the offset and outcomes
    of every record of which something is void, so it says of all others that they count. Each step is a bijection of
    64 bits, so hashes that have parted meet by chance only, and the common record costs nothing.
    """

    def __init__(
        self,
        model: Model,
        partition_key: str = "",
        elsewhere: "Callable[[str], PartitionView] | None" = None,
        everywhere: "Callable[[], Sequence[PartitionView]] | None" = None,
        warm: int = WARM,
        on_excess: Callable[[], None] | None = None,
    ) -> None:
        self.partition_key = partition_key
        self.next_offset = 0
        self.last_ms = 0
        self.outcome_hash = _HASH_BASIS
        self.whole_at = 0
        self.lately = Lately()
        self._warm = warm
        self._on_excess = on_excess
        self._model = model
        self._elsewhere = elsewhere
        self._everywhere = everywhere
        self._cells: dict[str, _Cell | bytes] = {}
        self._queue: deque[_Cell] = deque()
        self._projections: dict[str, Any] = {}
        self._under_way: dict[str, int] = {}
        self._sources = DecidedSources()
        self._looked_ms = 0
        self._to_look: list[str] = []

    # Reading.

    def get(self, aggregate: str) -> Any | None:
        """The state of an aggregate; what an await lies behind may be old."""
        cell = self._cells.get(aggregate)
        if cell is None:
            return self._model.retired(self._projections, aggregate)[1]
        if isinstance(cell, bytes):
            cell = self._decoded(aggregate, cell)
        cell.is_hot = True
        return cell.state

    def peek(self, aggregate: str) -> Any | None:
        """The same for callers that walk over many: what rests is decoded for the caller alone and goes on resting."""
        cell = self._cells.get(aggregate)
        return self._state_of(cell) if cell is not None else self._model.retired(self._projections, aggregate)[1]

    def version(self, aggregate: str) -> int:
        cell = self._cells.get(aggregate)
        if cell is None:
            return self._model.retired(self._projections, aggregate)[0]
        return _version_of(cell) if isinstance(cell, bytes) else cell.version

    def projection(self, name: str) -> Any | None:
        """A projection: what the events were folded into beside the aggregates; it has no version."""
        return self._projections.get(name)

    def projections(self) -> Iterator[tuple[str, Any]]:
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

    def aggregates(self, kind: str = "") -> Iterator[tuple[str, Any]]:
        """The aggregates whose names begin with `kind`, as far as they exist, with their states; none that is retired.

        What rests is decoded for the caller alone, so name the kind; nothing may be folded meanwhile.
        """
        for name, cell in self._cells.items():
            if name.startswith(kind) and (state := self._state_of(cell)) is not None:
                yield name, state

    def names(self, kind: str) -> list[str]:
        """Those of the aggregates whose names begin with `kind`, whether or not they have a state."""
        return [name for name in self._cells if name.startswith(kind)]

    def under_way(self) -> Mapping[str, int]:
        """The aggregates that a workflow is changing or waits to, and since when: epoch ms, by the log's clock."""
        return self._under_way

    # Folding.

    def fold(self, record: Record[Any, Any], offset: int, timestamp_ms: int) -> list[Outcome]:
        """Apply what counts of the record; the outcome of each entry. `timestamp_ms` is the log's."""
        self.next_offset = offset + 1
        self.last_ms = timestamp_ms
        if record.whole_at:
            self.whole_at = record.whole_at
        if record.floors:
            self._sources.raise_floors(record.floors)
        outcomes, is_void = [], False
        for entry in record.entries:
            outcome = self._judge(entry, offset, timestamp_ms)
            outcomes.append(outcome)
            is_void = is_void or outcome is not _COUNTED
        if is_void:
            self._hash_void(offset, outcomes)
        if self._to_look or timestamp_ms - self._looked_ms >= FORGET_EVERY_MS:
            self._forget_old(timestamp_ms)
        if self._on_excess is None and len(self._queue) > self._warm:
            self.settle(_SETTLED_PER_RECORD)
        return outcomes

    def _judge(self, entry: Entry[Any, Any], offset: int, timestamp_ms: int) -> Outcome:
        source, cells = entry.source, self._cells
        for aggregate, expected in entry.expect.items():
            cell = cells.get(aggregate)
            if cell is None:
                version = self._model.retired(self._projections, aggregate)[0]
            else:
                version = _version_of(cell) if isinstance(cell, bytes) else cell.version
            if version != expected:
                is_duplicate = source is not None and self._sources.is_decided(source)
                return Outcome.DUPLICATE if is_duplicate else Outcome.STALE
        if source is not None and not self._sources.decide(source):
            return Outcome.DUPLICATE
        if entry.events:
            self._apply(entry.events, offset, timestamp_ms)
            self.lately.add(entry.events, timestamp_ms)
        return _COUNTED

    def _apply(self, events: tuple[Any, ...], offset: int, timestamp_ms: int) -> None:
        model, cells = self._model, self._cells
        touched: dict[_Cell, None] = {}
        for event in events:
            aggregate = event.aggregate
            cell = cells.get(aggregate)
            if not isinstance(cell, _Cell):
                cell = self._decoded(aggregate, cell)
            state = cell.state = model.evolve(cell.state, event)
            if model.is_under_way(state) is not cell.is_under_way:
                self._toggle(cell, timestamp_ms)
            touched[cell] = None
            for forgotten in model.project(self._projections, event, state, offset):
                self._forget(forgotten)
        for cell in touched:
            cell.version += 1
            cell.is_hot = not model.retire(self._projections, cell.aggregate, cell.version, cell.state)
            if not cell.is_hot:
                self._forget(cell.aggregate)

    def _forget_old(self, timestamp_ms: int) -> None:
        """The records alone determine when, so that all followers forget alike."""
        if not self._to_look:
            # In order, so that a view that was restored goes through them alike.
            self._to_look, self._looked_ms = sorted(self._projections), timestamp_ms
        elif (found := self._projections.get(name := self._to_look.pop())) is not None:
            self._model.forget(found, timestamp_ms)
            if self._model.is_empty(found):
                del self._projections[name]

    def _forget(self, aggregate: str) -> None:
        self._cells.pop(aggregate, None)
        self._under_way.pop(aggregate, None)

    def _toggle(self, cell: _Cell, timestamp_ms: int) -> None:
        cell.is_under_way = not cell.is_under_way
        if cell.is_under_way:
            self._under_way[cell.aggregate] = timestamp_ms
        else:
            self._under_way.pop(cell.aggregate, None)
            if not cell.is_queued:
                self._enqueue(cell)

    def _hash_void(self, offset: int, outcomes: list[Outcome]) -> None:
        value = (self.outcome_hash ^ offset) * _HASH_PRIME & _HASH_MASK
        for outcome in outcomes:
            value = (value ^ _OUTCOME_CODES[outcome]) * _HASH_PRIME & _HASH_MASK
        self.outcome_hash = value

    # At rest.

    @property
    def resting(self) -> int:
        """How many aggregates are their bytes."""
        return sum(isinstance(cell, bytes) for cell in self._cells.values())

    def settle(self, most: int) -> bool:
        """Look at up to `most` decoded aggregates, the longest decoded first, and put to rest what is not used.

        Call it when nothing else is in hand. Whether there may be more to put to rest at once.
        """
        queue = self._queue
        for _ in range(min(most, len(queue) - self._warm)):
            cell = queue.popleft()
            if cell.is_under_way:
                cell.is_queued = False
            elif cell.is_hot:
                cell.is_hot = False
                queue.append(cell)
            elif self._cells.get(cell.aggregate) is cell:
                self._cells[cell.aggregate] = _at_rest(cell.version, self._encoded(cell))
        return len(queue) > self._warm

    def _decoded(self, aggregate: str, rest: bytes | None) -> _Cell:
        """The cell of an aggregate that was at rest, or not there."""
        cell = _Cell(aggregate) if rest is None else _Cell(aggregate, _version_of(rest), self._state_of(rest))
        self._cells[aggregate] = cell
        self._enqueue(cell)
        return cell

    def _enqueue(self, cell: _Cell) -> None:
        cell.is_queued = True
        self._queue.append(cell)
        if self._on_excess is not None and len(self._queue) > self._warm:
            self._on_excess()

    def _state_of(self, cell: _Cell | bytes) -> Any:
        if not isinstance(cell, bytes):
            return cell.state
        value = cell[_VERSION_BYTES:]
        return self._model.decode_state(value) if value else None

    def _encoded(self, cell: _Cell) -> bytes:
        return self._model.encode_state(cell.state) if cell.state is not None else b""

    # The whole state.

    def capture(self) -> Iterator[Part]:
        """The whole state at `next_offset`; nothing may be folded meanwhile. See `sluice.engine.capture`."""
        yield head_part(
            Head(
                self.next_offset,
                self.last_ms,
                self.outcome_hash,
                self._looked_ms,
                self._to_look,
                sorted(self._under_way.items()),
                self._sources.captured(),
                self.lately.captured(),
            )
        )
        for name in sorted(self._cells):
            cell = self._cells[name]
            if isinstance(cell, bytes):
                yield Part(PartKind.AGGREGATE, name, _version_of(cell), cell[_VERSION_BYTES:])
            else:
                yield Part(PartKind.AGGREGATE, name, cell.version, self._encoded(cell))
        for name in sorted(self._projections):
            yield Part(PartKind.PROJECTION, name, 0, self._model.encode_projection(name, self._projections[name]))

    def restore(self, parts: Iterable[Part]) -> None:
        """Take on the state that was captured of another view; this one must be empty.

        Aggregates come to rest, but for those under way. Raises CaptureInvalidError, and is empty then as before.
        """
        if self._cells or self._projections or self.next_offset:
            raise ValueError("only an empty view can be restored")
        rest = iter(parts)
        if (first := next(rest, None)) is None:
            raise CaptureInvalidError("there are no parts")
        head, before = head_of(first), (PartKind.AGGREGATE.value, "")
        under_way = dict(head.under_way)
        cells: dict[str, _Cell | bytes] = {}
        projections: dict[str, Any] = {}
        for part in rest:
            if (at := (part.kind.value, part.name)) <= before or part.kind is PartKind.HEAD:
                raise CaptureInvalidError(f"{part.kind.value} {part.name!r} is out of order")
            before = at
            if part.kind is PartKind.PROJECTION:
                decode = partial(self._model.decode_projection, part.name)
                projections[part.name] = decoded("projection", part, decode)
            elif part.name in under_way:
                state = decoded("aggregate", part, self._model.decode_state)
                cells[part.name] = _Cell(part.name, part.version, state, is_under_way=True)
            else:
                cells[part.name] = _at_rest(part.version, part.value)
        if missing := under_way.keys() - cells.keys():
            raise CaptureInvalidError(f"aggregates under way are missing: {', '.join(sorted(missing)[:3])}")
        self.next_offset, self.last_ms, self.outcome_hash = head.next_offset, head.last_ms, head.outcome_hash
        self._looked_ms, self._to_look = head.looked_ms, head.to_look
        self._cells, self._projections, self._under_way = cells, projections, under_way
        self._sources = DecidedSources.restored(head.sources)
        self.lately = Lately(head.lately)


def _at_rest(version: int, value: bytes) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "little") + value


def _version_of(rest: bytes) -> int:
    return int.from_bytes(rest[:_VERSION_BYTES], "little")


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

    def projection(self, name: str) -> Any | None:
        return self._view.projection(name)

    def elsewhere(self, key: str) -> PartitionView:
        """See PartitionView."""
        return self._view.elsewhere(key)

    def everywhere(self) -> Sequence[PartitionView]:
        """See PartitionView."""
        return self._view.everywhere()
