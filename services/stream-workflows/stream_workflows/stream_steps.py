"""What the workflows of streams do on the segment stores.

Rules: stream-and-transaction-semantics 3.4 to 3.9, segment-store-wire-protocol 7.11.
"""

from collections.abc import Awaitable, Iterable

from sluice.domain.config import ScaleType
from sluice.domain.names import mark_stream, stream_key
from sluice.domain.segment_id import segment_name
from sluice.domain.stream import cuts, decide
from sluice.domain.stream.state import Stream, find_stream
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.steps import all_done
from stream_workflows.tools import StreamTools

SCALE_TYPE_CODES = {ScaleType.FIXED: 0, ScaleType.KBYTES: 1, ScaleType.EVENTS: 2}


def _names(stream: Stream, segments: Iterable[int]) -> list[str]:
    return [segment_name(stream.scope, stream.name, s) for s in segments]


def create_calls(store: SegmentStore, stream: Stream, segments: Iterable[int]) -> list[Awaitable[None]]:
    scaling = stream.config.scaling
    code, rollover = SCALE_TYPE_CODES[scaling.scale_type], stream.config.rollover_size_bytes
    names = _names(stream, segments)
    return [store.create_segment(name, code, scaling.target_rate, rollover) for name in names]


def _mark_of(tools: StreamTools, stream: Stream) -> Stream | None:
    return find_stream(tools.reader(stream_key(stream.scope, stream.name)), stream.scope, mark_stream(stream.name))


async def create_segments(tools: StreamTools, stream: Stream) -> None:
    mark = _mark_of(tools, stream)
    calls = create_calls(tools.store, stream, stream.active_epoch.segments)
    if mark is not None and mark.incarnation == stream.incarnation:
        calls += create_calls(tools.store, mark, mark.active_epoch.segments)
    await all_done(calls)


async def update_policies(tools: StreamTools, stream: Stream) -> None:
    """Segments that are about to be replaced need no new policy."""
    if stream.workflow and stream.workflow.replacement:
        return
    scaling = stream.config.scaling
    code = SCALE_TYPE_CODES[scaling.scale_type]
    names = _names(stream, stream.active_epoch.segments)
    await all_done(tools.store.update_policy(name, code, scaling.target_rate) for name in names)


async def truncate_segments(tools: StreamTools, stream: Stream) -> None:
    """Segments the cut has not reached (offset -1) have nothing to truncate."""
    reached = [(segment_name(stream.scope, stream.name, s), at) for s, at in stream.cut.items() if at >= 0]
    await all_done(tools.store.truncate_segment(name, at) for name, at in reached)


async def delete_passed_segments(tools: StreamTools, stream: Stream) -> None:
    names = _names(stream, stream.workflow.deletes if stream.workflow else ())
    await all_done(tools.store.delete_segment(name) for name in names)


async def seal_segments(tools: StreamTools, stream: Stream) -> None:
    names = _names(stream, stream.active_epoch.segments)
    await all_done(tools.store.seal_segment(name) for name in names)


async def delete_segments(tools: StreamTools, stream: Stream) -> None:
    mark = _mark_of(tools, stream)
    names = _names(stream, {*cuts.segments_between(stream, stream.cut, {}), *stream.spare})
    if mark is not None:
        names += _names(mark, cuts.segments_between(mark, mark.cut, {}))
    await all_done(tools.store.delete_segment(name) for name in names)


async def release_name(tools: StreamTools, stream: Stream) -> None:
    for command in decide.releases(stream, _mark_of(tools, stream)):
        await tools.release(command)


async def create_replacement(tools: StreamTools, stream: Stream) -> None:
    creates = stream.workflow.replacement.creates if stream.workflow and stream.workflow.replacement else ()
    await all_done(create_calls(tools.store, stream, [s.id for s in creates]))


async def seal_replaced(tools: StreamTools, stream: Stream) -> dict[int, int]:
    """The sizes of the replaced segments once nothing more can be written to them."""
    seals = stream.workflow.replacement.seals if stream.workflow and stream.workflow.replacement else ()

    async def seal(segment: int) -> int:
        name = segment_name(stream.scope, stream.name, segment)
        await tools.store.seal_segment(name)
        return (await tools.store.segment_info(name)).length

    return dict(zip(seals, await all_done(seal(s) for s in seals), strict=True))
