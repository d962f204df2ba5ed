"""Streams (admin-rest-api 5.5 to 5.10)."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Query, Response

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import may_read
from api_gateway.edge.reads import Names, streams_after, streams_with_tag
from api_gateway.edge.rest.answers import as_json, encoded
from api_gateway.edge.rest.parts import ServedReads, Submit
from api_gateway.pravega.convert import name_of
from api_gateway.pravega.rest.base import ONE_STREAM, STREAMS, ScopeName, StreamName, changed, refusals, router
from api_gateway.pravega.rest.convert import config_of, stream_property
from api_gateway.pravega.rest.models import (
    CreateStreamRequest,
    StreamProperty,
    StreamsList,
    StreamState,
    UpdateStreamRequest,
)
from api_gateway.pravega.rest.replies import done
from sluice.domain.ids import StreamId
from sluice.domain.names import is_user_name
from sluice.domain.status import Status
from sluice.domain.stream import state
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream, UpdateStream
from sluice.domain.stream.state import Stream
from sluice.security.resources import stream_resource

routes = router()

_MISSING = {Status.SCOPE_NOT_FOUND: 404, Status.STREAM_NOT_FOUND: 404}


@routes.get(STREAMS, operation_id="listStreams", response_model=StreamsList, responses=refusals(400, 404))
async def list_streams(
    reads: ServedReads,
    scope: ScopeName,
    filter_type: Annotated[
        str | None, Query(description="showInternalStreams or tag; any other text is no filter.")
    ] = None,
    filter_value: Annotated[str | None, Query(description="The tag.")] = None,
) -> Response:
    """List the streams of a scope, or its internal ones, or those with a tag."""
    names, wanted = _filter(filter_type, filter_value)
    found = [
        encoded(stream_property(scope, one.id.name, one.config))
        async for one in reads.all_streams(scope, names)
        if wanted(one) and may_read(stream_resource(scope, one.id.name))
    ]
    return Response(f'{{"streams":[{",".join(found)}]}}', media_type="application/json")


def _filter(kind: str | None, value: str | None) -> tuple[Callable[[str], Names], Callable[[Stream], bool]]:
    """The names to look at, and which of their streams are shown: with a tag all, also one that is being created."""
    if kind == "tag" and value is not None:
        if not value:
            raise BadRequestError("the tag is empty")
        return partial(streams_with_tag, value, internal=False), lambda _stream: True
    internal = kind == "showInternalStreams"

    def is_shown(stream: Stream) -> bool:
        return stream.id.name.startswith("_") is internal and stream.state is not state.StreamState.CREATING

    return partial(streams_after, internal=internal), is_shown


@routes.post(
    STREAMS,
    operation_id="createStream",
    status_code=201,
    response_model=StreamProperty,
    responses={201: changed("It was created."), **refusals(400, 404, 409, 415, is_change=True)},
)
async def create_stream(submit: Submit, scope: ScopeName, body: CreateStreamRequest) -> Response:
    """Create a stream. A name with a leading underscore is refused here (5.6)."""
    name = body.stream_name
    if not name or not is_user_name(name):
        raise BadRequestError("not a stream's name")
    config = config_of(body, with_maximum=True)
    done(
        await submit(CreateStream(scope=scope, stream=name_of(name), config=config)),
        {**_MISSING, Status.STREAM_EXISTS: 409},
    )
    return as_json(stream_property(scope, name, config), 201)


@routes.get(ONE_STREAM, operation_id="getStream", response_model=StreamProperty, responses=refusals(404))
async def get_stream(reads: ServedReads, scope: ScopeName, stream: StreamName) -> Response:
    """Show the configuration of a stream."""
    found = await reads.stream(StreamId(scope, stream))
    return as_json(stream_property(scope, stream, found.config))


@routes.put(
    ONE_STREAM,
    operation_id="updateStream",
    response_model=StreamProperty,
    responses={200: changed("It has this configuration now."), **refusals(400, 404, 415, is_change=True)},
)
async def update_stream(submit: Submit, scope: ScopeName, stream: StreamName, body: UpdateStreamRequest) -> Response:
    """Give a stream another configuration instead of the one it has; what is left out is removed."""
    config = config_of(body, with_maximum=False)
    done(await submit(UpdateStream(scope=scope, stream=stream, config=config)), _MISSING)
    return as_json(stream_property(scope, stream, config))


@routes.delete(
    ONE_STREAM,
    operation_id="deleteStream",
    status_code=204,
    responses={204: changed("It is gone."), **refusals(404, 412, is_change=True)},
)
async def delete_stream(reads: ServedReads, submit: Submit, scope: ScopeName, stream: StreamName) -> Response:
    """Delete a sealed stream."""
    id = StreamId(scope, stream)
    command = DeleteStream(*id, await reads.creation_id(id.aggregate))
    done(await submit(command), {**_MISSING, Status.STREAM_NOT_SEALED: 412})
    return Response(status_code=204)


@routes.put(
    f"{ONE_STREAM}/state",
    operation_id="updateStreamState",
    response_model=StreamState,
    responses={200: changed("It is sealed."), **refusals(400, 404, 415, is_change=True)},
)
async def update_stream_state(submit: Submit, scope: ScopeName, stream: StreamName, body: StreamState) -> Response:
    """Seal a stream."""
    if body.stream_state is None:
        raise BadRequestError("the only state is SEALED")
    done(await submit(SealStream(scope=scope, stream=stream)), _MISSING)
    return as_json(StreamState(stream_state="SEALED"))
