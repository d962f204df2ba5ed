"""The module where retention-spark is wired.

The main thread runs the loop that serves health and waits for signals; Spark runs in a JVM beside it, each query in a
thread that watches over it. No decision follows the journal: what it needs to know comes in the reports.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar

import uvloop
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark.archive_query import NAME as ARCHIVE
from retention_spark.archive_query import start_archive
from retention_spark.batch_pause import BatchPause
from retention_spark.blocking import at_most, in_daemon
from retention_spark.checkpoint_compatibility import FORMAT, Fit, UnfitError, claim, look_at_topics, mend
from retention_spark.compaction import compact
from retention_spark.files import names
from retention_spark.listener import ProgressListener
from retention_spark.query import QueryPlan, checkpoint_of, pause_of, plans, start_query
from retention_spark.query_supervisor import QueryRunner
from retention_spark.report_decider import SERVICE
from retention_spark.session import open_session, wait_for_end
from retention_spark.settings import SparkSettings
from retention_spark.topic_ends import ends_reader
from sluice.kafka.topics import JOURNAL
from sluice.kafka_config.conf import KafkaConfError
from sluice.kafka_config.java import ignored_by_java, java_options
from sluice.security.watched import SecurityConfigError, Watched, keep_watching
from sluice.settings import settings_of
from sluice.telemetry.certificates import report_certificates
from sluice.telemetry.health import Checks, health_server
from sluice.telemetry.http_connections import HttpBounds
from sluice.telemetry.logs import set_up_logs
from sluice.telemetry.process import describe_process, watch_event_loop

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_AGAIN_S = 0.5
JOIN_S = 600.0
DRAIN_S = 3.0
QUERIES_END_S = 5.0
SESSION_ENDS_S = 2.0


class JavaEndedError(Exception):
    """Spark's JVM has ended by itself, and with it everything that ran there."""


def main() -> None:
    """Run until SIGTERM or SIGINT.

    Exits with status 2 if topics or checkpoints do not fit, the port is taken, or Kafka's clients or TLS cannot be
    configured as the settings say; with 1 if Spark's JVM has ended, so that whoever started this starts it again.
    """
    settings = settings_of(SparkSettings)
    set_up_logs(SERVICE, settings.instance, settings.log_level)
    describe_process(SERVICE, settings.instance)
    # What fails in a batch ends its query, and is logged there.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        uvloop.run(_live(settings))
    except JavaEndedError as error:
        log.critical("ended", extra={"error": str(error)})
        sys.exit(1)
    except (UnfitError, KafkaConfError, SecurityConfigError, OSError) as error:
        log.critical("cannot start", extra={"error": str(error)})
        sys.exit(2)


async def _live(settings: SparkSettings) -> None:
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    checks: Checks = {"started": lambda: "starting"}
    async with AsyncExitStack() as stack:
        identity = settings.identity()
        watched: list[Watched[Any]] = [each for each in (identity, settings.kafka_files()) if each is not None]
        degraded: Checks = {each.name: each.problem for each in watched}
        report_certificates(watched)
        bounds = HttpBounds(settings.max_http_connections, settings.max_header_bytes)
        server = health_server(checks, degraded, settings.host, settings.health_port, identity, bounds)
        log.info("security", extra=settings.security())
        await server.start()
        stack.push_async_callback(_cancel, loop.create_task(keep_watching(watched)))
        stack.push_async_callback(server.stop)
        stack.push_async_callback(_cancel, loop.create_task(watch_event_loop()))
        starting = loop.create_task(_start(settings, checks, stack))
        ended = loop.create_task(ending.wait())
        await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            java = in_daemon(wait_for_end, starting.result())
            await asyncio.wait((ended, java), return_when=asyncio.FIRST_COMPLETED)
            if not ending.is_set():
                raise JavaEndedError(f"Spark's JVM has ended with status {java.result()}")
        await _cancel(starting)
        log.info("stopping")
    log.info("stopped")


