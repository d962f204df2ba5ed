"""A topic of requests on Kafka: the member of a consumer group, with cooperative rebalancing.

The consumer belongs to its poll thread; what the loop wants of it is a job for that thread.

A dead member is missed when its session has ended, so sessions are short; but only a broker knows how short it allows
them to be, and may not say. So the member requests the session that is configured. A broker that refuses it gets a
member with the session that Kafka's own settings allow.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.engine.ports import EndsUnknownError, Message, SourceListener
from sluice.engine.record import RequestPosition
from sluice.exceptions import in_words
from sluice.kafka.poll_thread import ConsumerReplaced, PollThread
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

IDENTITY_TIMEOUT_S = 2.0
COMMITTED_TIMEOUT_S = 5.0
SEEK_PAUSE_S = 0.005


class SessionRefusedError(Exception):
    """The broker allows no session as short as that of the group's members."""


class KafkaRequestSource:
    """See RequestSource. `client` is the common librdkafka configuration, `session_s` the session to request."""

    def __init__(self, client: dict[str, Any], topic: str, group: str, session_s: float) -> None:
        self.topic = topic
        self._client = client
        self._group = group
        self._session_s = session_s
        self._joined = False
        self._loop = asyncio.get_running_loop()
        self._listener: SourceListener | None = None
        self._poll: PollThread | None = None
        self._committed: dict[int, RequestPosition] = {}
        self._commit_due = False
        self._still: set[int] = set()
        self._admin: AdminClient | None = None
        self._identifying = threading.Lock()

    @property
    def failure(self) -> BaseException | None:
        """See RequestSource."""
        return self._poll.failure if self._poll is not None else None

    def start(self, listener: SourceListener) -> None:
        """See RequestSource."""
        self._listener = listener
        self._poll = PollThread(
            f"consumer-{self.topic}", self._config(), self._attach, self._received, self._reported, is_member=True
        )
        self._poll.start()

    async def stop(self) -> None:
        """See RequestSource."""
        if self._poll is not None:
            self._poll.submit(self._commit)
            await self._poll.stop()

    def commit(self) -> bool:
        """See RequestSource."""
        if self._poll is None or not self._uncommitted():
            return False
        if not self._commit_due:
            self._commit_due = True
            self._poll.submit(self._commit)
        return True

    def pause(self, partitions: Collection[int]) -> None:
        """See RequestSource."""
        if self._poll is not None:
            self._poll.submit(lambda consumer: self._pause(consumer, partitions))

    async def identity(self) -> str:
        """See RequestSource."""
        return await asyncio.to_thread(self._identity)

    def _identity(self) -> str:
        with self._identifying:
            # Not by its truth: a client is as long as its queue, so an idle one is false.
            admin = self._admin = AdminClient(clients.admin(self._client)) if self._admin is None else self._admin
        try:
            return f"{self.topic}@{topic_ids(admin, [self.topic], IDENTITY_TIMEOUT_S)[self.topic]}"
        except KafkaException as error:
            problem = f"{self.topic}: {in_words(error)}"
        with self._identifying:
            # It may wait for a broker that has gone without a word. A client that is new finds one that answers.
            if self._admin is admin:
                self._admin = None
        # Here, and not by way of a traceback on the loop: its end takes a while.
        del admin
        raise EndsUnknownError(problem)

    def _received(self, batch: Sequence[Message]) -> None:
        if self._listener is not None:
            self._listener.received(batch)

    def _config(self) -> dict[str, Any]:
        more = {
            "fetch.wait.max.ms": 500,
            "max.partition.fetch.bytes": 8 * 1024 * 1024,
            "queued.min.messages": 2000,
            **clients.membership(self._session_s),
        }
        return clients.consumer(self._client, self._group, more)

    # The poll thread's side.

    def _reported(self, error: KafkaError) -> None:
        if error.code() != KafkaError.INVALID_SESSION_TIMEOUT:
            return
        refused_s, self._session_s = self._session_s, clients.DEFAULT_SESSION_S
        facts = {"group": self._group, "session_s": refused_s}
        if refused_s >= clients.DEFAULT_SESSION_S:
            raise SessionRefusedError(
                f"Kafka refuses sessions of {refused_s:g} s: set SLUICE_KAFKA_SESSION_TIMEOUT_S to what its "
                "group.min.session.timeout.ms and group.max.session.timeout.ms allow"
            )
        log.info("Kafka allows no session as short as requested", extra=facts)
        raise ConsumerReplaced(self._config())

    def _attach(self, consumer: Consumer) -> None:
        listener = self._listener
        assert listener is not None

        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._begin(consumer, partitions)
            if not self._joined:
                self._joined = True
                log.info("joined", extra={"group": self._group, "session_s": self._session_s})
            self._loop.call_soon_threadsafe(listener.assigned, [p.partition for p in partitions])

        def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                self._commit(consumer)
            except KafkaException as error:
                # Raised from here it would end the thread. The next owner gets some requests a second time.
                log.warning("not committed before the partitions went", extra={"error": in_words(error)})
            self._release(consumer, [p.partition for p in partitions])
            self._loop.call_soon_threadsafe(listener.revoked, [p.partition for p in partitions])

        def lost(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._release(consumer, [p.partition for p in partitions])
            self._loop.call_soon_threadsafe(listener.lost, [p.partition for p in partitions])

        consumer.subscribe([self.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _begin(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Assign the partitions, each from where it was committed or where that leader epoch ends.

        librdkafka asks for that end when it seeks, but not reliably when it is assigned a committed offset. No message
        is handed over before this returns.
        """
        try:
            committed = consumer.committed(partitions, timeout=COMMITTED_TIMEOUT_S) if partitions else []
            consumer.incremental_assign(committed)
            for one in committed:
                if one.offset > 0 and one.leader_epoch is not None:
                    self._seek(consumer, one)
        except KafkaException as error:
            # Raised from here it would end the thread. The partitions begin at what was committed, whatever that is.
            log.warning("committed positions not compared with the topic", extra={"error": in_words(error)})

    def _seek(self, consumer: Consumer, position: TopicPartition) -> None:
        """Raises KafkaException. What is assigned begins to be fetched a moment later: before that it refuses."""
        end = time.monotonic() + COMMITTED_TIMEOUT_S
        while True:
            try:
                consumer.seek(position)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > end:  # noqa: SLF001 - a public name
                    raise
                time.sleep(SEEK_PAUSE_S)
            else:
                return

    def _uncommitted(self) -> dict[int, RequestPosition]:
        positions = self._listener.positions() if self._listener is not None else {}
        return {p: at for p, at in positions.items() if self._committed.get(p) != at}

    def _commit(self, consumer: Consumer) -> None:
        self._commit_due = False
        due = self._uncommitted()
        if due:
            offsets = [TopicPartition(self.topic, p, at, leader_epoch=epoch) for p, (epoch, at) in due.items()]
            done = consumer.commit(offsets=offsets, asynchronous=False) or ()
            self._committed.update({one.partition: due[one.partition] for one in done if one.error is None})

    def _pause(self, consumer: Consumer, partitions: Collection[int]) -> None:
        """Only what is paused may be resumed: otherwise librdkafka begins again where the partition was begun."""
        wanted = {p.partition for p in consumer.assignment()}.intersection(partitions)
        if more := wanted - self._still:
            consumer.pause(self._named(more))
        if fewer := self._still - wanted:
            consumer.resume(self._named(fewer))
        self._still = wanted

    def _release(self, consumer: Consumer, partitions: list[int]) -> None:
        """What is paused while it goes would still be so when it comes back."""
        for partition in partitions:
            self._committed.pop(partition, None)
        paused = self._still.intersection(partitions)
        self._still -= paused
        try:
            if paused:
                consumer.resume(self._named(paused))
        except KafkaException as error:
            log.warning("not resumed before the partitions went", extra={"error": in_words(error)})

    def _named(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition) for partition in sorted(partitions)]
