"""States of ours in the words of the original: the inverse of `to_stream.py` and `to_states.py`, for a way back.

What is under way has no words there, and neither has what the form cannot hold: `in_the_way` names it. Recorded cuts of
retention are not carried over, as they are not when they come. Pure functions. Rules: controller-metadata-store 8.
"""

from collections.abc import Collection, Iterator
from itertools import islice

from sluice.backup.states import BackedUp
from sluice.domain.config import RetentionPolicy as Retention
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.segment import Segment, epoch_of, number_of
from sluice.domain.stream import cuts
from sluice.domain.stream.cuts import RangeIndex
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table.state import Table
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import Transaction
from sluice.domain.workflow import running
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.to_states import GROUP_RETENTIONS

CHUNK = 1000
"""Epochs of a chunk of the history, and of a shard of sizes."""
MAX_VALUE = (1 << 20) - 8192
"""Bytes that a value of a table may have."""

_ACTIVE = r.ThingStateRecord(r.ThingState.ACTIVE)


def in_the_way(found: BackedUp) -> Iterator[str]:
    """What stands in the way of an export, each with the thing that it is of."""
    for name in sorted(found.states):
        state, of = found.states[name], name.replace(":", " ", 1)
        workflow = running(state)
        if workflow is not None and not isinstance(state, Transaction | PreparedRange):
            yield f"{of}: {workflow.kind.value} is under way"
        elif isinstance(state, Stream | ReaderGroup | Table):
            yield from (f"{of}: {why}" for why in _unsayable(state))
    for stream, index in sorted(found.transactions.items()):
        if index.live:
            yield f"stream {stream}: {index.live} transactions have not ended"


def _unsayable(state: Stream | ReaderGroup | Table) -> Iterator[str]:
    if isinstance(state, Stream):
        history = state.history
        if list(history.numbers(history.first, history.count - 1)) != list(range(state.active + 1)):
            yield "its epochs are not numbered without gaps from 0, since a back-up was restored"
            return
    for key, value in t.encode_table(tables_of(state)["metadata"]).items():
        if len(value) > MAX_VALUE:
            yield f"its entry {key} would have {len(value)} bytes, and a table takes no more than {MAX_VALUE}"


def tables_of(state: Stream | ReaderGroup | Table) -> dict[str, t.Table]:
    """All tables of a thing, by what follows its name in theirs, the one that says most at last."""
    if isinstance(state, ReaderGroup):
        return {"metadata": _group(state)}
    if isinstance(state, Table):
        return {"metadata": _table(state)}
    reference = state.active_epoch.reference
    writers = {name: r.WriterMark(w.timestamp, dict(w.position), w.alive) for name, w in state.writers.items()}
    return {
        f"transactionsInEpoch-{reference}": t.Transactions(),
        "epochsWithTransactions": t.Names(numbers={reference: None}),
        "writersPositions": t.Writers(writers=writers),
        "metadata": _stream(state),
    }