async def _start(settings: SparkSettings, checks: Checks, stack: AsyncExitStack) -> SparkSession:
    conf = settings.given_kafka_conf()
    java_options(conf)
    if ignored := ignored_by_java(conf):
        log.info("settings of Kafka's clients that Spark's source ignores", extra={"settings": ignored})
    ids = await _topics(settings, checks)
    checks["started"] = lambda: "starting Spark"
    session = await in_daemon(open_session, SERVICE, settings)
    stack.push_async_callback(at_most, SESSION_ENDS_S, "session", session.stop)
    queries = plans(settings, ids[JOURNAL.name])
    pauses = {plan.name: pause_of(plan, settings) for plan in queries}
    progress = ProgressListener(pauses)
    session.streams.addListener(progress)
    for plan in queries:
        await _claim(session, plan, settings, ids[plan.topic.name], checks)
    there = await in_daemon(names, session, settings.spark_checkpoints)
    ours = tuple(plan.name for plan in queries)
    if unused := sorted(name for name in there if name.startswith(ours) and not name.endswith(ids[JOURNAL.name])):
        # So what is in the topics is read from their begin.
        log.warning("checkpoints of no journal, or of another one, are not used", extra={"folders": unused})
    runners = [_runner(session, plan, settings, progress, pauses[plan.name]) for plan in queries]
    if settings.archive:
        runners.append(_archive_runner(session, settings, progress, ids[JOURNAL.name]))
    stops = [partial(runner.stop, DRAIN_S) for runner in runners]
    stack.push_async_callback(at_most, QUERIES_END_S, "queries", *stops)
    for runner in runners:
        checks[f"query {runner.name}"] = runner.problem
        checks[f"batches of {runner.name}"] = partial(progress.problem, runner.name)
        runner.start()
    kept = _keep_history(session, settings.spark_history, settings.spark_history_days)
    stack.push_async_callback(_cancel, asyncio.get_running_loop().create_task(kept))
    checks["started"] = lambda: None
    log.info("started", extra={"master": settings.spark_master, "checkpoints": settings.spark_checkpoints})
    return session


def _runner(
    session: SparkSession, plan: QueryPlan, settings: SparkSettings, progress: ProgressListener, pause: BatchPause
) -> QueryRunner:
    def start() -> StreamingQuery:
        progress.begins(plan.name)
        return start_query(session, plan, settings, f"{SERVICE}/{settings.instance}", pause)

    return QueryRunner(plan.name, start, pause.stop, partial(mend, session, plan.checkpoint))


def _archive_runner(
    session: SparkSession, settings: SparkSettings, progress: ProgressListener, journal: str
) -> QueryRunner:
    def start() -> StreamingQuery:
        progress.begins(ARCHIVE)
        return start_archive(session, settings)

    def release() -> None:
        """A batch of the archive never waits."""

    return QueryRunner(ARCHIVE, start, release, partial(mend, session, checkpoint_of(ARCHIVE, settings, journal)))


async def _keep_history(session: SparkSession, folder: str, kept_days: int) -> None:
    while True:
        await asyncio.sleep(JOIN_S)
        try:
            await in_daemon(compact, session, folder, kept_days)
        except Exception as error:  # noqa: BLE001 - Spark raises whatever its file system does; decisions go on
            log.warning("history not joined", extra={"folder": folder, "error": str(error)})


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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


async def _claim(session: SparkSession, plan: QueryPlan, settings: SparkSettings, topic: str, checks: Checks) -> None:
    """Raises UnfitError. `topic` is the id of the query's."""
    facts: dict[str, str | int] = {
        "topic id": topic,
        "partitions": settings.partitions,
        "buckets": settings.spark_buckets,
        "state partitions": settings.spark_state_partitions,
    }
    read_ends = ends_reader(settings.kafka_client())
    await _insist(partial(claim, session, plan.checkpoint, Fit(FORMAT, facts), read_ends), settings, checks)


async def _insist(call: Callable[[], T], settings: SparkSettings, checks: Checks) -> T:
    """What a call gives that wants an answer of Kafka's, once there is one."""
    while True:
        try:
            return await in_daemon(call)
        except KafkaException as error:
            log.info("waiting for Kafka", extra={"bootstrap": settings.kafka_bootstrap, "error": str(error)})
        checks["started"] = partial(str, f"waiting for Kafka at {settings.kafka_bootstrap}")
        await asyncio.sleep(LOOK_AGAIN_S)
