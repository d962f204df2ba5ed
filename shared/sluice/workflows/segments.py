"""What several workflows do to the segments of a stream."""

from collections.abc import Iterable

from sluice.domain.config import ScalingPolicy
from sluice.domain.segment import segment_name
from sluice.domain.stream.state import Stream, find_stream
from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.workflows.step_context import StepContext


def segment_names(stream: Stream, segments: Iterable[int]) -> list[str]:
    return [segment_name(*stream.id, s) for s in segments]


async def create_segments(
    store: SegmentStore, stream: Stream, segments: Iterable[int], scaling: ScalingPolicy | None = None
) -> None:
    """Create them with the stream's roll-over size and its scaling policy, unless another one is given."""
    await create_named(store, stream, segment_names(stream, segments), scaling or stream.config.scaling)


async def create_named(store: SegmentStore, stream: Stream, names: Iterable[str], scaling: ScalingPolicy) -> None:
    code, rollover = scaling.scale_type.code, stream.config.rollover_size_bytes
    await all_done(store.create_segment(name, code, scaling.target_rate, rollover) for name in names)


async def set_policies(context: StepContext, stream: Stream) -> None:
    """Have the active segments follow the stream's scaling policy.

    Of two policies the stores keep the one that is sent last. So a process that lost the stream long ago, and sends an
    old one, looks for what was decided meanwhile, and sends that. It does so behind a failure too: some of the old one
    may have arrived.
    """
    scaling, failure = stream.config.scaling, None
    code = scaling.scale_type.code
    names = segment_names(stream, stream.active_epoch.segments)
    try:
        await all_done(context.store.update_policy(name, code, scaling.target_rate) for name in names)
    except SegmentStoreError as error:
        failure = error
    await context.catch_up((stream.id.key,))
    now = find_stream(context.reader(stream.id.key), stream.id)
    if now is not None and now.config.scaling != scaling:
        await set_policies(context, now)
    elif failure is not None:
        raise failure


async def seal_and_measure(store: SegmentStore, stream: Stream, segments: Iterable[int]) -> dict[int, int]:
    """Seal them; their sizes in bytes once nothing more can be written to them."""
    ids = tuple(segments)

    async def seal(name: str) -> int:
        await store.seal_segment(name)
        return (await store.segment_info(name)).length

    return dict(zip(ids, await all_done(seal(name) for name in segment_names(stream, ids)), strict=True))
