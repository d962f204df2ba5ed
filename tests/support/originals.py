"""What an original controller knows, made up for tests: streams that scale, roll and are truncated by its rules."""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import msgspec

from sluice_cli.migration import model
from sluice_cli.migration import records as r
from sluice_cli.migration.tables import GroupMetadata, StreamMetadata, TableMetadata

T = 1_700_000_000_000
SCOPE = "sc"
COUNTER = 1000


def uuid(number: int) -> UUID:
    return UUID(int=number << 64 | number)


def transaction(epoch: int, number: int) -> UUID:
    """The id of the transaction with this number of the counter."""
    return UUID(int=epoch << 96 | number)


def active(status: r.TransactionStatus, order: int = r.NO_TIME, **fields: Any) -> r.ActiveTransaction:
    made = r.ActiveTransaction(T, T + 30_000, T + 10**12, status, commit_order=order)
    return msgspec.structs.replace(made, **fields)


class GrowingStream:
    """A stream of the original, whose records follow from what is done to it."""

    def __init__(self, name: str = "st", segments: int = 1, first: int = 0) -> None:
        self.name = name
        width = 1 / segments
        ranges = [(i * width, (i + 1) * width if i + 1 < segments else 1.0) for i in range(segments)]
        made = tuple(r.SegmentRecord(first + i, T, 0, low, high) for i, (low, high) in enumerate(ranges))
        self.epochs = [r.EpochRecord(0, 0, made, T, 0, 0)]
        self.sizes: dict[int, int] = {}
        self.fields: dict[str, Any] = {}
        self.transactions: dict[int, dict[UUID, r.ActiveTransaction]] = {}
        self.writers: dict[str, r.WriterMark] = {}

    @property
    def active(self) -> list[r.SegmentRecord]:
        return sorted(self.epochs[-1].segments, key=lambda s: s.low)

    def new_segments(self, sealed: list[r.SegmentRecord], count: int) -> list[r.SegmentRecord]:
        """What comes for adjacent ones that are sealed."""
        epoch = len(self.epochs)
        first = max(s.number for e in self.epochs for s in e.segments) + 1
        low, high = sealed[0].low, sealed[-1].high
        bounds = [low + (high - low) * i / count for i in range(count)] + [high]
        return [r.SegmentRecord(first + i, T + 10 * epoch, epoch, bounds[i], bounds[i + 1]) for i in range(count)]

    def grow(self, steps: Iterable[tuple[Any, ...]]) -> None:
        """Each is `scale` with its arguments, or `roll` with the number of an epoch that is no duplicate, modulo."""
        for step, *arguments in steps:
            if step == "roll":
                originals = [e.epoch for e in self.epochs if e.reference == e.epoch]
                self.roll(originals[arguments[0] % len(originals)])
            else:
                self.scale(*arguments)

    def scale(self, at: int, sealed: int, count: int) -> None:
        """Put `count` segments in the place of `sealed` ones, from the one at an index on."""
        gone = self.active[at % len(self.active) :][:sealed]
        self._seal(gone)
        left = [s for s in self.active if s not in gone]
        self._add(len(self.epochs), [*left, *self.new_segments(gone, count)])

    def roll(self, reference: int) -> None:
        """Behind the active epoch come duplicates of this one, and then of the active one."""
        active = self.epochs[-1]
        for of in (self.epochs[reference], active):
            epoch = len(self.epochs)
            copies = [msgspec.structs.replace(s, creation_epoch=epoch, creation_ms=T + 10 * epoch) for s in of.segments]
            self._seal(self.active)
            self._add(of.reference, copies)

    def _seal(self, segments: Iterable[r.SegmentRecord]) -> None:
        self.sizes.update({s.id: 100 + s.number for s in segments})

    def _add(self, reference: int, segments: list[r.SegmentRecord]) -> None:
        epoch = len(self.epochs)
        self.epochs.append(r.EpochRecord(epoch, reference, tuple(segments), T + 10 * epoch, 0, 0))

    def truncation(self, cut: dict[int, int], **fields: Any) -> r.Truncation:
        """At a cut in these segments; each is met in the epoch that it came with."""
        known = {s.id: s for e in self.epochs for s in e.segments}
        span = tuple(r.SpanEntry(known[id], known[id].creation_epoch) for id in cut)
        return msgspec.structs.replace(r.NOT_TRUNCATED, cut=cut, span=span, **fields)

    def metadata(self) -> StreamMetadata:
        fields: dict[str, Any] = {
            "creation_ms": T,
            "configuration": configuration(self.name),
            "transition": r.NO_TRANSITION,
            "truncation": r.NOT_TRUNCATED,
            "committing": r.NO_COMMITS,
            "state": r.StateRecord(r.StreamState.ACTIVE),
            "current_epoch": len(self.epochs) - 1,
            "epochs": {e.epoch: e for e in self.epochs},
            "size_shards": {0: r.SealedSizes(dict(self.sizes))},
        }
        return StreamMetadata(**{**fields, **self.fields})

    def stream(self) -> model.Stream:
        return model.Stream(
            scope=SCOPE,
            name=self.name,
            id=uuid(100 + sum(self.name.encode())),
            metadata=self.metadata(),
            transactions=self.transactions,
            writers=self.writers,
        )


