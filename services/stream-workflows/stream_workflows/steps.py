"""What the workflows do on the segment stores, step by step, and how each workflow ends.

A step does only what the journal has decided for good, and may be carried out again or late: "already so" counts as
done, and segment names are never used for anything else. What a step needs of the stream is taken out before its
first await, because the state changes in place.
Rules: stream-and-transaction-semantics 3.4 to 3.9, segment-store-wire-protocol 7.11.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from sluice.domain.config import ScaleType
from sluice.domain.decision import Decision, Reader
from sluice.domain.names import mark_stream
from sluice.domain.segment_id import segment_name
from sluice.domain.stream import cuts, decide
from sluice.domain.stream.state import Stream, WorkflowKind, find_stream
from sluice.segmentstore.store import SegmentStore

SCALE_TYPE_CODES = {ScaleType.FIXED: 0, ScaleType.KBYTES: 1, ScaleType.EVENTS: 2}

Step = Callable[[SegmentStore, Stream, Stream | None], Awaitable[None]]
Finish = Callable[[Reader, str, str], Decision]


class Workflow(msgspec.Struct, frozen=True):
    """`steps` by name, in order; each gets the store, the stream and its mark stream. `finish` is the last record."""

    steps: tuple[tuple[str, Step], ...]
    finish: Finish
    releases_name: bool = False


async def all_done(calls: Iterable[Awaitable[object]]) -> None:
    """Await all of them, side by side; then raise the first failure, if any."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _names(stream: Stream, segments: Iterable[int]) -> list[str]:
    return [segment_name(stream.scope, stream.name, s) for s in segments]


def _create_calls(store: SegmentStore, stream: Stream) -> list[Awaitable[object]]:
    scaling = stream.config.scaling
    code, rollover = SCALE_TYPE_CODES[scaling.scale_type], stream.config.rollover_size_bytes
    return [
        store.create_segment(name, code, scaling.target_rate, rollover)
        for name in _names(stream, stream.active_epoch.segments)
    ]


async def create_segments(store: SegmentStore, stream: Stream, mark: Stream | None) -> None:
    calls = _create_calls(store, stream)
    if mark is not None and mark.incarnation == stream.incarnation:
        calls += _create_calls(store, mark)
    await all_done(calls)


async def update_policies(store: SegmentStore, stream: Stream, _mark: Stream | None) -> None:
    scaling = stream.config.scaling
    code = SCALE_TYPE_CODES[scaling.scale_type]
    names = _names(stream, stream.active_epoch.segments)
    await all_done(store.update_policy(name, code, scaling.target_rate) for name in names)


async def truncate_segments(store: SegmentStore, stream: Stream, _mark: Stream | None) -> None:
    """Segments the cut has not reached (offset -1) have nothing to truncate."""
    reached = [(segment_name(stream.scope, stream.name, s), at) for s, at in stream.cut.items() if at >= 0]
    await all_done(store.truncate_segment(name, at) for name, at in reached)


async def delete_passed_segments(store: SegmentStore, stream: Stream, _mark: Stream | None) -> None:
    names = _names(stream, stream.workflow.deletes if stream.workflow else ())
    await all_done(store.delete_segment(name) for name in names)


async def seal_segments(store: SegmentStore, stream: Stream, _mark: Stream | None) -> None:
    names = _names(stream, stream.active_epoch.segments)
    await all_done(store.seal_segment(name) for name in names)


async def delete_segments(store: SegmentStore, stream: Stream, mark: Stream | None) -> None:
    names = _names(stream, cuts.segments_between(stream, stream.cut, {}))
    if mark is not None:
        names += _names(mark, cuts.segments_between(mark, mark.cut, {}))
    await all_done(store.delete_segment(name) for name in names)


WORKFLOWS = {
    WorkflowKind.CREATE: Workflow((("create-segments", create_segments),), decide.finish_create),
    WorkflowKind.UPDATE: Workflow((("update-policies", update_policies),), decide.finish_update),
    WorkflowKind.TRUNCATE: Workflow(
        (("truncate-segments", truncate_segments), ("delete-passed-segments", delete_passed_segments)),
        decide.finish_truncate,
    ),
    WorkflowKind.SEAL: Workflow((("seal-segments", seal_segments),), decide.finish_seal),
    WorkflowKind.DELETE: Workflow((("delete-segments", delete_segments),), decide.finish_delete, releases_name=True),
}


def mark_of(reader: Reader, stream: Stream) -> Stream | None:
    return find_stream(reader, stream.scope, mark_stream(stream.name))
