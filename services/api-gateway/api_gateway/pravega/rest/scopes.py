"""Scopes (admin-rest-api 5.1 to 5.4)."""

from fastapi import Response

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import Listing
from api_gateway.edge.reads import missing_scope
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedReads, Submit
from api_gateway.pravega.convert import name_of
from api_gateway.pravega.rest.base import ONE_SCOPE, SCOPES, ScopeName, changed, refusals, router
from api_gateway.pravega.rest.models import CreateScopeRequest, ScopeProperty, ScopesList
from api_gateway.pravega.rest.replies import done
from sluice.domain.names import is_scope_name, scope_aggregate
from sluice.domain.scope.commands import CreateScope, DeleteScope
from sluice.domain.status import Status
from sluice.security.resources import scope_resource

routes = router()


@routes.get(SCOPES, operation_id="listScopes", response_model=ScopesList, responses=refusals())
async def list_scopes(reads: ServedReads) -> Response:
    """List all scopes, the internal one included."""
    listing = Listing(reads.scopes, str, scope_resource, lambda name: ScopeProperty(scope_name=name))
    return as_json(ScopesList(scopes=await listing.whole() or None))


@routes.post(
    SCOPES,
    operation_id="createScope",
    status_code=201,
    response_model=ScopeProperty,
    responses={201: changed("It was created."), **refusals(400, 409, 415, is_change=True)},
)
async def create_scope(submit: Submit, body: CreateScopeRequest) -> Response:
    """Create a scope. A name with a leading underscore is refused here (5.2)."""
    name = body.scope_name
    if not name or name.startswith("_") or not is_scope_name(name):
        raise BadRequestError("not a scope's name")
    done(await submit(CreateScope(scope=name_of(name))), {Status.SCOPE_EXISTS: 409})
    return as_json(ScopeProperty(scope_name=name), 201)


@routes.get(ONE_SCOPE, operation_id="getScope", response_model=ScopeProperty, responses=refusals(404))
async def get_scope(reads: ServedReads, scope: ScopeName) -> Response:
    """Say whether a scope is there."""
    if not await reads.scope_exists(scope):
        raise missing_scope(scope)
    return as_json(ScopeProperty(scope_name=scope))


@routes.delete(
    ONE_SCOPE,
    operation_id="deleteScope",
    status_code=204,
    responses={204: changed("It is gone."), **refusals(404, 412, is_change=True)},
)
async def delete_scope(reads: ServedReads, submit: Submit, scope: ScopeName) -> Response:
    """Delete an empty scope."""
    command = DeleteScope(scope, await reads.creation_id(scope_aggregate(scope)))
    done(await submit(command), {Status.SCOPE_NOT_FOUND: 404, Status.SCOPE_NOT_EMPTY: 412})
    return Response(status_code=204)
