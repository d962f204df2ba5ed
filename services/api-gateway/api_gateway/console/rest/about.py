"""What this gateway is, who calls it, and the session of a browser.

A login sends its credentials once, in the header `authorization`; from then on the browser sends the cookie that it is
answered with, which no script can read and no other site has sent.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Request, Response
from pydantic import Field

from api_gateway.console.feed.feeds import Hello
from api_gateway.console.page_files import version_of_page
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedClock, ServedContainers, ServedReads, served
from api_gateway.edge.security.browsers import Browsers
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.rest_resources import CLUSTER, DEAD_LETTERS, WORKFLOWS
from api_gateway.edge.security.sessions import Sessions, TooLargeError, cookie_header
from api_gateway.settings import PageMode
from sluice.security.caller import CALLER, UnauthenticatedError
from sluice.security.resources import ROOT, Permission
from sluice.telemetry.process import VERSION

routes = router("cluster")


class About(Model):
    """A gateway."""

    cluster: str = Field(description="The name of the cluster.", examples=["pravega-cluster"])
    version: str = Field(description="Of Sluice.")
    page: str = Field(description="The hash of the operators' page, which changes with it; empty if there is none.")
    mode: PageMode = Field(description="What the page may do.")
    partitions: int = Field(description="Of each keyed topic.")
    containers: int
    now: int = Field(description="This gateway's clock, epoch ms.")


class Rights(Model):
    """NONE, READ or READ_UPDATE on what is in no scope; `root` is on all scopes."""

    root: str = Field(examples=["READ"])
    cluster: str
    workflows: str
    dead_letters: str


class Me(Model):
    """Who calls, and what the caller may do."""

    principal: str | None = Field(default=None, description="Who calls; left out if that is not known.")
    authentication: bool = Field(description="Whether callers must say who they are.")
    rights: Rights
    read_only: bool = Field(description="Whether pages may only read, whatever the rights are.")


@routes.get("/about", operation_id="getAbout", response_model=About, responses=refusals())
async def about(
    request: Request,
    reads: ServedReads,
    clock: ServedClock,
    hello: Annotated[Hello, served(Hello)],
    containers: ServedContainers,
) -> Response:
    """Say which cluster and version this is, and what its page may do."""
    browsers: Browsers = request.app.state.browsers
    return as_json(
        About(
            cluster=hello.cluster,
            version=VERSION,
            page=await version_of_page(browsers.mode),
            mode=browsers.mode,
            partitions=reads.partitions,
            containers=containers.count,
            now=clock.now_ms(),
        ),
        headers={"Cache-Control": "no-store"},
    )


@routes.get("/me", operation_id="getMe", response_model=Me, responses=refusals())
async def me(request: Request) -> Response:
    """Say who calls, and what the caller may do."""
    guard: Guard | None = request.app.state.guard
    browsers: Browsers = request.app.state.browsers
    caller = CALLER.get()
    authentication = guard is not None and guard.wants_credentials

    def right(resource: str) -> str:
        if not authentication:
            return Permission.READ_UPDATE.name
        return caller.permission_on(resource).name if caller is not None else Permission.NONE.name

    shown = Rights(
        root=right(ROOT), cluster=right(CLUSTER), workflows=right(WORKFLOWS), dead_letters=right(DEAD_LETTERS)
    )
    principal = caller.principal if caller is not None else None
    found = Me(
        principal=principal,
        authentication=authentication,
        rights=shown,
        read_only=browsers.mode is not PageMode.ON,
    )
    return as_json(found, headers={"Cache-Control": "no-store"})


@routes.post(
    "/session",
    operation_id="beginSession",
    status_code=204,
    responses={204: {"description": "The cookie of the session is set."}, **refusals(404, 413)},
)
async def begin_session(request: Request) -> Response:
    """Have the credentials of this call go with the later ones of a browser, in a cookie."""
    sessions: Sessions | None = request.app.state.sessions
    if sessions is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, "callers are not authenticated here, so there are no sessions")
    sent = request.headers.get("authorization")
    if CALLER.get() is None or sent is None:
        raise UnauthenticatedError
    try:
        value = sessions.seal(sent)
    except TooLargeError as error:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error)) from error
    return _with_cookie(request, value)


@routes.delete(
    "/session",
    operation_id="endSession",
    status_code=204,
    responses={204: {"description": "The cookie of the session is removed."}, **refusals()},
)
async def end_session(request: Request) -> Response:
    """End the session of a browser."""
    return _with_cookie(request, "")


def _with_cookie(request: Request, value: str) -> Response:
    # The browser alone knows whether it came by TLS: a proxy may end that.
    secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:")
    headers = {"Set-Cookie": cookie_header(value, secure=secure), "Cache-Control": "no-store"}
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
