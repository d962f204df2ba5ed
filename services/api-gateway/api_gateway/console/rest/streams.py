"""Streams: list, describe, create or update, seal, truncate, delete."""

from collections.abc import Awaitable, Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import Header, Query, Response
from msgspec import structs

from api_gateway.console.etags import SHOWN, IfMatch, etag_of, matching
from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.rest.actions import Action, action, judged
from api_gateway.console.rest.base import ScopeName, StreamName, Taken, changed, cut_of, refusals, router
from api_gateway.console.rest.config_models import StreamSettings, config_of
from api_gateway.console.rest.dry_runs import AnyAnswer, DryRun, DryRunQuery
from api_gateway.console.rest.listed import WantedNames, listed
from api_gateway.console.rest.replies import done
from api_gateway.console.rest.scaling import ABOUT, scale_stream
from api_gateway.console.rest.stream_models import StreamList, TruncateBody
from api_gateway.console.rest.transactions import abort_transaction, commit_transaction
from api_gateway.console.rest.workflows import on_workflow
from api_gateway.edge.listing import Listing, may_read
from api_gateway.edge.reads import streams_after, streams_with_tag
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, Submit
from sluice.domain.ids import StreamId
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream, TruncateStream, UpdateStream
from sluice.domain.stream.state import Stream
from sluice.insight.effects import Act, why_not
from sluice.insight.shown import Allowed
from sluice.insight.streams import StreamDescription, stream_item, stream_shown, undecided_since
from sluice.lookback.describing import STREAM as STREAM_AT
from sluice.lookback.describing import ResourceQuestion
from sluice.security.resources import mapped_resource, reader_group_resource

routes = router("streams")

_ONE = "/scopes/{scope}/streams/{stream}"


@routes.get(
    "/scopes/{scope}/streams", operation_id="listStreamNames", response_model=StreamList, responses=refusals(404)
)
async def list_streams(
    reads: ServedReads,
    page: WantedNames,
    containers: ServedContainers,
    scope: ScopeName,
    tag: Annotated[str | None, Query(max_length=255, description="Only streams with exactly this tag.")] = None,
    internal: Annotated[bool, Query(description="Also streams that Sluice keeps for itself, `_…`.")] = False,
) -> Response:
    """List the streams of a scope, by name."""
    wanted = streams_after if tag is None else partial(streams_with_tag, tag)

    def fetch(behind: str) -> Awaitable[Iterator[Stream] | None]:
        return reads.streams_in(scope, wanted(behind, internal=internal))

    shown = partial(stream_item, placement=containers.placement())
    listing = Listing(fetch, lambda one: one.id.name, partial(mapped_resource, scope), shown)
    return await listed(StreamList, listing, page, scope)


@routes.get(_ONE, operation_id="describeStream", response_model=StreamDescription, responses={**SHOWN, **refusals(404)})
async def describe_stream(
    reads: ServedReads,
    containers: ServedContainers,
    look_back: LookBack,
    scope: ScopeName,
    stream: StreamName,
    at: At = None,
) -> Response:
    """Describe a stream: its configuration, where it stands and what is being done with it."""
    if at is not None:
        question = ResourceQuestion(scope, stream, look_back.moment(at), containers.count)
        return as_json(_visible(await look_back(STREAM_AT, question)))
    full = await reads.stream_in_full(StreamId(scope, stream))
    shown = stream_shown(reads.view(full.stream.id.key), full.stream, containers.placement())
    allowed = _allowed(full.stream, full.transactions.live)
    undecided = undecided_since(full.stream, reads.cluster())
    return as_json(
        _visible(replace(shown, allowed=allowed, undecided_since=undecided)), headers={"ETag": etag_of(full.stream)}
    )


def _visible(shown: StreamDescription) -> StreamDescription:
    """Without the subscribers that the caller may not see."""
    seen = [one for one in shown.subscribers if may_read(reader_group_resource(*one.name.split("/", 1)))]
    return replace(shown, subscribers=seen)


@routes.put(
    _ONE,
    operation_id="putStream",
    status_code=201,
    responses={
        200: changed("It was updated: the configuration is as sent. With `dryRun`: what it would do.", AnyAnswer),
        201: changed("It was created.", Taken),
        **refusals(404, 409, 412, is_change=True),
    },
)
async def put_stream(
    reads: ServedReads,
    dry: DryRun,
    submit: Submit,
    scope: ScopeName,
    stream: StreamName,
    body: StreamSettings,
    if_none_match: Annotated[
        Literal["*"] | None, Header(description="With * a stream that is there stays as it is, which is 412.")
    ] = None,
    if_match: IfMatch = None,
    dry_run: DryRunQuery = False,
) -> Response:
    """Create a stream, or give one that is there this configuration instead of the one it has."""
    config, about = config_of(body), f"stream {scope}/{stream}"
    found = await reads.stream_or_none(StreamId(scope, stream))
    update = UpdateStream(scope=scope, stream=stream, config=config)
    create = CreateStream(scope=scope, stream=stream, config=config)
    if if_match is not None:
        present = matching(if_match, found, about)
        if if_match != "*":
            update = structs.replace(update, expected=present.config, creation_id=present.creation_id)
    elif found is None:
        if dry_run:
            return await dry(create, about)
        reply = await submit(create)
        if reply.status != Status.STREAM_EXISTS:
            return as_json(Taken(status=done(reply, about).status), 201)
    if if_none_match is not None:
        raise RefusedError(412, f"{about} exists already", Status.STREAM_EXISTS)
    if dry_run:
        return await dry(update, about)
    reply = await submit(update)
    return as_json(Taken(status=done(reply, about).status))


_on_one = partial(action, routes, about=ABOUT, dry=True)


@_on_one("seal", "POST", f"{_ONE}/seal", id="sealStream", says="It is sealed.")
async def seal_stream(scope: ScopeName, stream: StreamName) -> SealStream:
    """Seal a stream: nothing more can be written to it. Open transactions are aborted."""
    return SealStream(scope, stream)


@_on_one("truncate", "POST", f"{_ONE}/truncate", id="truncateStream", says="It begins at the cut now.")
async def truncate_stream(scope: ScopeName, stream: StreamName, body: TruncateBody) -> TruncateStream:
    """Drop everything of a stream that lies before a cut. A cut beyond the end of a segment is refused."""
    return TruncateStream(scope, stream, cut_of(body.cut))


@_on_one("delete", "DELETE", _ONE, id="removeStream", says="It is gone.")
async def remove_stream(reads: ServedReads, scope: ScopeName, stream: StreamName) -> DeleteStream:
    """Delete a sealed stream."""
    id = StreamId(scope, stream)
    return DeleteStream(*id, await reads.creation_id(id.aggregate))


_UPDATE = Action("update", "PUT", _ONE)
_ACTIONS = (_UPDATE, scale_stream, truncate_stream, seal_stream, remove_stream, commit_transaction, abort_transaction)


def _allowed(stream: Stream, live_transactions: int) -> list[Allowed]:
    names = {"scope": stream.id.scope, "stream": stream.id.name}
    on_stream = [(action, why_not(stream, Act(action.name), live_transactions)) for action in _ACTIONS]
    return judged([*on_stream, *on_workflow(stream)], names)
