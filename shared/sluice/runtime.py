"""How every service process runs: settings, logs, health, topics, journal, heartbeat, a clean end on SIGTERM.

A service starts in any order with the others and waits for what it needs; until then its health endpoint says what
is missing. One event loop per process; what needs a thread owns it.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import uvloop
from confluent_kafka import KafkaException
from starlette.applications import Starlette

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.model import DomainModel
from sluice.engine.journal import Journal
from sluice.engine.ports import RequestSource
from sluice.exceptions import in_words
from sluice.heartbeats import Heartbeats
from sluice.journal_watch import JournalWatch
from sluice.kafka.connections import Connections, KafkaConnections
from sluice.kafka.sending import RequestSender
from sluice.kafka.topics import Topic, TopicsUnfitError, ensure_topics
from sluice.kafka_config.conf import KafkaConfError
from sluice.security.watched import SecurityConfigError, Watched, keep_watching
from sluice.settings import ServiceSettings
from sluice.telemetry import tracing
from sluice.telemetry.certificates import report_certificates
from sluice.telemetry.disk import disk_problem
from sluice.telemetry.health import Checks, Facts, HttpServer, health_app, problems
from sluice.telemetry.http_connections import HttpBounds
from sluice.telemetry.logs import set_up_logs
from sluice.telemetry.process import describe_process, watch_event_loop

log = logging.getLogger(__name__)

READY_LOOK_S = 0.5
SWITCH_S = 0.0005
"""A thread of Kafka's or gRPC's that has something for the loop waits at most so long for the interpreter, not 5 ms."""
COLLECTOR_THRESHOLDS = (5_000, 20, 20)
"""What views hold stays, and what requests leave has few cycles: so Python's collector looks less often than usual."""


class Runtime:
    """What a running service has at hand. `checks` is what its readiness consists of; add to it while starting.

    `degraded` are checks of what the service can do without for a while, `outages` of what callers need and no other
    instance has; they and `facts` are shown beside them.
    `endpoints` are made known to the other services. `unresponsive_containers` are the segment containers that do not
    answer this instance. `identity` is what all of its servers show, None without TLS; `security` is what the log says
    of all switches at the start.
    """

    def __init__(self, name: str, settings: ServiceSettings, connections: Connections | None = None) -> None:
        self.name = name
        self.settings = settings
        self.source = f"{name}/{settings.instance}"
        self.endpoints: dict[str, str] = {}
        self.checks: Checks = {}
        self.degraded: Checks = {"disk": disk_problem}
        self.outages: Checks = {}
        self.facts: Facts = {}
        self.watched: list[Watched[Any]] = []
        self.security = settings.security()
        self.identity = settings.identity()
        self.watch(self.identity, settings.kafka_files(), tracing.files_of_tls(settings.otlp_endpoint))
        report_certificates(self.watched)
        self.unresponsive_containers: Callable[[], Iterable[int]] = tuple
        self.stack = AsyncExitStack()
        self.connections: Connections = connections or KafkaConnections(
            settings.kafka_client(),
            settings.partitions,
            settings.kafka_session_timeout_s,
            settings.journal_gather_ms,
        )
        self.producer = self.connections.producer
        self.clock = self.connections.clock
        self.sender = RequestSender(self.producer, self.clock, self.source)
        self.tokens = settings.token_signer(self.clock.now_ms)
        if self.tokens.watched is not None:
            self.watch(self.tokens.watched)
        self.started_at = self.clock.now_ms()
        self.model = DomainModel()
        self.journal = Journal(
            self.connections.log,
            self.model,
            self.source,
            clock=self.clock,
            chance=self.connections.chance,
            snapshots=self.connections.snapshots,
            warm=settings.warm_aggregates,
        )
        self.heartbeats = Heartbeats(self.heartbeat, self.sender, self.clock, self.journal)

    def heartbeat(self) -> Heartbeat:
        """What says that this instance is alive, since when, where it listens, and what it does without."""
        return Heartbeat(
            service=self.name,
            instance=self.settings.instance,
            endpoints=self.endpoints,
            started_at=self.started_at,
            problems=dict(problems(self.degraded)),
            unresponsive=tuple(sorted(self.unresponsive_containers())),
        )

    def request_source(self, topic: Topic) -> RequestSource:
        """The requests of a topic, as a member of its group."""
        return self.connections.request_source(topic.name, topic.group)

    def watch(self, *watched: Watched[Any] | None) -> None:
        """Follow what is made of files, while the service runs; while a new version is refused it is degraded.

        None is what is not configured.
        """
        for one in watched:
            if one is not None:
                self.watched.append(one)
                self.degraded[one.name] = one.problem

    async def until_ready(self) -> None:
        """Return when all checks have passed: what no caller waits for leaves the processors of a start to the rest."""
        while problems(self.checks):  # noqa: ASYNC110 - checks tell no one when they pass
            await asyncio.sleep(READY_LOOK_S)

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