def configuration(name: str, segments: int = 1, **fields: Any) -> r.StreamConfiguration:
    policy = r.ScalingPolicy(r.ScaleKind.FIXED, 0, 0, segments)
    made = r.StreamConfiguration(SCOPE, name, policy, None, updating=False)
    return msgspec.structs.replace(made, **fields)


def group(name: str, *streams: str, retention: r.GroupRetention = r.GroupRetention.NONE) -> model.ReaderGroup:
    starts = {f"{SCOPE}/{stream}": r.GroupCut({}) for stream in streams}
    config = r.GroupConfiguration(3000, 30_000, 3, retention, 2, starts, {}, False)
    metadata = GroupMetadata(creation_ms=T, configuration=config, state=r.ThingStateRecord(r.ThingState.ACTIVE))
    return model.ReaderGroup(scope=SCOPE, name=name, id=uuid(7), metadata=metadata)


def table(name: str, partitions: int = 2) -> model.KeyValueTable:
    width = 1 / partitions
    segments = tuple(r.SegmentRecord(i, T, 0, i * width, (i + 1) * width) for i in range(partitions))
    metadata = TableMetadata(
        creation_ms=T,
        configuration=r.TableConfiguration(SCOPE, name, partitions, 8, 0),
        state=r.ThingStateRecord(r.ThingState.ACTIVE),
        current_epoch=0,
        epochs={0: r.TableEpoch(0, segments, T)},
    )
    return model.KeyValueTable(scope=SCOPE, name=name, id=uuid(8), metadata=metadata)


class MemoryOriginal:
    """See Original: these things in one scope. Every stream that is no mark stream has one."""

    def __init__(self, *things: model.Thing, **cluster: Any) -> None:
        self._things = list(things)
        for stream in [t for t in things if isinstance(t, model.Stream) and not t.name.startswith("_MARK")]:
            self._things.append(GrowingStream(f"_MARK{stream.name}").stream())
        found: dict[type, dict[str, UUID]] = {model.Stream: {}, model.ReaderGroup: {}, model.KeyValueTable: {}}
        for thing in self._things:
            found[type(thing)][thing.name] = thing.id
        scope = model.Scope(
            name=SCOPE,
            id=uuid(1),
            streams=found[model.Stream],
            groups=found[model.ReaderGroup],
            tables=found[model.KeyValueTable],
            deleting=cluster.pop("deleting", False),
        )
        fields = {"deleted_streams": {}, "deleted_tables": {}, "completed": (), "counter": COUNTER, **cluster}
        self.cluster = model.Cluster(scopes={SCOPE: scope}, **fields)

    def things(self) -> Iterator[model.Thing]:
        return iter(sorted(self._things, key=lambda thing: thing.name))
