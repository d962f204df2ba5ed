"""What the workflows do on the segment stores, step by step, and what they note in the journal.

A step does only what the journal has decided for good, and may be carried out again or late: "already so" counts as
done, and segment names are never used for anything else. What a step needs of the stream is taken out before its
first await, because the state changes in place.
Rules: stream-and-transaction-semantics 3.4 to 3.9, segment-store-wire-protocol 7.11.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from sluice.domain.commands import ReleaseStreamName
from sluice.domain.config import ScaleType
from sluice.domain.decision import Decision, Reader
from sluice.domain.names import mark_stream, stream_key
from sluice.domain.segment_id import segment_name
from sluice.domain.stream import cuts, decide, scale
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.workflow import WorkflowKind
from sluice.segmentstore.store import SegmentStore

T = TypeVar("T")

SCALE_TYPE_CODES = {ScaleType.FIXED: 0, ScaleType.KBYTES: 1, ScaleType.EVENTS: 2}


class Tools(Protocol):
    """What a step may use; `reader` is the view of an aggregate's partition, `release` has the scope drop a name."""

    store: SegmentStore

    def reader(self, key: str) -> Reader: ...

    async def release(self, command: ReleaseStreamName) -> None: ...


CarryOut = Callable[[Tools, Any], Awaitable[Any]]
Record = Callable[[Reader, Any, Any], Decision]


class Step(msgspec.Struct, frozen=True):
    """`carry_out` gets the tools and the aggregate's state; `record` notes in the journal what came of it.

    `record` gets a reader, the state that the step began with, of which it may use the names, and the outcome.
    """

    name: str
    carry_out: CarryOut
    record: Record | None = None


def _plain(finish: Callable[[Reader, str, str], Decision]) -> Record:
    return lambda reader, stream, _outcome: finish(reader, stream.scope, stream.name)


def _with_outcome(finish: Callable[[Reader, str, str, Any], Decision]) -> Record:
    return lambda reader, stream, outcome: finish(reader, stream.scope, stream.name, outcome)


async def all_done(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Await all of them, side by side; then raise the first failure, if any."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [o for o in outcomes if not isinstance(o, BaseException)]


def _names(stream: Stream, segments: Iterable[int]) -> list[str]:
    return [segment_name(stream.scope, stream.name, s) for s in segments]


def _create_calls(store: SegmentStore, stream: Stream, segments: Iterable[int]) -> list[Awaitable[None]]:
    scaling = stream.config.scaling
    code, rollover = SCALE_TYPE_CODES[scaling.scale_type], stream.config.rollover_size_bytes
    names = _names(stream, segments)
    return [store.create_segment(name, code, scaling.target_rate, rollover) for name in names]


def _mark_of(tools: Tools, stream: Stream) -> Stream | None:
    return find_stream(tools.reader(stream_key(stream.scope, stream.name)), stream.scope, mark_stream(stream.name))


async def create_segments(tools: Tools, stream: Stream) -> None:
    mark = _mark_of(tools, stream)
    calls = _create_calls(tools.store, stream, stream.active_epoch.segments)
    if mark is not None and mark.incarnation == stream.incarnation:
        calls += _create_calls(tools.store, mark, mark.active_epoch.segments)
    await all_done(calls)


async def update_policies(tools: Tools, stream: Stream) -> None:
    """Segments that are about to be replaced need no new policy."""
    if stream.workflow and stream.workflow.replacement:
        return
    scaling = stream.config.scaling
    code = SCALE_TYPE_CODES[scaling.scale_type]
    names = _names(stream, stream.active_epoch.segments)
    await all_done(tools.store.update_policy(name, code, scaling.target_rate) for name in names)


async def truncate_segments(tools: Tools, stream: Stream) -> None:
    """Segments the cut has not reached (offset -1) have nothing to truncate."""
    reached = [(segment_name(stream.scope, stream.name, s), at) for s, at in stream.cut.items() if at >= 0]
    await all_done(tools.store.truncate_segment(name, at) for name, at in reached)


async def delete_passed_segments(tools: Tools, stream: Stream) -> None:
    names = _names(stream, stream.workflow.deletes if stream.workflow else ())
    await all_done(tools.store.delete_segment(name) for name in names)


async def seal_segments(tools: Tools, stream: Stream) -> None:
    names = _names(stream, stream.active_epoch.segments)
    await all_done(tools.store.seal_segment(name) for name in names)


async def delete_segments(tools: Tools, stream: Stream) -> None:
    mark = _mark_of(tools, stream)
    names = _names(stream, cuts.segments_between(stream, stream.cut, {}))
    if mark is not None:
        names += _names(mark, cuts.segments_between(mark, mark.cut, {}))
    await all_done(tools.store.delete_segment(name) for name in names)


async def release_name(tools: Tools, stream: Stream) -> None:
    for command in decide.releases(stream, _mark_of(tools, stream)):
        await tools.release(command)


async def create_replacement(tools: Tools, stream: Stream) -> None:
    creates = stream.workflow.replacement.creates if stream.workflow and stream.workflow.replacement else ()
    await all_done(_create_calls(tools.store, stream, [s.id for s in creates]))


async def seal_replaced(tools: Tools, stream: Stream) -> dict[int, int]:
    """The sizes of the replaced segments once nothing more can be written to them."""
    seals = stream.workflow.replacement.seals if stream.workflow and stream.workflow.replacement else ()

    async def seal(segment: int) -> int:
        name = segment_name(stream.scope, stream.name, segment)
        await tools.store.seal_segment(name)
        return (await tools.store.segment_info(name)).length

    return dict(zip(seals, await all_done(seal(s) for s in seals), strict=True))


_REPLACE = Step("create-replacement", create_replacement, _plain(scale.add_epoch))
WORKFLOWS: dict[WorkflowKind, tuple[Step, ...]] = {
    WorkflowKind.CREATE_STREAM: (Step("create-segments", create_segments, _plain(decide.finish_create)),),
    WorkflowKind.UPDATE_STREAM: (
        Step("update-policies", update_policies),
        _REPLACE,
        Step("seal-replaced", seal_replaced, _with_outcome(decide.finish_update)),
    ),
    WorkflowKind.SCALE_STREAM: (_REPLACE, Step("seal-replaced", seal_replaced, _with_outcome(scale.finish_scale))),
    WorkflowKind.TRUNCATE_STREAM: (
        Step("truncate-segments", truncate_segments),
        Step("delete-passed-segments", delete_passed_segments, _plain(decide.finish_truncate)),
    ),
    WorkflowKind.SEAL_STREAM: (Step("seal-segments", seal_segments, _plain(decide.finish_seal)),),
    WorkflowKind.DELETE_STREAM: (
        Step("delete-segments", delete_segments),
        Step("release-name", release_name, _plain(decide.finish_delete)),
    ),
}
