"""Health over HTTP: `/livez`, `/readyz`, `/metrics`.

Alive means the event loop answers; ready means the service can serve, and where it cannot the answer says why. What a
service can do without for a while makes it `degraded`, not unready: taking every instance away because something that
all of them use is away would only add to the outage. An `outage` is as bad as that for callers, and no instance is
better off than another: it is said, as bad, by an instance that stays ready.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sluice.exceptions import in_words
from sluice.security.tls import Identity, serving_context
from sluice.security.watched import Watched
from sluice.telemetry.http_connections import BoundedConnection, HttpBounds, InPieces
from sluice.telemetry.listening import listen
from sluice.telemetry.metrics import CHECKS, READY
from sluice.telemetry.process import VERSION
from sluice.telemetry.scrape import exposition, on_scrape

log = logging.getLogger(__name__)

Checks = dict[str, Callable[[], str | None]]
"""What is checked, and a function that says what is wrong, or None."""
Facts = dict[str, Callable[[], str]]
Problems = Mapping[str, str]


def health_routes(
    checks: Checks, facts: Facts, degraded: Checks | None = None, outages: Checks | None = None
) -> list[Route]:
    """All of `checks` must find nothing for the service to be ready; the others are shown in any case."""
    lesser = degraded if degraded is not None else {}
    shared = outages if outages is not None else {}

    async def live(_request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_request: Request) -> Response:
        wrong, out, less = problems(checks), problems(shared), problems(lesser)
        level = "bad" if wrong or out else "warn" if less else "ok"
        body = {"ready": not wrong, "level": level, "not_ready": wrong, "outage": out, "degraded": less}
        body.update({name: fact() for name, fact in facts.items()})
        return JSONResponse(body, status_code=503 if wrong else 200)

    async def metrics(_request: Request) -> Response:
        return await exposition()

    on_scrape("health", partial(_publish, {"not-ready": checks, "outage": shared, "degraded": lesser}))
    return [Route("/livez", live), Route("/readyz", ready), Route("/metrics", metrics)]


def problems(checks: Checks) -> Problems:
    """What is wrong, by check. A check that fails itself says nothing good either."""
    found = {}
    for name, check in list(checks.items()):
        try:
            problem = check()
        except Exception as error:
            log.exception("check failed", extra={"check": name})
            problem = f"the check failed: {in_words(error)}"
        if problem is not None:
            found[name] = problem
    return found


def _publish(by_effect: Mapping[str, Checks]) -> None:
    found = {effect: problems(checks) for effect, checks in by_effect.items()}
    READY.set(not found["not-ready"])
    CHECKS.clear()
    for effect, checks in by_effect.items():
        for name in checks:
            CHECKS.labels(name, effect).set(name in found[effect])


STOP_GRACE_S = 3
"""How long calls in progress may go on when the server stops."""


class _Server(uvicorn.Server):
    """It wakes up once a second, for the date in its answers, and not ten times to see whether it shall end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        """Part of uvicorn."""
        while not self.ending.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.ending.wait()


class HttpServer:
    """An HTTP server on the running loop that leaves the process's signals alone; with an `identity` it wants TLS.

    It serves the same on each of the ports.
    """

    def __init__(
        self,
        app: Starlette,
        host: str,
        *ports: int,
        identity: Watched[Identity] | None = None,
        bounds: HttpBounds | None = None,
    ) -> None:
        self._host = host
        self._ports = ports
        bounds = bounds or HttpBounds()
        config = uvicorn.Config(
            InPieces(app),
            http=partial(BoundedConnection, bounds.connections, {}),  # type: ignore[arg-type]
            # An upgraded connection would be none of the bounded ones.
            ws="none",
            h11_max_incomplete_event_size=bounds.head_bytes,
            log_config=None,
            lifespan="off",
            access_log=False,
            headers=[("Server", f"Sluice/{VERSION}")],
            timeout_graceful_shutdown=STOP_GRACE_S,
            ssl_context_factory=None if identity is None else lambda *_: serving_context(identity),
        )
        self._server = _Server(config)
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """The first port that is listened on, which 0 leaves to the system. Raises OSError if one is taken."""
        # Bound here, because uvicorn would end the process for a taken port.
        listening = listen(self._host, *self._ports)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(listening))
        port: int = listening[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.ending.set()
        if self._task is not None:
            await self._task


def health_app(
    checks: Checks, facts: Facts, degraded: Checks | None = None, outages: Checks | None = None
) -> Starlette:
    """An application of these routes and nothing else."""
    return Starlette(routes=health_routes(checks, facts, degraded, outages))
