"""The streams of all scopes in one list, with what a user looks for among thousands: state, work, decisions.

By name it is walked from where the page begins; any other order needs all of it, so it has a bound. What the caller
may not READ is left out. Works in slices.
"""

import heapq
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Literal

import msgspec
from fastapi import Query, Request, Response
from pydantic import Field

from api_gateway.console.lookback import while_caller_waits
from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.base import Page, refusals, router
from api_gateway.edge.listing import MAX_EXAMINED, may_read
from api_gateway.edge.reads import Names, Reads, missing_scope, streams_after, streams_with_tag
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedContainers, ServedReads
from api_gateway.edge.slices import Slices
from sluice.domain.ids import StreamId
from sluice.domain.listings import members_of
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import running
from sluice.engine.fold import PartitionView
from sluice.insight.decisions import last_decisions
from sluice.insight.placement import Placement
from sluice.insight.progress import Progress, progress_of
from sluice.insight.shown import Shown, text
from sluice.insight.streams import StreamItem, stream_item
from sluice.insight.waits import queued_kind
from sluice.security.resources import mapped_resource, scope_resource

routes = router("streams")

Sort = Literal["name", "segments", "epoch", "changed"]
_LARGEST = 2**63

MAX_NAMES = 100
MAX_NAME = 600


class LastDecision(Shown):
    """The latest decision on scaling or retention."""

    kind: Literal["scale", "retention"]
    code: str = text(examples=["split"])
    at: int = text("When it was taken, epoch ms.")


class FoundStream(StreamItem):
    """A stream in the list of all."""

    scope: str
    workflow: str | None = text(
        "The kind of workflow that changes it, commits, or is queued.", default=None, examples=["scale-stream"]
    )
    failing: bool | None = text("Whether a step of it failed; left out if not.", default=None)
    transactions: int = text("How many of its transactions have not ended.")
    last_decision: LastDecision | None = None
    changed_at: int = text(
        "When it was created, scaled or rolled, a workflow began, or a decision was taken; the latest."
    )


class FoundStreams(Page[FoundStream]):
    """A page of streams. It may be short, or empty, before the end: only without `next` it is the last one."""


class _Wanted(msgspec.Struct, frozen=True):
    """Which streams are wanted; an empty text, and None, are for all. `placement` says what of them can be reached."""

    text: str
    state: StreamState | None
    scope: str | None
    tag: str | None
    internal: bool
    placement: Placement

    def names(self, behind: str) -> Names:
        if self.tag is not None:
            return streams_with_tag(self.tag, behind, internal=self.internal)
        return streams_after(behind, internal=self.internal)


class _Found(msgspec.Struct, frozen=True):
    """A stream that was examined: by its name, and as it is shown if it is wanted."""

    position: str
    may_read: bool
    shown: FoundStream | None