Start = Callable[[Runtime], Awaitable[None]]
Serve = Callable[[Runtime], Starlette]


def _serve_health(runtime: Runtime) -> Starlette:
    return health_app(runtime.checks, runtime.facts, runtime.degraded, runtime.outages)


def run_service(name: str, settings: ServiceSettings, start: Start, serve: Serve = _serve_health) -> None:
    """Run until SIGTERM or SIGINT. `start(runtime)` is called once the journal is loaded.

    `serve(runtime)` is the application on the health port, from the beginning on; it must have the routes of health.
    Exits with status 2 if the topics that exist do not fit the settings, a port is taken, or Kafka's clients or
    security cannot be configured as the settings say; with status 3 if the journal was trimmed before this process had
    followed it there: it loads a snapshot when it is started again.
    """
    set_up_logs(name, settings.instance, settings.log_level)
    describe_process(name, settings.instance)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    try:
        tracing.set_up(name, settings.instance, settings.otlp_endpoint)
        uvloop.run(_live(name, settings, start, serve))
    except (TopicsUnfitError, KafkaConfError, SecurityConfigError, OSError) as error:
        log.critical("cannot start", extra={"error": str(error)})
        sys.exit(2)
    except OvertakenError as error:
        log.critical("cannot go on, started again it will load a snapshot", extra={"error": str(error)})
        sys.exit(3)
    finally:
        tracing.shut_down()


class OvertakenError(Exception):
    """The journal was trimmed before this process had followed it there."""


async def _live(name: str, settings: ServiceSettings, start: Start, serve: Serve) -> None:
    runtime = Runtime(name, settings)
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    async with runtime.stack as stack:
        runtime.spawn(watch_event_loop(), "event loop watch")
        bounds = HttpBounds(settings.max_http_connections, settings.max_header_bytes)
        runtime.spawn(keep_watching(runtime.watched), "watched files")
        server = HttpServer(
            serve(runtime), settings.host, *settings.http_ports, identity=runtime.identity, bounds=bounds
        )
        log.info("security", extra=runtime.security)
        await _listen(stack, server)
        living = loop.create_task(_start(runtime, start))
        ends = [loop.create_task(reason.wait()) for reason in (ending, runtime.journal.overtaken)]
        await asyncio.wait((living, *ends), return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        log.info("stopping")
        await _cancel(living)
    log.info("stopped")
    if not ending.is_set():
        raise OvertakenError(runtime.journal.failure)


async def _listen(stack: AsyncExitStack, server: HttpServer) -> None:
    await server.start()
    stack.push_async_callback(server.stop)


async def _start(runtime: Runtime, start: Start) -> None:
    journal, settings = runtime.journal, runtime.settings
    runtime.checks["started"] = lambda: "starting"
    await _topics(runtime)
    runtime.producer.start()
    runtime.stack.push_async_callback(asyncio.to_thread, runtime.producer.stop)
    runtime.checks["journal"] = lambda: journal.failure or journal.loading
    runtime.checks["journal fold"] = lambda: journal.difference
    journal.start()
    runtime.stack.push_async_callback(journal.stop)
    watch = JournalWatch(journal, settings.container_count)
    runtime.spawn(watch.watch(), "journal watch")
    await journal.loaded.wait()
    runtime.outages["segment containers"] = watch.unresponsive_containers
    await start(runtime)
    runtime.checks["kafka"] = runtime.heartbeats.problem
    runtime.stack.push_async_callback(runtime.heartbeats.leave)
    runtime.spawn(runtime.heartbeats.run(), "heartbeat")
    runtime.checks["started"] = lambda: None
    log.info("started", extra={"endpoints": runtime.endpoints, "partitions": settings.partitions})


async def _topics(runtime: Runtime) -> None:
    settings = runtime.settings
    client = settings.kafka_client()
    while True:
        try:
            few = await asyncio.to_thread(ensure_topics, client, settings.partitions, settings.kafka_replication, 2.0)
            if few:
                too_few = f"fewer replicas than {settings.kafka_replication}: {', '.join(few)}"
                runtime.degraded["topics"] = partial(str, too_few)
            return
        except KafkaException as error:
            # What it answers may be that these topics cannot be: as many replicas as brokers, or a right that lacks.
            waiting = f"waiting for Kafka at {settings.kafka_bootstrap}: {in_words(error)}"
            runtime.checks["started"] = partial(str, waiting)
            log.info("waiting for Kafka", extra={"bootstrap": settings.kafka_bootstrap, "error": in_words(error)})
            await asyncio.sleep(0.1)
