"""What must hold in the metadata of an original before it is brought along; what does not is a Problem.

Each rule is a function that yields sentences; `OF_A_STREAM` and `Judge` say which invariant it is, and whether that
stops an import. Numbers: controller-metadata-store 6.4. What the segment stores say of segments is in `segments.py`.
Pure.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from uuid import UUID

import msgspec

from sluice_cli.migration.model import Cluster, KeyValueTable, ReaderGroup, Stream, Thing, Unreadable
from sluice_cli.migration.records import (
    NO_TIME,
    EpochRecord,
    GroupRetention,
    SegmentRecord,
    StreamState,
    ThingState,
    TransactionStatus,
)
from sluice_cli.migration.tables import GroupMetadata, StreamMetadata, TableMetadata
from sluice_cli.migration.to_stream import head_flaw

MARK, GROUP = "_MARK", "_RG"
ENDS = (1.0, 0.9999999999999999)
"""Where the last key range of an epoch ends."""
NEEDED = {
    "creationTime": "creation_ms",
    "configuration": "configuration",
    "epochTransition": "transition",
    "truncation": "truncation",
    "committingTxns": "committing",
    "currentEpochRecord": "current_epoch",
}
"""Entries that a thing has, and their fields; groups and tables have fewer."""
_COUNTER_BITS = 96

TITLES = {
    1: "all epochs are there, and what else a stream needs",
    2: "the ranges of an epoch fill the space of keys",
    3: "segments are numbered by their epochs",
    4: "epochs follow each other in time, and the history tells the same",
    5: "a segment is known to be sealed where it leaves the epochs",
    6: "active segments exist and are open",
    7: "segments behind the head exist, sealed, of the recorded size",
    8: "the head of a stream fits its epochs and segments",
    9: "recorded cuts and their index agree",
    10: "transactions belong to their epochs, and what is to be committed is there",
    11: "the counter is above all ids of transactions",
    12: "each stream has its mark stream",
    13: "reader groups, their streams and their subscriptions agree",
    14: "tables have their segments",
    15: "numbers of deleted streams are below those of streams of the name",
    16: "what is sealed is at rest",
}
"""The invariants, by number."""


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """An invariant that does not hold. `stops`: nothing may be brought along before it does, or without this thing."""

    invariant: int
    of: str
    what: str
    stops: bool


def is_created(stream: Stream) -> bool:
    """Whether its creation has ended: of no other did any client learn that it exists, and nothing is to hold of it."""
    state = stream.metadata.state if stream.metadata is not None else None
    return state is not None and state.state is not StreamState.CREATING


def state_of(found: GroupMetadata | TableMetadata | None) -> ThingState:
    """The state of a group or table; CREATING if it has none."""
    state = found.state.state if found is not None and found.state is not None else ThingState.CREATING
    return ThingState.CREATING if state is ThingState.UNKNOWN else state


def future_epochs(found: StreamMetadata) -> set[int]:
    """Epochs behind the current one that a scale, or commits that roll the stream, may have written already."""
    current = found.current_epoch or 0
    epochs = set()
    if found.transition is not None and found.transition.sealed:
        epochs.add(found.transition.active_epoch + 1)
    if found.committing is not None and found.committing.active_epoch >= 0:
        epochs |= {found.committing.active_epoch + 1, found.committing.active_epoch + 2}
    return {epoch for epoch in epochs if epoch > current}


def _missing(found: StreamMetadata | GroupMetadata | TableMetadata | None) -> Iterator[str]:
    for key, name in NEEDED.items():
        if getattr(found, name, NEEDED) is None:
            yield f"{key} is missing"


def _epochs(found: StreamMetadata) -> Iterator[str]:
    yield from _missing(found)
    if found.state is not None and found.state.state is StreamState.UNKNOWN:
        yield "state is UNKNOWN"
    wanted = set(range((found.current_epoch or 0) + 1))
    for epoch in sorted(wanted - found.epochs.keys())[:3]:
        yield f"epochRecord-{epoch} is missing"
    for epoch in sorted(found.epochs.keys() - wanted - future_epochs(found))[:3]:
        yield f"epochRecord-{epoch} is behind the current epoch, {found.current_epoch}, and nothing under way made it"
    for epoch, record in found.epochs.items():
        if record.epoch != epoch:
            yield f"epochRecord-{epoch} is that of epoch {record.epoch}"


def _ranges(found: StreamMetadata) -> Iterator[str]:
    for epoch in found.epochs.values():
        by_range = sorted(epoch.segments, key=lambda one: one.low)
        gaps = any(before.high != behind.low for before, behind in pairwise(by_range))
        if not by_range or by_range[0].low != 0.0 or by_range[-1].high not in ENDS or gaps:
            yield f"epochRecord-{epoch.epoch}: its key ranges do not adjoin each other from 0 to 1"


def _numbers(found: StreamMetadata) -> Iterator[str]:
    for number, epoch in found.epochs.items():
        if any(one.creation_epoch > number for one in epoch.segments):
            yield f"epochRecord-{number} has a segment of a later epoch"
        if epoch.reference != epoch.epoch:
            reference = found.epochs.get(epoch.reference)
            if any(one.creation_epoch != number for one in epoch.segments):
                yield f"epochRecord-{number} repeats epoch {epoch.reference} with segments that are not its own"
            if reference is None or epoch.reference > number or _shape(reference) != _shape(epoch):
                yield f"epochRecord-{number} is not what it repeats, epoch {epoch.reference}"
        elif number - 1 in found.epochs:
            yield from _new_numbers(found.epochs[number - 1], epoch)


def _shape(epoch: EpochRecord) -> set[tuple[int, float, float]]:
    return {(one.number, one.low, one.high) for one in epoch.segments}


def _new_numbers(before: EpochRecord, epoch: EpochRecord) -> Iterator[str]:
    known = {one.id for one in before.segments}
    highest = max((one.number for one in before.segments), default=-1)
    for one in epoch.segments:
        if one.id not in known and (one.creation_epoch != epoch.epoch or one.number <= highest):
            yield f"epochRecord-{epoch.epoch} has segment {one.id}, which is neither new nor of the epoch before"


def _times(found: StreamMetadata) -> Iterator[str]:
    epochs = _settled(found)
    for before, behind in pairwise(epochs):
        if behind.creation_ms <= before.creation_ms:
            yield f"epoch {behind.epoch} is not later than the one before"
    history = {one.epoch: one for chunk in found.history.values() for one in chunk.records}
    for earlier, epoch in zip([None, *epochs], epochs, strict=False):
        sealed, created = _changes(earlier, epoch)
        recorded = history.get(epoch.epoch)
        if recorded is None:
            yield f"the history lacks epoch {epoch.epoch}"
        elif (
            {one.id for one in recorded.sealed} != sealed
            or {one.id for one in recorded.created} != created
            or (recorded.reference, recorded.time_ms) != (epoch.reference, epoch.creation_ms)
        ):
            yield f"the history tells another epoch {epoch.epoch}"


def _changes(before: EpochRecord | None, epoch: EpochRecord) -> tuple[set[int], set[int]]:
    """The ids that left with an epoch, and those that came; none for one that repeats another."""
    if epoch.reference != epoch.epoch:
        return set(), set()
    old, new = ({one.id for one in (record.segments if record else ())} for record in (before, epoch))
    return old - new, new - old


def _settled(found: StreamMetadata) -> list[EpochRecord]:
    """The epochs up to the current one, in order."""
    current = found.current_epoch or 0
    return [found.epochs[epoch] for epoch in sorted(found.epochs) if epoch <= current]


def segments_of(found: StreamMetadata) -> dict[int, SegmentRecord]:
    """All segments there ever were up to the current epoch, by id."""
    return {one.id: one for epoch in _settled(found) for one in epoch.segments}


def active_ids(found: StreamMetadata) -> set[int]:
    """Those of the current epoch."""
    current = found.epochs.get(found.current_epoch or 0)
    return {one.id for one in current.segments} if current is not None else set()


def _sealed_at(found: StreamMetadata) -> Iterator[str]:
    wanted: dict[int, int] = {}
    for before, behind in pairwise(_settled(found)):
        left = {one.id for one in before.segments} - {one.id for one in behind.segments}
        wanted |= dict.fromkeys(left, behind.epoch)
    recorded = {id: epoch for id, epoch in found.sealed_at.items() if epoch <= (found.current_epoch or 0)}
    for id in sorted(wanted.keys() | recorded.keys()):
        if wanted.get(id) != recorded.get(id):
            yield f"segment {id} leaves with epoch {wanted.get(id)}, and is said to leave with {recorded.get(id)}"


def _head(found: StreamMetadata) -> Iterator[str]:
    head = found.truncation
    if head is None:
        return
    if head.cut.keys() != {entry.segment.id for entry in head.span}:
        yield "truncation: the cut and its span name other segments"
    for entry in head.span:
        epoch = found.epochs.get(entry.epoch)
        if epoch is None or entry.segment.id not in {one.id for one in epoch.segments}:
            yield f"truncation: the cut meets segment {entry.segment.id} in epoch {entry.epoch}, which does not have it"
    for id in sorted(active_ids(found) & set(head.deleted)):
        yield f"truncation: the active segment {id} is among the deleted ones"


def _cuts(found: StreamMetadata) -> Iterator[str]:
    references = found.retention.references if found.retention is not None else ()
    if {one.time_ms for one in references} != found.retention_cuts.keys():
        yield "there are cuts that the index does not name, or the other way round"
    for before, behind in pairwise(references):
        if behind.time_ms <= before.time_ms or behind.size < before.size:
            yield f"the cut of {behind.time_ms} is not later and larger than the one before"


def _at_rest(stream: Stream) -> Iterator[str]:
    found = stream.metadata
    is_sealed = found is not None and found.state is not None and found.state.state is StreamState.SEALED
    if is_sealed and any(stream.transactions.values()):
        yield "the stream is sealed, and has transactions"


OF_A_STREAM: tuple[tuple[int, bool, Callable[[StreamMetadata], Iterator[str]]], ...] = (
    (1, True, _epochs),
    (2, True, _ranges),
    (3, True, _numbers),
    (4, False, _times),
    (5, False, _sealed_at),
    (8, True, _head),
    (9, False, _cuts),
)
"""Number, whether it stops, and rule."""


def committing(thing: Thing) -> tuple[UUID, ...]:
    """The transactions that it commits now, in one batch."""
    found = thing.metadata.committing if isinstance(thing, Stream) and thing.metadata is not None else None
    return found.transactions if found is not None else ()


class Judge:
    """Judges things one by one, and at last what concerns several of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.completed = {one.id for one in cluster.completed}
        """Transactions; those that are known to have completed since may be added."""
        self._groups: list[ReaderGroup] = []
        self._subscribers: dict[str, dict[str, int]] = {}
        """By stream and by group the generation."""

    def of(self, thing: Thing) -> Iterator[Problem]:
        """What does not hold of it by itself, and of its place in the cluster."""
        if isinstance(thing, ReaderGroup):
            self._groups.append(thing)
            yield from self._group(thing)
        elif isinstance(thing, KeyValueTable):
            yield from _table(thing)
        else:
            yield from self._place(thing)
            if is_created(thing):
                yield from self._stream(thing)

    def at_last(self) -> Iterator[Problem]:
        """Of groups and their subscriptions, when every thing was judged."""
        wanted = {
            (stream, f"{group.scope}/{group.name}"): group.metadata.configuration.generation
            for group in self._groups
            if group.metadata is not None and group.metadata.configuration is not None
            if group.metadata.configuration.retention is not GroupRetention.NONE
            for stream in group.metadata.configuration.starting
        }
        recorded = {(stream, name): at for stream, names in self._subscribers.items() for name, at in names.items()}
        for stream, group in sorted(wanted.keys() | recorded.keys()):
            mine, theirs = wanted.get((stream, group)), recorded.get((stream, group))
            if mine != theirs:
                what = f"group {group} subscribes with generation {mine}, and the stream has generation {theirs}"
                yield Problem(13, f"stream {stream}", what, False)

    def _stream(self, stream: Stream) -> Iterator[Problem]:
        of, found = name_of(stream), stream.metadata
        assert found is not None
        problems = [Problem(number, of, what, stops) for number, stops, rule in OF_A_STREAM for what in rule(found)]
        yield from problems
        if not any(problem.stops for problem in problems) and (flaw := head_flaw(stream)):
            yield Problem(8, of, f"truncation: {flaw}", True)
        yield from (Problem(10, of, what, True) for what in self._transactions(stream))
        yield from (Problem(11, of, what, False) for what in self._ids(stream))
        yield from (Problem(16, of, what, True) for what in _at_rest(stream))
        self._subscribers[f"{stream.scope}/{stream.name}"] = {
            name: one.generation for name, one in found.subscriber_records.items()
        }

    def _transactions(self, stream: Stream) -> Iterator[str]:
        found = stream.metadata
        assert found is not None
        at_work: dict[UUID, int] = {}
        for epoch, transactions in stream.transactions.items():
            record = found.epochs.get(epoch)
            if record is None or record.reference != epoch or epoch > (found.current_epoch or 0):
                yield f"transactionsInEpoch-{epoch}: none can be opened in this epoch"
            for id, one in transactions.items():
                if id.int >> _COUNTER_BITS != epoch:
                    yield f"transactionsInEpoch-{epoch}: transaction {id} is of another epoch"
                if one.status is TransactionStatus.UNKNOWN:
                    yield f"transactionsInEpoch-{epoch}: the status of transaction {id} is UNKNOWN"
                if one.status is TransactionStatus.COMMITTING:
                    at_work[id] = one.commit_order
        orders = [order for order in at_work.values() if order != NO_TIME]
        if len(set(orders)) < len(orders):
            yield "transactionsInEpoch: two transactions have the same place in the order of commits"
        for id in committing(stream):
            if id not in at_work and id not in self.completed:
                yield f"committingTxns: transaction {id} is neither committing nor completed"

    def _ids(self, stream: Stream) -> Iterator[str]:
        for epoch, transactions in stream.transactions.items():
            for id in transactions:
                if id.int & (1 << _COUNTER_BITS) - 1 > self._cluster.counter:
                    yield f"transactionsInEpoch-{epoch}: transaction {id} is above the counter, {self._cluster.counter}"

    def _place(self, stream: Stream) -> Iterator[Problem]:
        of, streams = name_of(stream), self._cluster.scopes[stream.scope].streams
        if stream.name.startswith(MARK):
            if stream.name.removeprefix(MARK) not in streams:
                yield Problem(12, of, "it is the mark stream of none", False)
        elif MARK + stream.name not in streams:
            yield Problem(12, of, "it has no mark stream", False)
        groups = self._cluster.scopes[stream.scope].groups
        if stream.name.startswith(GROUP) and stream.name.removeprefix(GROUP) not in groups:
            yield Problem(13, of, "it is the stream of a reader group that the controller does not know", False)
        highest = self._cluster.deleted_streams.get(f"{stream.scope}/{stream.name}")
        first = stream.metadata.epochs.get(0) if stream.metadata is not None else None
        if highest is not None and first is not None and highest >= min(one.number for one in first.segments):
            yield Problem(15, of, f"an earlier stream of the name came to segment {highest}", False)

    def _group(self, group: ReaderGroup) -> Iterator[Problem]:
        if GROUP + group.name not in self._cluster.scopes[group.scope].streams:
            yield Problem(13, name_of(group), "it has no stream for its state", False)
        if state_of(group.metadata) is not ThingState.CREATING:
            yield from (Problem(13, name_of(group), what, True) for what in _missing(group.metadata))


def _table(table: KeyValueTable) -> Iterator[Problem]:
    found = table.metadata
    if found is None or state_of(found) is ThingState.CREATING:
        return
    flaws, config, epoch = [*_missing(found)], found.configuration, found.epochs.get(0)
    if config is not None and (epoch is None or len(epoch.segments) != config.partitions):
        flaws.append(f"epochRecord-0 has not the {config.partitions} segments of its configuration")
    if config is not None and not config.primary_key_length:
        flaws.append("configuration: its keys have no length")
    yield from (Problem(14, name_of(table), what, True) for what in flaws)


def name_of(thing: Thing | Unreadable) -> str:
    """A thing, for people."""
    kinds = {Stream: "stream", ReaderGroup: "reader group", KeyValueTable: "table"}
    kind = thing.kind if isinstance(thing, Unreadable) else type(thing)
    return f"{kinds[kind]} {thing.scope}/{thing.name}"
