"""Reader groups (admin-rest-api 5.12 to 5.14)."""

from typing import Annotated

from fastapi import Response

from api_gateway.edge.group_state import GroupState, StateError
from api_gateway.edge.group_states import GroupStates
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedReads, Submit, served
from api_gateway.pravega.rest.base import GROUPS, ONE_GROUP, GroupName, ScopeName, changed, refusals, router
from api_gateway.pravega.rest.models import ReaderGroupName, ReaderGroupProperty, ReaderGroupsList
from api_gateway.pravega.rest.replies import done
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.names import READER_GROUP_PREFIX, group_stream
from sluice.domain.reader_group.commands import DeleteReaderGroup
from sluice.domain.reader_group.state import ZERO_ID
from sluice.domain.status import Status
from sluice.domain.stream.state import StreamState
from sluice.pravega.errors import SegmentMissing

routes = router()

States = Annotated[GroupStates, served(GroupStates)]


@routes.get(GROUPS, operation_id="listReaderGroups", response_model=ReaderGroupsList, responses=refusals(404))
async def list_groups(reads: ServedReads, scope: ScopeName) -> Response:
    """List the reader groups of a scope: those whose state stream is there."""
    names = [
        stream.id.name.removeprefix(READER_GROUP_PREFIX)
        async for stream in reads.all_streams(scope)
        if stream.id.name.startswith(READER_GROUP_PREFIX) and stream.state is not StreamState.CREATING
    ]
    return as_json(ReaderGroupsList(reader_groups=[ReaderGroupName(reader_group_name=n) for n in names] or None))


@routes.get(ONE_GROUP, operation_id="getReaderGroup", response_model=ReaderGroupProperty, responses=refusals(404))
async def get_group(states: States, scope: ScopeName, group: GroupName) -> Response:
    """Show what the readers of a group are reading."""
    state = await _state(states, GroupId(scope, group))
    if state is None:
        raise RefusedError(500, f"no reader of {scope}/{group} has ever written its state")
    return as_json(
        ReaderGroupProperty(
            scope_name=scope,
            reader_group_name=group,
            stream_list=state.streams(),
            online_reader_ids=sorted(state.assigned),
        )
    )


@routes.delete(
    ONE_GROUP,
    operation_id="deleteReaderGroup",
    status_code=204,
    responses={204: changed("It is gone."), **refusals(404, is_change=True)},
)
async def delete_group(
    reads: ServedReads, states: States, submit: Submit, scope: ScopeName, group: GroupName
) -> Response:
    """Delete a reader group.

    It is the one that its readers know by its id; that of a group without a state, or of one that an old client made,
    is what the controller knows.
    """
    id: str | None = None
    if await reads.stream_or_none(StreamId(scope, group_stream(group))) is not None:
        state = await _state(states, GroupId(scope, group))
        if state is not None and (state.id, state.generation) != (ZERO_ID, -1):
            id = state.id
    found = await reads.group_or_none(GroupId(scope, group))
    if found is None or id not in (None, found.config.id):
        raise RefusedError(404, f"reader group {scope}/{group} does not exist", Status.RG_NOT_FOUND)
    done(await submit(DeleteReaderGroup(scope, group, id, found.creation_id)), {Status.RG_NOT_FOUND: 404})
    return Response(status_code=204)


async def _state(states: GroupStates, id: GroupId) -> GroupState | None:
    """What stands in the group's state stream, None if nothing. Raises NotFoundError."""
    try:
        return await states.state(id)
    except SegmentMissing as error:
        raise NotFoundError(f"reader group {id} is gone") from error
    except StateError as error:
        raise RefusedError(500, f"the state of {id} cannot be read: {error}") from error
