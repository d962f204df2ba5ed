"""A stream as it is shown, of now or of a moment of the past; and its segments."""

from collections.abc import Iterable, Sequence
from typing import Literal

from sluice.domain.cluster.state import Cluster
from sluice.domain.config import RetentionPolicy, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.decision import Reader
from sluice.domain.ids import StreamId
from sluice.domain.names import mark_stream
from sluice.domain.segment import Segment, epoch_of, number_of, segment_name
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.transaction.index import KEPT_MS, MAX_KEPT, transactions_of
from sluice.domain.workflow import running
from sluice.insight.decisions import DecisionModel, last_decisions
from sluice.insight.placement import Placement, Unreachable
from sluice.insight.shown import Allowed, Moment, Shown, cut_shown, text
from sluice.insight.workflows import RunningWorkflow, workflow_shown

DECIDES = "retention-spark"
"""The service that decides by the policies of streams."""


class Scaling(Shown):
    """How the number of a stream's segments is decided."""

    type: Literal["fixed", "events", "kbytes"] = text("A fixed number, or by the rate of events or of kilobytes.")
    target_rate: int = text("Per segment and second, in events or kilobytes; 0 where fixed.")
    scale_factor: int = text("Into how many segments one is split at most; 0 where fixed.")
    min_segments: int = text("How many segments there are at least.")


class Retention(Shown):
    """What must be kept of a stream, and what may be."""

    type: Literal["size", "time"] = text("By size, in bytes, or by age, in milliseconds.")
    min: int = text("So much is kept in any case.", examples=[1073741824])
    max: int = text("More than this is not kept; not less than `min`.")


class StreamConfiguration(Shown):
    """The configuration of a stream as it is stored."""

    scaling: Scaling
    retention: Retention | None = None
    tags: list[str]
    rollover_size_bytes: int
    timestamp_aggregation_timeout: int


class SegmentModel(Shown):
    """A segment, the part of the key space it is responsible for, and who keeps it."""

    id: int = text("Epoch in the high 32 bits, number in the low ones.", examples=[4294967298])
    number: int = text("Its number, unique in the stream.")
    epoch: int = text("The epoch it was created in.")
    low: float = text("Where its key range begins.")
    high: float = text("Where its key range ends; that key is not part of it.")
    container: int | None = text("The container it belongs to, if it is known how many there are.", default=None)
    store: str | None = text("host:port of the segment store that runs the container, if known.", default=None)
    problem: str | None = text("What is wrong with its container, in words; left out if that answers.", default=None)


class WaitingWorkflow(Shown):
    """A workflow that waits until others of the stream have ended."""

    kind: str = text(examples=["scale-stream"])
    at: int = text("When that was last recorded, epoch ms.")


class TransactionCounts(Shown):
    """How many transactions of the stream are in each state."""

    open: int = text("Open.")
    waiting: int = text("Waiting to be committed.")
    aborting: int = text("Being aborted.")
    ended: int = text("Ended and remembered.")
    ended_kept_ms: int = text(
        f"For how long one that has ended is remembered at least, unless {MAX_KEPT} newer ones have ended; at most "
        "twice as long."
    )


class SubscriberModel(Shown):
    """A reader group for which the stream keeps what is yet to be read."""

    name: str = text("scope/name of the reader group.", examples=["demo/readers"])
    group_id: str = text("Its UUID.")
    generation: int = text("Its generation.")
    updated_at: int = text("When it last reported, epoch ms.")
    cut: dict[str, int] = text("How far it has read; empty before its first report.")


class WatermarkModel(Shown):
    """The latest watermark, in the writers' own time."""

    lower: int
    upper: int
    at: int = text("When it was written, epoch ms.")


class StreamItem(Shown):
    """A stream in a list."""

    name: str = text("The stream's name.", examples=["greetings"])
    state: str = text("What is being done with it.", examples=["ACTIVE"])
    epoch: int = text("The epoch that is written to.")
    segments: int = text("How many segments are written to.")
    unreachable: int | None = text(
        "How many of them can be neither written nor read; left out if all can.", default=None
    )
    tags: list[str] = text("Its tags, in the order in which they were given.")


class StreamDescription(Moment):
    """All there is to know of a stream."""

    scope: str
    name: str
    state: str = text("What is being done with it.", examples=["ACTIVE"])
    epoch: int = text("The epoch that is written to.")
    created_at: int = text("When it was created, epoch ms.")
    config: StreamConfiguration
    segments: list[SegmentModel] = text("The segments that are written to; none once it is sealed.")
    head_cut: dict[str, int] = text("Where reading begins.")
    truncated_bytes: int = text("How many bytes lie before the head.")
    workflow: RunningWorkflow | None = text("What changes it at the moment, or commits.", default=None)
    waiting: WaitingWorkflow | None = text("The workflow that waits.", default=None)
    unreachable: Unreachable | None = text(
        "Its segments that can be neither written nor read; left out if all can.", default=None
    )
    transactions: TransactionCounts
    subscribers: list[SubscriberModel]
    decisions: list[DecisionModel] = text("The last decision on scaling and on retention.")
    undecided_since: int | None = text(
        "Since when no retention-spark is there to decide by its policies, epoch ms; left out if one is, if it has no "
        "policy, and of the past.",
        default=None,
    )
    allowed: list[Allowed] | None = text(
        "What the caller may do: update, scale, truncate, seal, delete; commit and abort of transactions; "
        "retry and cancel of its workflow. Left out of the past.",
        default=None,
    )
    mark_stream: str = text("The name of the stream that carries its watermarks.")
    watermark: WatermarkModel | None = text("The latest one, if there is any.", default=None)


