"""What every service that follows the journal has beside a process of its own: topics, journal, heartbeat.

A service starts in any order with the others and waits for what it needs; until then its health endpoint says what
is missing.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Never

from confluent_kafka import KafkaException

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.model import DomainModel
from sluice.engine.journal import Journal
from sluice.engine.ports import RequestSource
from sluice.exceptions import EndedError, in_words
from sluice.heartbeats import Heartbeats
from sluice.journal_watch import JournalWatch
from sluice.kafka.connections import Connections, KafkaConnections
from sluice.kafka.sending import RequestSender
from sluice.kafka.topics import Topic
from sluice.process import Process, Serve, run_process, serve_health
from sluice.security.watched import keep_watching
from sluice.service_context import begin_service
from sluice.settings import ServiceSettings
from sluice.telemetry.disk import disk_problem
from sluice.telemetry.health import Checks, problems

log = logging.getLogger(__name__)

READY_LOOK_S = 0.5
SWITCH_S = 0.0005
"""A thread of Kafka's or gRPC's that has something for the loop waits at most so long for the interpreter, not 5 ms."""
COLLECTOR_THRESHOLDS = (5_000, 20, 20)
"""What views hold stays, and what requests leave has few cycles: so Python's collector looks less often than usual."""


class Runtime(Process):
    """What a running service has at hand.

    `endpoints` are made known to the other services. `unresponsive_containers` are the segment containers that do not
    answer this instance.
    """

    def __init__(self, name: str, settings: ServiceSettings, connections: Connections | None = None) -> None:
        super().__init__(name, settings)
        self.endpoints: dict[str, str] = {}
        self.degraded["disk"] = disk_problem
        self.unresponsive_containers: Callable[[], Iterable[int]] = tuple
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
        self.heartbeats = Heartbeats(self.heartbeat, self.sender, self.clock, self.journal.ends)

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

    async def until_ready(self) -> None:
        """Return when all checks have passed: what no caller waits for leaves the processors of a start to the rest."""
        while problems(self.checks):  # noqa: ASYNC110 - checks tell no one when they pass
            await asyncio.sleep(READY_LOOK_S)


Start = Callable[[Runtime], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Service:
    """One instance of a service. `start(runtime)` is called once the journal is loaded; for `serve` see `run_process`.

    One that `holds` is started even while the journal is restored or held, and waits itself until it is loaded.
    """

    name: str
    settings: ServiceSettings
    start: Start
    serve: Serve[Runtime] = serve_health
    holds: bool = False


def run_service(service: Service) -> None:
    """See `run_process`. The services that its settings name `beside` it run in the same process.

    It cannot start if the topics that exist do not fit the settings, and has ended if the journal was trimmed before
    this process had followed it there: it loads a snapshot when it is started again.
    """
    packages = (package.strip() for package in service.settings.beside.split(","))
    others = [_beside(service, package) for package in packages if package]
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    run_process(Runtime, service.name, service.settings, partial(_work_all, service, others), service.serve)


def _beside(host: Service, package: str) -> Service:
    """A service by its package, whose `__main__` describes it: services know each other by name only."""
    instance = f"{host.settings.instance}-{package.replace('_', '-')}"
    module = f"{package}.__main__"
    try:
        found: Service = import_module(module).service(instance=instance)
    except ModuleNotFoundError as error:
        if error.name not in (package, module):
            raise
        sys.stderr.write(f"setting SLUICE_BESIDE: no service is installed here as package {package}\n")
        raise SystemExit(2) from None
    if found.serve is not serve_health:
        sys.stderr.write(f"setting SLUICE_BESIDE: {found.name} serves by itself and is for no other's process\n")
        raise SystemExit(2)
    return found


async def _work_all(host: Service, others: Sequence[Service], runtime: Runtime) -> Never:
    """What ends one of them ends all: they are started again together."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_work_beside(other, runtime), name=other.name) for other in others]
    own = loop.create_task(work(host.start, host.holds, runtime), name=host.name)
    runtime.stack.push_async_callback(_end, tasks)
    try:
        done, _ = await asyncio.wait([own, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end([own])
    raise next((error for one in done if (error := one.exception()) is not None), EndedError("a service has ended"))


async def _work_beside(service: Service, host: Runtime) -> None:
    """Its health is part of the host's, under its name."""
    begin_service(service.name, service.settings.instance)
    runtime = Runtime(service.name, service.settings)
    runtime.checks["started"] = lambda: "starting"
    runtime.facts = host.facts
    host.checks[service.name] = partial(lack_of, runtime)
    host.degraded[service.name] = partial(_in_words, runtime.degraded)
    host.outages[service.name] = partial(_in_words, runtime.outages)
    async with runtime.stack:
        runtime.spawn(keep_watching(runtime.watched), "watched files")
        await work(service.start, service.holds, runtime)


def lack_of(beside: Runtime) -> str | None:
    """What keeps the host of a service from being ready, in words.

    That the journal is restored or held does not: a host that holds calls is ready then, any other says so itself.
    """
    journal = beside.journal
    is_held = journal.caught_up.is_set() and not journal.loaded.is_set() and not journal.failure
    return None if is_held else _in_words(beside.checks)


def _in_words(checks: Checks) -> str | None:
    return "; ".join(f"{name}: {problem}" for name, problem in problems(checks).items()) or None


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def work(start: Start, holds: bool, runtime: Runtime) -> Never:
    """Follow the journal, start the service once it is loaded, and beat until the end: see `run_service`."""
    journal, settings = runtime.journal, runtime.settings
    await _topics(runtime)
    runtime.producer.start()
    runtime.stack.push_async_callback(asyncio.to_thread, runtime.producer.stop)
    runtime.checks["journal"] = lambda: journal.failure or journal.loading
    runtime.checks["journal fold"] = lambda: journal.difference
    journal.start()
    runtime.stack.push_async_callback(journal.stop)
    watch = JournalWatch(journal, settings.container_count)
    runtime.spawn(watch.watch(), "journal watch")
    await (journal.caught_up if holds else journal.loaded).wait()
    await start(runtime)
    runtime.outages["segment containers"] = watch.unresponsive_containers
    runtime.checks["kafka"] = runtime.heartbeats.problem
    runtime.stack.push_async_callback(runtime.heartbeats.leave)
    runtime.spawn(runtime.heartbeats.run(), "heartbeat")
    runtime.checks["started"] = lambda: None
    log.info("started", extra={"endpoints": runtime.endpoints, "partitions": settings.partitions})
    await journal.overtaken.wait()
    raise EndedError(journal.failure)


async def _topics(runtime: Runtime) -> None:
    settings = runtime.settings
    while True:
        try:
            few = await asyncio.to_thread(runtime.connections.ensure_topics, settings.kafka_replication)
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
