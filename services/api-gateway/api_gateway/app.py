"""The HTTP application of the gateway: health from the first moment on, everything else once the journal is loaded.

One event loop serves gRPC and HTTP alike, so nothing here may block.
"""

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from api_gateway.console import rest as console
from api_gateway.console.page_files import page_routes
from api_gateway.edge.containers import Containers
from api_gateway.edge.health import Health
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.boundary import empty_answer, problem_answer
from api_gateway.edge.rest.capacity import Capacity
from api_gateway.edge.rest.failures import Failure, failure_of
from api_gateway.edge.rest.parts import Parts
from api_gateway.edge.security.browsers import Browsers
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.sessions import Sessions
from api_gateway.openapi import describe
from api_gateway.pravega import rest as pravega
from api_gateway.pravega.rest.permissions import RULES as PRAVEGA_RULES
from api_gateway.settings import PageMode, Serves
from sluice.runtime import Runtime
from sluice.telemetry.health import health_routes
from sluice.telemetry.http import HttpTelemetry
from sluice.telemetry.process import VERSION

MIN_COMPRESSED = 1_024
COMPRESSION = 4
"""A level that costs a third of the highest one, for JSON that is a tenth larger."""
IN_A_THREAD = 32 * 1024
"""Bytes beyond which a thread compresses: that takes a millisecond."""

ANY_BROWSER = Browsers()

RULES = {**PRAVEGA_RULES, **console.RULES}
"""The permissions that the calls of both interfaces need, by method and path; None: for everyone."""

OPEN_PATHS = (
    "/livez",
    "/readyz",
    "/metrics",
    "/",
    "/openapi.json",
    "/docs",
    "/docs-files",
    "/ui",
    "/ui/{version}/{file:path}",
)
"""What is outside both interfaces is for everyone: health and metrics of the process, the description, its page."""


def build_app(
    runtime: Runtime,
    connections: int,
    guard: Guard | None = None,
    browsers: Browsers = ANY_BROWSER,
    sessions: Sessions | None = None,
    serves: Serves = Serves.ALL,
) -> FastAPI:
    """An application that knows the health of the process and answers 503 to all else, until `open_app`.

    It does so, too, where more calls, or bodies of calls on their way, come over so many `connections` than have a
    place; health answers even then. Without a guard nobody is asked for credentials. `browsers` says what may come from
    pages, which may log in with `sessions`.
    """
    app = FastAPI(
        title="Sluice",
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.parts = None
    app.state.serves = serves
    app.state.guard = guard
    app.state.capacity = Capacity(connections)
    app.state.browsers = browsers
    app.state.sessions = sessions
    app.state.health = Health(runtime.checks, runtime.degraded)
    app.add_middleware(AsPravegaRoutes)
    app.add_middleware(Compressed)
    app.add_middleware(BrowserCheck, browsers=browsers)
    app.add_middleware(HttpTelemetry)
    app.router.routes.extend(health_routes(runtime.checks, runtime.facts, runtime.degraded, runtime.outages))
    routers = (*(pravega.ROUTERS if serves.pravega else ()), *(console.ROUTERS if serves.console else ()))
    for router in routers:
        app.include_router(router)
    app.router.routes.extend(page_routes(browsers.mode))
    app.add_exception_handler(HTTPException, _unrouted)
    describe(app, RULES, serves, has_page=browsers.mode is not PageMode.OFF)
    return app


class AsPravegaRoutes:
    """ASGI middleware: a path with a slash at its end is the one without, and HEAD is answered as GET, but its body.

    A slash that is written as %2F is part of a name, and no name has one: routes, which see the decoded path, would
    take it for the end of the name, and something else would be meant.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            if b"%2F" in scope.get("raw_path", b"").upper():
                await _refusal(path, Failure(HTTPStatus.NOT_FOUND, "no name has a slash in it"))(scope, receive, send)
                return
            if path.endswith("/") and len(path) > 1:
                scope = {**scope, "path": path[:-1]}
            if scope["method"] == "HEAD":
                # The server leaves the body out.
                scope = {**scope, "method": "GET", "is_head": True}
        await self._app(scope, receive, send)


class Compressed:
    """ASGI middleware: larger answers of our own interface are compressed for callers who accept that.

    Neither event streams are, nor what is compressed already, nor Pravega's interface.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, MIN_COMPRESSED, COMPRESSION, thread_minimum_size=IN_A_THREAD)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["type"] == "http" and scope["path"].startswith((console.PREFIX, "/openapi.json"))
        await (self._compressed if is_ours else self._app)(scope, receive, send)


class BrowserCheck:
    """ASGI middleware: what a foreign page has its visitor's browser send is refused before it is looked at."""

    def __init__(self, app: ASGIApp, browsers: Browsers) -> None:
        self._app = app
        self._browsers = browsers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._browsers.refusal(scope["path"], Headers(scope=scope))
            if refusal is not None:
                failure = Failure(refusal.status, refusal.detail)
                await _refusal(scope["path"], failure)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def open_app(app: FastAPI, parts: Parts) -> None:
    """Answer from now on, with these parts."""
    app.state.parts = parts
    app.state.health.open(parts[Reads], parts[Containers], parts[LastHeartbeats])


async def close_app(app: FastAPI, grace_s: float) -> None:
    """Answer 503 from now on. Calls in progress get `grace_s` to end: while the journal is followed they can."""
    app.state.parts = None
    await app.state.capacity.calls.until_free(grace_s)


async def _unrouted(request: Request, error: Exception) -> Response:
    """The answer where no route is, or none for this method."""
    failure, path = failure_of(error), request.url.path
    if path.startswith(console.PREFIX) and not request.app.state.serves.console:
        failure = Failure(HTTPStatus.NOT_FOUND, "the console is served by another process (SLUICE_SERVES)")
    answer = _refusal(path, failure)
    if failure.status == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return answer


def _refusal(path: str, failure: Failure) -> Response:
    """In the form of the interface that the path belongs to."""
    return problem_answer(failure) if path.startswith(console.PREFIX) else empty_answer(failure)


def _methods(request: Request) -> set[str]:
    """The methods that the path of a call has; each route of the framework knows its own method only."""
    path = request.url.path
    found: set[str] = set()
    for route in iter_route_contexts(request.app.routes):
        if route.path is not None and compile_path(route.path)[0].match(path):
            found |= route.methods or set()
    return found
