"""Telemetry of HTTP requests: rate, time and outcome by route, and the span that a trace begins with.

ASGI middleware: `app.add_middleware(HttpTelemetry)` on a Starlette or FastAPI application. Belongs to the event loop;
keeps nothing between requests. The labels are bounded: a route is the template that matched (`/v1/scopes/{scope}`),
never the requested path, and a path that matched none is `unmatched`. A stream of events is measured until it begins:
it goes on for as long as its reader likes.
"""

import asyncio
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluice.telemetry import tracing
from sluice.telemetry.metrics import HTTP_SECONDS

_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"})
_POLLED_PATHS = frozenset({"/livez", "/readyz", "/metrics"})
"""By probes and by Prometheus: no traces begin there."""
_EVENTS = b"text/event-stream"
_OURS = 500
"""The first status that says that it is our fault."""


class HttpTelemetry:
    """Measures each request until its answer was sent; CANCELLED stands for the status of one whose caller left."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        code = "500"
        is_measured = False
        method = scope["method"] if scope["method"] in _METHODS else "other"
        span = _begin(method, scope) if tracing.is_on() and scope["path"] not in _POLLED_PATHS else None

        def measured() -> None:
            nonlocal is_measured
            if is_measured:
                return
            is_measured = True
            route = route_of(scope)
            HTTP_SECONDS.labels(method, route, code).observe(time.perf_counter() - began)
            if span is not None:
                span.rename(f"{method} {route}")
                span.note({"http.request.method": method, "http.route": route, "http.response.status_code": code})
                span.end(f"status {code}" if not code.isdigit() or int(code) >= _OURS else None)

        async def answer(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = str(message["status"])
                if _is_stream_of_events(message):
                    measured()
            await send(message)

        try:
            if span is None:
                await self._app(scope, receive, answer)
            else:
                with span.active():
                    await self._app(scope, receive, answer)
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        finally:
            measured()


def _is_stream_of_events(start: Message) -> bool:
    return any(name == b"content-type" and value.startswith(_EVENTS) for name, value in start.get("headers", ()))


def route_of(scope: Scope) -> str:
    """The template of the route that served a request, once it was routed."""
    path = getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    endpoint: Any = scope.get("endpoint")
    return getattr(endpoint, "__name__", "unnamed") if endpoint is not None else "unmatched"


def _begin(method: str, scope: Scope) -> tracing.Span:
    carrier = tracing.received([(key.decode("latin-1"), value) for key, value in scope["headers"]])
    return tracing.begin(method, "server", {"url.path": scope["path"]}, carrier)