@routes.get(
    "/streams", operation_id="findStreams", dependencies=[SCAN], response_model=FoundStreams, responses=refusals(404)
)
async def find_streams(
    request: Request,
    reads: ServedReads,
    containers: ServedContainers,
    q: Annotated[str, Query(max_length=1000, description="Only those with this text in scope/name or a tag.")] = "",
    state: Annotated[StreamState | None, Query(description="Only those in this state.")] = None,
    sort: Annotated[Sort, Query(description="By scope and name, or the most segments, epochs, news first.")] = "name",
    tag: Annotated[str | None, Query(max_length=255, description="Only streams with exactly this tag.")] = None,
    scope: Annotated[str | None, Query(max_length=1000, description="Only those of this scope.")] = None,
    internal: Annotated[bool, Query(description="Also streams that Sluice keeps for itself, `_…`.")] = False,
    name: Annotated[
        list[Annotated[str, Field(max_length=MAX_NAME)]] | None,
        Query(max_length=MAX_NAMES, description="Only those of these, each `scope/name`; all on one page, as named."),
    ] = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List the streams of all scopes, or of one."""
    wanted = _Wanted(q.casefold(), state, scope, tag, internal, containers.placement())
    if name:
        return as_json(FoundStreams(items=await while_caller_waits(request, _named(reads, wanted, name))))
    behind = position_in(after)
    if sort == "name":
        finding = _by_name(reads, wanted, behind, limit)
    else:
        finding = _sorted(reads, wanted, sort, behind, limit)
    items, last = await while_caller_waits(request, finding)
    return as_json(FoundStreams(items=items, next=token_of(last) if last else None))


async def _named(reads: Reads, wanted: _Wanted, names: list[str]) -> list[FoundStream]:
    """Those of these names that are wanted and there, as far as this process knows."""
    found, slices = [], Slices()
    for id in map(StreamId.of, names):
        if slices.is_over():
            await slices.pause()
        if wanted.scope not in (None, id.scope) or (id.name.startswith("_") and not wanted.internal):
            continue
        view = reads.view(id.key)
        if wanted.tag is not None and wanted.tag not in members_of(view, id.scope).tags.get(id.name, ()):
            continue
        if may_read(mapped_resource(*id)) and (shown := _shown(view, id, wanted)) is not None:
            found.append(shown)
    return found


async def _by_name(reads: Reads, wanted: _Wanted, behind: str, limit: int) -> tuple[list[FoundStream], str]:
    items: list[FoundStream] = []
    examined, last = 0, behind
    async for found in _examined(reads, wanted, behind):
        if found.shown is not None and len(items) == limit:
            return items, last
        examined += 1
        if not found.may_read:
            # No token names what its caller may not know of.
            if examined >= MAX_EXAMINED and last != behind:
                return items, last
            continue
        last = found.position
        if found.shown is not None:
            items.append(found.shown)
        if examined >= MAX_EXAMINED:
            return items, last
    return items, ""


_ORDER: dict[Sort, Callable[[FoundStream], int]] = {
    "segments": lambda one: one.segments,
    "epoch": lambda one: one.epoch,
    "changed": lambda one: one.changed_at,
}


async def _sorted(reads: Reads, wanted: _Wanted, sort: Sort, behind: str, limit: int) -> tuple[list[FoundStream], str]:
    """Raises RefusedError if there are too many for that."""
    found: list[tuple[str, FoundStream]] = []
    examined = 0
    async for one in _examined(reads, wanted, ""):
        examined += 1
        if examined > MAX_EXAMINED:
            raise RefusedError(
                400, f"there are more than {MAX_EXAMINED} streams to sort: name a scope, or sort by name"
            )
        if one.shown is not None:
            # The largest first, and those that are alike by name.
            position = f"{_LARGEST - _ORDER[sort](one.shown):020d} {one.position}"
            if position > behind:
                found.append((position, one.shown))
    page = heapq.nsmallest(limit + 1, found, key=lambda pair: pair[0])
    return [shown for _, shown in page[:limit]], page[limit - 1][0] if len(page) > limit else ""


async def _examined(reads: Reads, wanted: _Wanted, behind: str) -> AsyncIterator[_Found]:
    """All streams behind a position, as far as names and tags may be read off without a look at the states.

    Raises NotFoundError.
    """
    begin, _, name = behind.partition("/")
    scopes = await reads.scope_names(begin if wanted.scope is None else "")
    if wanted.scope is not None:
        if wanted.scope not in scopes:
            if not may_read(scope_resource(wanted.scope)):
                return
            raise missing_scope(wanted.scope)
        scopes = [wanted.scope]
    for scope in scopes:
        async for stream, view in reads.names_of(scope, wanted.names, name if scope == begin else ""):
            id = StreamId(scope, stream)
            is_readable = may_read(mapped_resource(*id))
            yield _Found(str(id), is_readable, _shown(view, id, wanted) if is_readable else None)


def _shown(view: PartitionView, id: StreamId, wanted: _Wanted) -> FoundStream | None:
    """None if it is not wanted, or gone. Its state, which may rest encoded, is looked at last."""
    if wanted.text and not _has_text(view, id, wanted.text):
        return None
    found = view.peek(id.aggregate)
    if not isinstance(found, Stream) or wanted.state not in (None, found.state):
        return None
    return _model(view, found, wanted.placement)


def _has_text(view: PartitionView, id: StreamId, text: str) -> bool:
    tags = members_of(view, id.scope).tags.get(id.name, ())
    return text in f"{id}".casefold() or any(text in tag.casefold() for tag in tags)


def _model(view: PartitionView, stream: Stream, placement: Placement) -> FoundStream:
    workflow = running(stream) or running(view.peek(stream.id.commits))
    kind = workflow.kind.value if workflow is not None else None
    if kind is None and stream.waiting is not None:
        kind = queued_kind(stream.waiting.kind)
    decision = next(iter(last_decisions(stream)), None)
    is_failing = workflow is not None and progress_of(workflow) is Progress.FAILING
    times = (stream.created_at, stream.active_epoch.created_at, workflow.since if workflow is not None else 0)
    return FoundStream(
        **vars(stream_item(stream, placement)),
        scope=stream.id.scope,
        workflow=kind,
        failing=is_failing or None,
        transactions=transactions_of(view, stream.id).live,
        last_decision=LastDecision(kind=decision.kind, code=decision.code, at=decision.at)
        if decision is not None
        else None,
        changed_at=max(*times, decision.at if decision is not None else 0),
    )
