"""The module where retention-spark is wired.

The main thread runs the loop that serves health and waits for signals; Spark runs in a JVM beside it, each query in a
thread that watches over it. No decision follows the journal: what it needs to know comes in the reports. The queries
run while this instance leads. Its JVM waits for that; on a cluster it begins when the instance leads for the first
time, for executors are for who leads.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Never, TypeVar

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark.archive_query import NAME as ARCHIVE
from retention_spark.archive_query import checkpoint_of, start_archive
from retention_spark.batch_pause import BatchPause
from retention_spark.blocking import at_most, in_daemon, within
from retention_spark.checkpoint_compatibility import look_at_topics, mend
from retention_spark.compaction import compact
from retention_spark.listener import ProgressListener
from retention_spark.metrics import ACTIVE
from retention_spark.query import QueryPlan, pause_of, plans, start_query
from retention_spark.query_supervisor import QueryRunner, if_all_fail
from retention_spark.session import open_session, wait_for_end, works_here
from retention_spark.settings import SparkSettings
from sluice.domain.cluster.commands import Heartbeat
from sluice.exceptions import EndedError
from sluice.heartbeats import Heartbeats
from sluice.kafka.connections import KafkaConnections
from sluice.kafka.leadership import Leadership
from sluice.kafka.sending import RequestSender
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config.java import ignored_by_java, java_options
from sluice.process import Process, run_process
from sluice.settings import settings_of
from sluice.telemetry.health import Checks, problems
from sluice.telemetry.scrape import on_scrape
from sluice.workflows.report_decider import SERVICE

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_AGAIN_S = 0.5
OPENED_S = 300.0
JOIN_S = 600.0
DRAIN_S = 3.0
QUERIES_END_S = 5.0
SESSION_ENDS_S = 2.0


def main() -> None:
    """Run with the settings of the environment. It cannot start if topics or checkpoints do not fit."""
    settings = settings_of(SparkSettings)
    # What fails in a batch ends its query, and is logged there.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    run_process(Process, SERVICE, settings, partial(_work, settings))


async def _work(settings: SparkSettings, process: Process) -> Never:
    session = await _start(settings, process)
    raise EndedError(await in_daemon(wait_for_end, session))


async def _start(settings: SparkSettings, process: Process) -> SparkSession:
    checks, stack = process.checks, process.stack
    conf = settings.given_kafka_conf()
    java_options(conf)
    if ignored := ignored_by_java(conf):
        log.info("settings of Kafka's clients that Spark's source ignores", extra={"settings": ignored})
    ids = await _topics(settings, checks)
    _send_heartbeats(settings, process)
    leadership = Leadership(settings.kafka_client(), settings.kafka_session_timeout_s)
    stack.push_async_callback(leadership.stop)
    leadership.start()
    checks["leadership"] = leadership.problem
    process.facts["role"] = lambda: "active" if leadership.term else "standby"
    on_scrape("leadership", lambda: ACTIVE.set(bool(leadership.term)))
    if not works_here(settings):
        checks["started"] = lambda: None
        log.info("stands by")
        while not leadership.term:  # noqa: ASYNC110 - it is the thread of a consumer that learns of it
            await asyncio.sleep(LOOK_AGAIN_S)
    checks["started"] = lambda: "starting Spark"
    session = await within(OPENED_S, "the session of Spark", open_session, SERVICE, settings)
    stack.push_async_callback(at_most, SESSION_ENDS_S, "session", session.stop)
    queries = plans(settings)
    pauses = {plan.name: pause_of(plan, settings) for plan in queries}
    progress = ProgressListener(pauses)
    session.streams.addListener(progress)
    deciding: list[QueryRunner] = []
    step_down = if_all_fail(deciding, leadership.step_down)
    deciding += [
        _runner(session, plan, settings, progress, pauses[plan.name], leadership, step_down) for plan in queries
    ]
    runners = [*deciding]
    if settings.archive:
        runners.append(_archive_runner(session, settings, progress, ids[JOURNAL.name], leadership))
    stops = [partial(runner.stop, DRAIN_S) for runner in runners]
    stack.push_async_callback(at_most, QUERIES_END_S, "queries", *stops)
    for runner in runners:
        checks[f"query {runner.name}"] = runner.problem
        checks[f"batches of {runner.name}"] = partial(_late, progress, runner.name, leadership)
        runner.start()
    process.spawn(_keep_history(session, settings, leadership), "history")
    checks["started"] = lambda: None
    log.info("started", extra={"master": settings.spark_master, "checkpoints": settings.spark_checkpoints})
    return session


def _send_heartbeats(settings: SparkSettings, process: Process) -> None:
    connections = KafkaConnections(settings.kafka_client(), settings.partitions, settings.kafka_session_timeout_s)
    connections.producer.start()
    process.stack.push_async_callback(asyncio.to_thread, connections.producer.stop)
    started_at = connections.clock.now_ms()

    def describe() -> Heartbeat:
        return Heartbeat(
            service=SERVICE,
            instance=settings.instance,
            endpoints={},
            started_at=started_at,
            problems=dict(problems(process.checks | process.degraded)),
        )

    sender = RequestSender(connections.producer, connections.clock, process.source)
    heartbeats = Heartbeats(describe, sender, connections.clock, connections.log.ends)
    process.stack.push_async_callback(heartbeats.leave)
    process.spawn(heartbeats.run(), "heartbeat")
    process.checks["kafka"] = heartbeats.problem


def _late(progress: ProgressListener, query: str, leadership: Leadership) -> str | None:
    return progress.problem(query) if leadership.term else None


def _runner(
    session: SparkSession,
    plan: QueryPlan,
    settings: SparkSettings,
    progress: ProgressListener,
    pause: BatchPause,
    leadership: Leadership,
    step_down: Callable[[str], None],
) -> QueryRunner:
    def start() -> StreamingQuery:
        progress.begins(plan.name)
        return start_query(session, plan, settings, f"{SERVICE}/{settings.instance}", pause, leadership)

    ends_batches = partial(progress.ends_batches, plan.name)
    return QueryRunner(plan.name, start, pause.stop, lambda: leadership.term > 0, ends_batches, step_down)


def _archive_runner(
    session: SparkSession, settings: SparkSettings, progress: ProgressListener, journal: str, leadership: Leadership
) -> QueryRunner:
    def start() -> StreamingQuery:
        progress.begins(ARCHIVE)
        return start_archive(session, settings)

    def release() -> None:
        """A batch of the archive never waits."""

    mend_it = partial(mend, session, checkpoint_of(settings, journal))
    ends_batches = partial(progress.ends_batches, ARCHIVE)
    return QueryRunner(ARCHIVE, start, release, lambda: leadership.term > 0, ends_batches, mend_it)


async def _keep_history(session: SparkSession, settings: SparkSettings, leadership: Leadership) -> None:
    folder = settings.spark_history
    while True:
        await asyncio.sleep(JOIN_S)
        if not leadership.term:
            continue
        try:
            await in_daemon(compact, session, folder, settings.spark_history_days)
        except Exception as error:  # noqa: BLE001 - Spark raises whatever its file system does; decisions go on
            log.warning("history not joined", extra={"folder": folder, "error": str(error)})


async def _topics(settings: SparkSettings, checks: Checks) -> dict[str, str]:
    """The ids of the topics, once all are there."""
    look = partial(look_at_topics, settings.kafka_client(), settings.partitions)
    while True:
        ids, missing = await _insist(look, settings, checks)
        if not missing:
            return ids
        log.info("waiting for topics", extra={"topics": missing})
        checks["started"] = partial(str, f"waiting for topics: {', '.join(missing)}")
        await asyncio.sleep(LOOK_AGAIN_S)


async def _insist(call: Callable[[], T], settings: SparkSettings, checks: Checks) -> T:
    """What a call gives that wants an answer of Kafka's, once there is one."""
    while True:
        try:
            return await in_daemon(call)
        except KafkaException as error:
            log.info("waiting for Kafka", extra={"bootstrap": settings.kafka_bootstrap, "error": str(error)})
        checks["started"] = partial(str, f"waiting for Kafka at {settings.kafka_bootstrap}")
        await asyncio.sleep(LOOK_AGAIN_S)
