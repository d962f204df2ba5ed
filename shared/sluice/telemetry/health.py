"""Health over HTTP: `/livez`, `/readyz`, `/metrics`.

Alive means the event loop answers; ready means the service can serve, and where it cannot the answer says why.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

Checks = dict[str, Callable[[], str | None]]
Facts = dict[str, Callable[[], str]]


def health_routes(checks: Checks, facts: Facts) -> list[Route]:
    """`checks` maps what is checked to a function that says what is wrong, or None; `facts` are shown in any case."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_request: Request) -> Response:
        wrong = {name: problem for name, check in checks.items() if (problem := check()) is not None}
        body = {"ready": not wrong, "not_ready": wrong, **{name: fact() for name, fact in facts.items()}}
        return JSONResponse(body, status_code=503 if wrong else 200)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return [Route("/livez", live), Route("/readyz", ready), Route("/metrics", metrics)]


class HttpServer:
    """An HTTP server on the running loop that leaves the process's signals alone."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        self._address = (host, port)
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        # Bound here, because uvicorn would end the process for a taken port.
        listening = socket.create_server(self._address)
        self._task = asyncio.get_running_loop().create_task(self._server.serve([listening]))

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def health_server(checks: Checks, facts: Facts, host: str, port: int) -> HttpServer:
    return HttpServer(Starlette(routes=health_routes(checks, facts)), host, port)
