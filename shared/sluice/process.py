"""How every process of a service runs: settings, logs, traces, health, files that are replaced, a clean end on SIGTERM.

One event loop per process; what needs a thread owns it.
"""

import asyncio
import contextlib
import faulthandler
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Never, TypeVar

from starlette.applications import Starlette

from sluice import event_loop
from sluice.exceptions import CannotStartError, EndedError
from sluice.security.watched import Watched, keep_watching
from sluice.settings import ServiceSettings
from sluice.telemetry import tracing
from sluice.telemetry.certificates import report_certificates
from sluice.telemetry.health import Checks, Facts, HttpServer, health_app
from sluice.telemetry.http_connections import HttpBounds
from sluice.telemetry.logs import set_up_logs
from sluice.telemetry.process import describe_process, watch_event_loop

log = logging.getLogger(__name__)


class Process:
    """What a running process has at hand. `checks` is what its readiness consists of; add to it while starting.

    `degraded` are checks of what it can do without for a while, `outages` of what callers need and no other instance
    has; they and `facts` are shown beside them.
    `identity` is what all of its servers show, None without TLS; `security` is what the log says of all switches at the
    start. Raises CannotStartError if security cannot be configured as the settings say.
    """

    def __init__(self, name: str, settings: ServiceSettings) -> None:
        self.name = name
        self.settings = settings
        self.source = f"{name}/{settings.instance}"
        self.checks: Checks = {}
        self.degraded: Checks = {}
        self.outages: Checks = {}
        self.facts: Facts = {}
        self.watched: list[Watched[Any]] = []
        self.security = settings.security()
        self.identity = settings.identity()
        self.watch(self.identity, settings.kafka_files(), tracing.files_of_tls(settings.otlp_endpoint))
        report_certificates(name, self.watched)
        self.stack = AsyncExitStack()

    def watch(self, *watched: Watched[Any] | None) -> None:
        """Follow what is made of files, while the process runs; while a new version is refused it is degraded.

        None is what is not configured.
        """
        for one in watched:
            if one is not None:
                self.watched.append(one)
                self.degraded[one.name] = one.problem

    def spawn(self, work: Awaitable[None], name: str) -> asyncio.Task[None]:
        """Run something beside the service; its end by an error makes the service not ready, visibly."""

        async def watched() -> None:
            await work

        def problem() -> str | None:
            failed = task.done() and not task.cancelled() and task.exception() is not None
            return f"ended: {task.exception()!r}" if failed else None

        task = asyncio.get_running_loop().create_task(watched(), name=name)
        self.checks[name] = problem
        self.stack.push_async_callback(_cancel, task)
        return task


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


P = TypeVar("P", bound=Process)
S = TypeVar("S", bound=ServiceSettings)
Serve = Callable[[P], Starlette]
Work = Callable[[P], Coroutine[Any, Any, Never]]


def serve_health(process: Process) -> Starlette:
    """The application of a process that serves nothing else."""
    return health_app(process.checks, process.facts, process.degraded, process.outages)


def run_process(
    kind: Callable[[str, S], P], name: str, settings: S, work: Work[P], serve: Serve[P] = serve_health
) -> None:
    """Make a process of its kind, and work until SIGTERM or SIGINT.

    SIGQUIT has it print what each thread is at; so does a signal of a fault, such as SIGSEGV, before it ends it.

    `serve(process)` is the application on the health port, from the beginning on; it must have the routes of health.
    Exits with status 2 for a CannotStartError or if a port is taken, with 3 for an EndedError.
    """
    set_up_logs(name, settings.instance, settings.log_level)
    faulthandler.register(signal.SIGQUIT)
    faulthandler.enable()
    describe_process(name, settings.instance)
    try:
        tracing.set_up(name, settings.instance, settings.otlp_endpoint)
        event_loop.run(_live(partial(kind, name, settings), work, serve))
    except (CannotStartError, OSError) as error:
        log.critical("cannot start", extra={"error": str(error)})
        sys.exit(2)
    except EndedError as error:
        log.critical("cannot go on, but when started again", extra={"error": str(error)})
        sys.exit(3)
    finally:
        tracing.shut_down()


async def _live(make: Callable[[], P], work: Work[P], serve: Serve[P]) -> None:
    process = make()
    settings = process.settings
    process.checks["started"] = lambda: "starting"
    async with process.stack as stack:
        process.spawn(watch_event_loop(), "event loop watch")
        process.spawn(keep_watching(process.watched), "watched files")
        bounds = HttpBounds(settings.max_http_connections, settings.max_header_bytes)
        app = serve(process)
        server = HttpServer(app, settings.host, *settings.http_ports, identity=process.identity, bounds=bounds)
        log.info("security", extra=process.security)
        settings.health_port = await server.start()
        stack.push_async_callback(server.stop)
        loop = asyncio.get_running_loop()
        working = loop.create_task(work(process))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, working.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await working
        log.info("stopping")
    log.info("stopped")
