"""The consumer of `sluice.abort`: a Faust agent that hands every record to a handler, at least once.

Faust ends its app for good when something goes wrong that it does not expect; a commit that fails is enough. So each
app is one *life*: it is started when Kafka answers, and when it ends, another one takes its place, with exponential
waiting. Offsets are committed for what was acknowledged, so a life that ends costs repeats, never records.

Faust's own ways of running handlers side by side (`concurrency`, several streams) may commit past open records. Here
the agent is one stream that only distributes records to lanes (`abort_lanes`). Faust rebalances eagerly: all partitions
go, and some come back. Records that wait are forgotten then and come again from the last commit; a handler that runs
may end first, so that the next owner of its key does not start beside it.

Concurrency: everything here belongs to the event loop; Faust keeps its Kafka client on a thread of its own.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Mapping
from typing import Any

import faust
import faust.tables.manager
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from faust.transport.drivers import aiokafka

from sluice.messaging.topics import ABORT, MAX_RECORD_BYTES
from sluice.settings import ServiceSettings
from sluice.telemetry import metrics, tracing
from sluice.telemetry.scrape import on_scrape
from txn_manager.abort_lanes import Aborting, Handle, Lanes, OnFailure

log = logging.getLogger(__name__)

MAX_OPEN = 1000
COMMIT_INTERVAL_S = 0.25
HANDLERS_END_S = 0.5
KAFKA_ANSWERS_S = 0.5
WAIT_MIN_S = 0.1
WAIT_MAX_S = 5.0
SETTLED_S = 30.0


class KafkaAwayError(Exception):
    """Kafka cannot be reached, or does not know the topic: the agent waits."""


class AppEndedError(Exception):
    """Faust ended its app without saying why."""


class _ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    async def on_thread_stop(self) -> None:
        """Closed while Kafka is away, the client is cancelled by itself; Faust would wait a minute for that thread."""
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            log.warning("left the group without saying so: Kafka is away")
            if self._consumer is not None:
                await self._consumer._client.close()  # noqa: SLF001 - what its own closing has not come to

    def on_crash(self, msg: str, *fmt: Any, **_: Any) -> None:
        """Not on standard error, where only structured lines belong."""
        log.error("thread of the consumer ended", extra={"error": msg.format(*fmt)})


class _Consumer(aiokafka.Consumer):
    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _Transport(aiokafka.Transport):
    Consumer = _Consumer


class _App(faust.App):
    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self)

    async def on_first_start(self) -> None:
        """Make no folders: nothing is kept on disk."""


class AbortAgent:
    """Consumes the topic as a member of `group`.

    `joined`: partitions were assigned, if only none of them. `failure`: why records are not being handled; None when
    healthy, and before the first life has failed.
    """

    def __init__(self, settings: ServiceSettings, group: str, handle: Handle, on_failure: OnFailure) -> None:
        self.joined = False
        self.failure: BaseException | None = None
        self._partitions = 0
        self._lanes: Lanes | None = None
        self._settings = settings
        self._group = group
        self._handle = handle
        self._on_failure = on_failure
        self._living: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return at once; connecting and joining go on in the background."""
        self._living = asyncio.get_running_loop().create_task(self._live(), name="abort-agent")
        on_scrape(f"consumer of {ABORT.name}", self._publish)

    async def stop(self) -> None:
        """Take no more records, let handlers that run end, commit and leave the group."""
        if self._living is not None:
            self._living.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._living
            self._living = None

    def _publish(self) -> None:
        lanes = self._lanes
        oldest_ms = lanes.oldest_ms if lanes is not None else None
        metrics.PARTITIONS_OWNED.labels(ABORT.name).set(self._partitions)
        metrics.OPEN_RECORDS.labels(ABORT.name).set(lanes.open_records if lanes is not None else 0)
        metrics.OLDEST_RECORD.labels(ABORT.name).set(max(0.0, time.time() - oldest_ms / 1000) if oldest_ms else 0)

    async def _live(self) -> None:
        wait_s = WAIT_MIN_S
        while True:
            began = time.monotonic()
            try:
                await self._wait_for_kafka()
                await self._life()
            except Exception as error:  # noqa: BLE001 - whatever ends a life, the next one follows
                self.failure = error
            if time.monotonic() - began > SETTLED_S:
                wait_s = WAIT_MIN_S
            log.error("abort agent ended, starts again", extra={"error": repr(self.failure), "wait_s": wait_s})
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
            wait_s = min(2 * wait_s, WAIT_MAX_S)

    async def _wait_for_kafka(self) -> None:
        """Faust would end its app, and print to standard error, if it were started without Kafka."""
        admin = AdminClient(self._settings.kafka_client())
        while (problem := await asyncio.to_thread(_missing, admin)) is not None:
            self.failure = KafkaAwayError(problem)
            await asyncio.sleep(WAIT_MIN_S)

    async def _life(self) -> None:
        app, lanes = self._new_app(), Lanes(self._handle, self._on_failure, MAX_OPEN)
        self._lanes = lanes
        self._attach(app, lanes)
        running = asyncio.get_running_loop().create_task(_run(app), name="abort-agent-app")
        try:
            await asyncio.wait((running, lanes.broken), return_when=asyncio.FIRST_COMPLETED)
            if lanes.broken.done():
                raise lanes.broken.result()
            running.result()
        finally:
            self.joined = False
            self._partitions = 0
            await lanes.clear(HANDLERS_END_S)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await _end(app)

    def _new_app(self) -> faust.App:
        brokers = [f"aiokafka://{address.strip()}" for address in self._settings.kafka_bootstrap.split(",")]
        return _App(
            self._group,
            broker=brokers,
            broker_client_id=self._settings.instance,
            # The session of the keyed consumer: take-over in about 1.5 s.
            broker_session_timeout=1.5,
            broker_heartbeat_interval=0.3,
            broker_rebalance_timeout=10.0,
            broker_request_timeout=10.0,
            broker_commit_interval=COMMIT_INTERVAL_S,
            consumer_auto_offset_reset="earliest",
            consumer_max_fetch_size=MAX_RECORD_BYTES,
            stream_buffer_maxsize=MAX_OPEN,
            # It would collect garbage until the lanes are empty; they empty themselves.
            stream_wait_empty=False,
            store="memory://",
            # With standby replicas, even of no table, Faust would use an assignor of its own.
            table_standby_replicas=0,
            topic_allow_declare=False,
            topic_disable_leader=True,
            web_enabled=False,
            autodiscover=False,
        )

    def _attach(self, app: faust.App, lanes: Lanes) -> None:
        topic = app.topic(ABORT.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

        async def aborts(stream: Any) -> None:
            async for event in stream.noack().events():
                await lanes.put(_aborting(event.message), event.ack)

        async def assigned(_app: Any, /, *partitions: Any, **_: Any) -> None:
            self.joined, self.failure = True, None
            self._partitions = sum(map(len, partitions))
            metrics.REBALANCES.labels(ABORT.name).inc()
            log.info("partitions assigned", extra=_named(*partitions))

        async def revoked(_app: Any, /, *partitions: Any, **_: Any) -> None:
            self._partitions = 0
            await lanes.clear(HANDLERS_END_S)
            await _committed(app)
            log.info("partitions revoked", extra=_named(*partitions))

        app.agent(topic, name="aborts")(aborts)
        app.on_partitions_assigned.connect(assigned, weak=False)
        app.on_partitions_revoked.connect(revoked, weak=False)


async def _run(app: faust.App) -> None:
    """Ends only by an exception: why the app ended."""
    await app.start()
    await app.wait_until_stopped()
    raise app.crash_reason or AppEndedError("Faust ended its app")


async def _committed(app: faust.App) -> bool:
    """Whether what was acknowledged could be committed; if not, it comes again."""
    committing = asyncio.get_running_loop().create_task(app.consumer.commit())
    # Not awaited beyond that: a commit that waits for another one swallows being cancelled.
    await asyncio.wait((committing,), timeout=KAFKA_ANSWERS_S)
    problem = committing.exception() if committing.done() else TimeoutError("Kafka does not answer")
    if problem is not None:
        committing.cancel()
        log.warning("not committed", extra={"error": repr(problem)})
    return problem is None


async def _end(app: faust.App) -> None:
    """Commit, leave the group and end Faust's threads."""
    if not await _committed(app):
        # A client commits nothing: the commit at the end of the app would wait for Kafka without limit.
        app.client_only = True
    try:
        await app.stop()
    except Exception:
        log.exception("Faust did not stop cleanly")


def _named(partitions: Any) -> dict[str, object]:
    return {"topic": ABORT.name, "partitions": sorted(p.partition for p in partitions)}


def _aborting(message: Any) -> Aborting:
    return Aborting(
        key=(message.key or b"").decode(errors="replace"),
        value=message.value or b"",
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=round(message.timestamp * 1000),
        headers=_headers(message.headers) if tracing.is_on() else (),
    )


def _headers(headers: Any) -> tuple[tuple[str, bytes], ...]:
    """Faust has them as a list of pairs or as a mapping, or none."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return tuple((key, value) for key, value in pairs if isinstance(value, bytes))


def _missing(admin: AdminClient) -> str | None:
    try:
        found = admin.list_topics(ABORT.name, timeout=KAFKA_ANSWERS_S).topics[ABORT.name]
    except KafkaException as error:
        return str(error)
    return None if found.error is None else f"{ABORT.name}: {found.error.str()}"
