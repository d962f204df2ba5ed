"""Scopes: list, describe, create, delete."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.rest.actions import action
from api_gateway.console.rest.base import Model, Page, ScopeName, Taken, changed, refusals, router
from api_gateway.console.rest.listed import WantedNames, listed
from api_gateway.console.rest.replies import done
from api_gateway.edge.listing import Listing
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedReads, Submit
from sluice.domain.names import scope_aggregate
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.status import Status
from sluice.insight.scopes import ScopeDescription, scope_shown
from sluice.lookback.describing import SCOPE as SCOPE_AT
from sluice.lookback.describing import ScopeQuestion
from sluice.security.resources import scope_resource

routes = router("scopes")


class ScopeItem(Model):
    """A scope in a list."""

    name: str = Field(examples=["demo"])


class ScopeList(Page[ScopeItem]):
    """A page of scopes, by name."""


@routes.get("/scopes", operation_id="listScopeNames", response_model=ScopeList, responses=refusals())
async def list_scopes(reads: ServedReads, page: WantedNames) -> Response:
    """List the scopes, the internal one included."""
    listing = Listing(reads.scopes, str, scope_resource, lambda name: ScopeItem(name=name))
    return await listed(ScopeList, listing, page)


@routes.get("/scopes/{scope}", operation_id="describeScope", response_model=ScopeDescription, responses=refusals(404))
async def describe_scope(reads: ServedReads, look_back: LookBack, scope: ScopeName, at: At = None) -> Response:
    """Describe a scope."""
    if at is not None:
        shown = await look_back(SCOPE_AT, ScopeQuestion(scope, look_back.moment(at)))
        return as_json(shown)
    members = await reads.members(scope)
    return as_json(scope_shown(await reads.scope(scope), members))


@routes.put(
    "/scopes/{scope}",
    operation_id="putScope",
    status_code=201,
    responses={
        200: changed("It was there already.", Taken),
        201: changed("It was created.", Taken),
        **refusals(is_change=True),
    },
)
async def put_scope(submit: Submit, scope: ScopeName) -> Response:
    """Create a scope if it is not there."""
    reply = await submit(CreateScope(scope=scope))
    if reply.status == Status.SCOPE_EXISTS:
        return as_json(Taken(status=reply.status))
    return as_json(Taken(status=done(reply, f"scope {scope}").status), 201)


@action(routes, "delete", "DELETE", "/scopes/{scope}", id="removeScope", about="scope {0.scope}", says="It is gone.")
async def remove_scope(
    reads: ServedReads,
    scope: ScopeName,
    recursive: Annotated[bool, Query(description="Whether everything in it goes, too; sealed or not.")] = False,
) -> DeleteScope | DeleteScopeRecursive:
    """Delete a scope. An empty one, unless `recursive`; then a scope that is not there is no error either."""
    kind = DeleteScopeRecursive if recursive else DeleteScope
    return kind(scope, await reads.creation_id(scope_aggregate(scope)))
