"""What several workflows do to the segments of a stream."""

from collections.abc import Iterable

from sluice.domain.config import ScaleType, ScalingPolicy
from sluice.domain.segment import segment_name
from sluice.domain.stream.state import Stream
from sluice.engine.step import all_done
from sluice.pravega.store import SegmentStore

SCALE_TYPE_CODES = {ScaleType.FIXED: 0, ScaleType.KBYTES: 1, ScaleType.EVENTS: 2}


def segment_names(stream: Stream, segments: Iterable[int]) -> list[str]:
    return [segment_name(*stream.id, s) for s in segments]


async def create_segments(
    store: SegmentStore, stream: Stream, segments: Iterable[int], scaling: ScalingPolicy | None = None
) -> None:
    """Create them with the stream's roll-over size and its scaling policy, unless another one is given."""
    await create_named(store, stream, segment_names(stream, segments), scaling or stream.config.scaling)


async def create_named(store: SegmentStore, stream: Stream, names: Iterable[str], scaling: ScalingPolicy) -> None:
    code, rollover = SCALE_TYPE_CODES[scaling.scale_type], stream.config.rollover_size_bytes
    await all_done(store.create_segment(name, code, scaling.target_rate, rollover) for name in names)


async def seal_and_measure(store: SegmentStore, stream: Stream, segments: Iterable[int]) -> dict[int, int]:
    """Seal them; their sizes in bytes once nothing more can be written to them."""
    ids = tuple(segments)

    async def seal(name: str) -> int:
        await store.seal_segment(name)
        return (await store.segment_info(name)).length

    return dict(zip(ids, await all_done(seal(name) for name in segment_names(stream, ids)), strict=True))