class _Epochs:
    """The records of all epochs of a stream, and what follows from them."""

    def __init__(self, stream: Stream) -> None:
        self._created_ms: dict[int, int] = {}
        self.epochs: dict[int, r.EpochRecord] = {}
        self.history: dict[int, list[r.HistoryRecord]] = {}
        self.sealed_at: dict[int, int] = {}
        history, before = stream.history, dict[int, Segment]()
        splits = merges = 0
        for number in range(stream.active + 1):
            epoch = history.epoch(number)
            at, reference = epoch.created_at, epoch.reference
            self._created_ms[number] = at
            now = {s: history.segment(s) for s in epoch.segments}
            left = [segment for s, segment in before.items() if s not in now]
            came = [segment for s, segment in now.items() if s not in before]
            splits, merges = splits + _in_several(left, came), merges + _in_several(came, left)
            self.sealed_at |= {s.id: number for s in left}
            self.epochs[number] = r.EpochRecord(number, reference, self._records(now.values()), at, splits, merges)
            changed = (left, came) if reference == number else ((), ())
            change = r.HistoryRecord(number, reference, self._records(changed[0]), self._records(changed[1]), at)
            self.history.setdefault(number // CHUNK, []).append(change)
            before = now

    def record(self, segment: Segment) -> r.SegmentRecord:
        epoch = epoch_of(segment.id)
        return r.SegmentRecord(number_of(segment.id), self._created_ms[epoch], epoch, segment.low, segment.high)

    def _records(self, segments: Collection[Segment]) -> tuple[r.SegmentRecord, ...]:
        return tuple(map(self.record, segments))


def _in_several(segments: Collection[Segment], others: Collection[Segment]) -> int:
    """How many of the segments have keys that are in several of the others."""
    index = RangeIndex(others)
    return sum(len([*islice(index.overlapping(s.low, s.high), 2)]) > 1 for s in segments)


def _stream(stream: Stream) -> t.StreamMetadata:
    epochs = _Epochs(stream)
    shards: dict[int, dict[int, int]] = {0: {}}
    for segment, size in stream.history.sealed_sizes.items():
        shards.setdefault(epoch_of(segment) // CHUNK, {})[segment] = size
    is_sealed = stream.state is StreamState.SEALED
    return t.StreamMetadata(
        creation_ms=stream.created_at,
        configuration=_configuration(stream.id, stream.config),
        transition=r.NO_TRANSITION,
        truncation=_truncation(stream, epochs),
        committing=r.NO_COMMITS,
        state=r.StateRecord(r.StreamState.SEALED if is_sealed else r.StreamState.ACTIVE),
        current_epoch=stream.active,
        retention=r.RetentionSet(()),
        subscribers=r.Subscribers(tuple(stream.subscribers)),
        epochs=epochs.epochs,
        history={number: r.HistoryChunk(tuple(found)) for number, found in epochs.history.items()},
        size_shards={number: r.SealedSizes(sizes) for number, sizes in shards.items()},
        sealed_at=epochs.sealed_at,
        subscriber_records={
            name: r.Subscriber(name, one.generation, one.updated_at, dict(one.cut))
            for name, one in stream.subscribers.items()
        },
    )


def _truncation(stream: Stream, epochs: _Epochs) -> r.Truncation:
    if not stream.cut:
        return r.NOT_TRUNCATED
    history, latest = stream.history, epoch_of(max(stream.cut))
    is_before = cuts.lies_before(stream, stream.cut)
    span = [r.SpanEntry(epochs.record(history.segment(s)), min(latest, history.last_epoch(s))) for s in stream.cut]
    deleted = sorted(s.id for s in history.within(0, latest) if is_before(s))
    return r.Truncation(dict(stream.cut), tuple(span), tuple(deleted), (), stream.cut_size, updating=False)


def _configuration(id: StreamId, config: StreamConfig) -> r.StreamConfiguration:
    return r.StreamConfiguration(
        *id,
        _scaling(config.scaling),
        _retention(config.retention),
        updating=False,
        timestamp_aggregation_ms=config.timestamp_aggregation_timeout_ms,
        tags=config.tags,
        rollover_bytes=config.rollover_size_bytes,
    )


def _scaling(policy: ScalingPolicy) -> r.ScalingPolicy:
    kind = r.ScaleKind(policy.scale_type.code)
    return r.ScalingPolicy(kind, policy.target_rate, policy.scale_factor, policy.min_segments)


def _retention(policy: Retention | None) -> r.RetentionPolicy | None:
    if policy is None:
        return None
    return r.RetentionPolicy(r.RetentionKind[policy.retention_type.value], policy.minimum, policy.maximum)


def _group(group: ReaderGroup) -> t.GroupMetadata:
    config = group.config
    starting, ending = (
        {stream: r.GroupCut(dict(cut)) for stream, cut in found.items()} for found in (config.starts, config.ends)
    )
    configuration = r.GroupConfiguration(
        config.refresh_ms,
        config.checkpoint_interval_ms,
        config.max_outstanding_checkpoints,
        r.GroupRetention(GROUP_RETENTIONS.index(config.retention)),
        config.generation,
        starting,
        ending,
        updating=False,
    )
    return t.GroupMetadata(creation_ms=group.created_at, configuration=configuration, state=_ACTIVE)


def _table(table: Table) -> t.TableMetadata:
    config, at = table.config, table.created_at
    segments = tuple(r.SegmentRecord(number_of(s.id), at, epoch_of(s.id), s.low, s.high) for s in table.segments)
    return t.TableMetadata(
        creation_ms=at,
        configuration=r.TableConfiguration(
            *table.id, config.partitions, config.primary_key_length, config.secondary_key_length
        ),
        state=_ACTIVE,
        current_epoch=0,
        epochs={0: r.TableEpoch(0, segments, at)},
    )