def stream_shown(view: Reader, stream: Stream, placement: Placement) -> StreamDescription:
    """`view` has what is stored beside it: its transactions, and the batch of commits."""
    transactions = transactions_of(view, stream.id)
    segments = [] if stream.state is StreamState.SEALED else stream.active_segments()
    waiting, watermark = stream.waiting, stream.watermark
    return StreamDescription(
        scope=stream.id.scope,
        name=stream.id.name,
        state=stream.state.value,
        epoch=stream.active_epoch.number,
        created_at=stream.created_at,
        config=_config(stream.config),
        segments=segments_shown(stream.id, segments, placement),
        head_cut=cut_shown(head(stream)),
        truncated_bytes=stream.cut_size,
        workflow=workflow_shown(running(stream) or running(view.get(stream.id.commits))),
        waiting=WaitingWorkflow(kind=waiting.kind, at=waiting.at) if waiting is not None else None,
        unreachable=_unreachable(stream, placement),
        transactions=TransactionCounts(
            open=len(transactions.open),
            waiting=len(transactions.committing),
            aborting=len(transactions.aborting),
            ended=len(transactions.older) + len(transactions.newest) - transactions.of_deleted,
            ended_kept_ms=KEPT_MS,
        ),
        subscribers=[
            SubscriberModel(
                name=name,
                group_id=known.group_id,
                generation=known.generation,
                updated_at=known.updated_at,
                cut=cut_shown(known.cut),
            )
            for name, known in sorted(stream.subscribers.items())
        ],
        decisions=last_decisions(stream),
        mark_stream=mark_stream(stream.id.name),
        watermark=WatermarkModel(lower=watermark.lower, upper=watermark.upper, at=watermark.at) if watermark else None,
    )


def undecided_since(stream: Stream, cluster: Cluster) -> int | None:
    """Since when no one decides by the stream's policies; None if one does, or it has none."""
    has_policy = stream.config.retention is not None or stream.config.scaling.scale_type is not ScaleType.FIXED
    is_there = any(member.service == DECIDES for member in cluster.members.values())
    return cluster.away.get(DECIDES, stream.created_at) if has_policy and not is_there else None


def segments_shown(id: StreamId, segments: Iterable[Segment], placement: Placement) -> list[SegmentModel]:
    """Segments of one stream, with their containers."""
    containers = ((segment, placement.container(segment_name(*id, segment.id))) for segment in segments)
    return [
        SegmentModel(
            id=segment.id,
            number=number_of(segment.id),
            epoch=epoch_of(segment.id),
            low=segment.low,
            high=segment.high,
            container=container,
            store=placement.store(container),
            problem=placement.problem(container),
        )
        for segment, container in containers
    ]


def stream_item(stream: Stream, placement: Placement) -> StreamItem:
    unreachable = _unreachable(stream, placement)
    return StreamItem(
        name=stream.id.name,
        state=stream.state.value,
        epoch=stream.active_epoch.number,
        segments=len(_written(stream)),
        unreachable=unreachable.segments if unreachable is not None else None,
        tags=list(stream.config.tags),
    )


def _written(stream: Stream) -> Sequence[int]:
    """The segments that are written to."""
    return () if stream.state is StreamState.SEALED else stream.active_epoch.segments


def _unreachable(stream: Stream, placement: Placement) -> Unreachable | None:
    return placement.unreachable(segment_name(*stream.id, id) for id in _written(stream))


def _config(config: StreamConfig) -> StreamConfiguration:
    """As it is stored, but for a maximum below the minimum. Other clients have other limits."""
    return StreamConfiguration(
        scaling=_scaling(config.scaling),
        retention=_retention(config.retention) if config.retention is not None else None,
        tags=list(config.tags),
        rollover_size_bytes=config.rollover_size_bytes,
        timestamp_aggregation_timeout=config.timestamp_aggregation_timeout_ms,
    )


def _scaling(scaling: ScalingPolicy) -> Scaling:
    return Scaling(
        type=scaling.scale_type.word,
        target_rate=scaling.target_rate,
        scale_factor=scaling.scale_factor,
        min_segments=scaling.min_segments,
    )


def _retention(retention: RetentionPolicy) -> Retention:
    return Retention(type=retention.retention_type.word, min=retention.minimum, max=retention.ceiling)
