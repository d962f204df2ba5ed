"""The queries on streams, answered from their state alone.

Rules: controller-grpc-api 5.5, stream-and-transaction-semantics 7.
"""

from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.domain.segment import Segment
from sluice.domain.stream import cuts
from sluice.domain.stream.state import Stream, StreamState


def current_segments(stream: Stream) -> list[Segment]:
    """Segments of the active epoch by key range; empty once the stream is sealed."""
    if stream.state is StreamState.CREATING:
        raise IllegalStateError(f"{stream.id} is being created")
    return [] if stream.state is StreamState.SEALED else stream.active_segments()


def epoch_segments(stream: Stream, epoch: int) -> list[Segment]:
    if epoch < 0:
        raise InvalidArgumentError(f"epoch {epoch} is negative")
    if not stream.history.has(epoch):
        raise NotFoundError(f"{stream.id} has no epoch {epoch}")
    return stream.history.segments_of(epoch)


def head(stream: Stream) -> dict[int, int]:
    """Where reading begins: segment ids with offsets, -1 for a segment the head has not reached."""
    return dict(stream.cut) if stream.cut else dict.fromkeys(stream.history.epoch(stream.history.first).segments, 0)


def is_current(stream: Stream, segment: int) -> bool:
    if stream.state is StreamState.CREATING:
        raise IllegalStateError(f"{stream.id} is being created")
    return stream.state is not StreamState.SEALED and segment in stream.active_epoch.segments


def successors_with_predecessors(stream: Stream, segment: int) -> list[tuple[Segment, list[int]]]:
    """What replaced the segment, each with all the segments it replaced itself.

    Empty for a segment that is active or unknown, or whose stream was sealed: clients read that as "stream sealed".
    """
    replaced_in = stream.history.replaced_in(segment)
    if replaced_in is None:
        return []
    before = stream.history.segments_of(stream.history.before(replaced_in))
    if replaced_in in stream.history.after_all:
        every = sorted(p.id for p in before)
        return [(successor, every) for successor in cuts.successors(stream, segment)]
    index = cuts.RangeIndex(before)
    return [
        (successor, sorted(p.id for p in index.overlapping(successor.low, successor.high)))
        for successor in cuts.successors(stream, segment)
    ]
