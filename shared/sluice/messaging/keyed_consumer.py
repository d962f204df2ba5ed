"""The keyed consumer: records of one key one after the other, different keys side by side.

A partition belongs to one instance through the consumer group. Each key that has work has a queue and one task, gone
when idle. `slots` bounds how many handlers run; one that only waits gives its slot back, so a stream that waits holds
up nobody else. An offset is committed when its record and all before it are accepted: handled, or begun as a workflow
that the journal remembers. Everything here belongs to the event loop; the consumer belongs to its poll thread.

More than `max_open` records that are not accepted pause the whole topic. More than that many behind one that is stuck
pause its partition alone: they are kept in mind only, but would all come again after a crash.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from sluice.messaging.poll_thread import Batch, PollThread
from sluice.telemetry import metrics, tracing
from sluice.telemetry.scrape import on_scrape

log = logging.getLogger(__name__)

COMMIT_INTERVAL_S = 0.5
TAKE_OVER_AGAIN_S = 1.0
URGENT_AT_ONCE = 16


class Slots(Protocol):
    """What bounds how many handlers run."""

    async def acquire(self) -> Any: ...

    def release(self) -> None: ...


class Delivery:
    """One record on its way through a handler. `value` is None for work that did not come from the topic."""

    def __init__(
        self,
        consumer: "KeyedConsumer",
        partition: int,
        key: str,
        message: Message | None,
        slots: Slots | None = None,
    ) -> None:
        self._consumer = consumer
        self.slots: Slots = slots or consumer.slots
        self.partition = partition
        self.key = key
        self.message = message
        self.span = tracing.NOTHING if message is not None else tracing.current()
        self._accepted = False

    @property
    def value(self) -> bytes | None:
        return self.message.value() if self.message is not None else None

    def accept(self) -> None:
        """The record need not be delivered again: it is handled, or the journal will see it through."""
        if not self._accepted:
            self._accepted = True
            if self.message is not None:
                self._consumer.accepted(self.partition, self.message.offset() or 0)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Give the slot to somebody else meanwhile."""
        self.slots.release()
        try:
            yield
        finally:
            await self.slots.acquire()


Rest = Callable[[], Awaitable[None]]
Handler = Callable[[Delivery], Awaitable[Rest | None]]
"""Handles a record. What it returns, if anything, is done beside the records that follow; then it is accepted."""


class _Offsets:
    """Which records of a partition are accepted; the position to commit is below the first that is not.

    `appended` is when the broker appended those that wait, in epoch ms.
    """

    def __init__(self) -> None:
        self.waiting: deque[int] = deque()
        self.appended: deque[int] = deque()
        self.done: set[int] = set()
        self.position: int | None = None

    def took(self, message: Message) -> None:
        self.waiting.append(message.offset() or 0)
        self.appended.append(message.timestamp()[1])

    @property
    def open(self) -> int:
        """How many are not accepted."""
        return len(self.waiting) - len(self.done)

    def accepted(self, offset: int) -> bool:
        """Whether it was open: a handler of an earlier assignment may accept what is not, or not any more."""
        waiting, done = self.waiting, self.done
        if not waiting or not waiting[0] <= offset <= waiting[-1] or offset in done:
            return False
        done.add(offset)
        while waiting and waiting[0] in done:
            first = waiting.popleft()
            self.appended.popleft()
            done.discard(first)
            self.position = first + 1
        return True


class KeyedConsumer:
    """Consumes a topic as a member of `group`.

    `on_assigned(partition)` runs before the partition's records do and must see its work through; `on_failure` gets the
    record that a handler could not handle, and why, and must put it where people find it. Records for which `is_urgent`
    holds pass the queue of their key by and are handled beside it, in slots of their own. `on_revoked(partition)` is
    told that it is somebody else's.
    """

    def __init__(
        self,
        client: dict[str, Any],
        topic: str,
        group: str,
        handler: Handler,
        on_assigned: Callable[[int], Awaitable[None]],
        on_failure: Callable[[Delivery, Exception], Awaitable[None]],
        max_handlers: int = 256,
        max_open: int = 10_000,
        is_urgent: Callable[[Message], bool] = lambda _message: False,
        on_revoked: Callable[[int], None] = lambda _partition: None,
    ) -> None:
        self.slots = asyncio.Semaphore(max_handlers)
        self._urgent_slots = asyncio.Semaphore(URGENT_AT_ONCE)
        self.partitions: set[int] = set()
        self.joined = False
        self._topic = topic
        self._handler = handler
        self._on_assigned = on_assigned
        self._on_failure = on_failure
        self._max_open = max_open
        self._is_urgent = is_urgent
        self._on_revoked = on_revoked
        self._open = 0
        self._paused = False
        self._full: set[int] = set()
        self._unkept: dict[int, Exception] = {}
        self._taking_over: dict[int, asyncio.Task[None]] = {}
        self._commit_due = False
        self._queues: dict[str, deque[tuple[Delivery, Handler]]] = {}
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}
        self._held: dict[int, list[Message]] = {}
        self._offsets: dict[int, _Offsets] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._still: set[int] = set()
        self._loop = asyncio.get_running_loop()
        config = {
            **client,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": 1500,
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 100,
            "fetch.message.max.bytes": 8 * 1024 * 1024,
            "queued.min.messages": 2000,
        }
        self._poll = PollThread(f"consumer-{topic}", config, self._attach, self._on_batch)

    def start(self) -> None:
        self._poll.start()
        self._spawn(self._commit_for_ever())
        on_scrape(f"consumer of {self._topic}", self.publish)

    @property
    def failure(self) -> BaseException | None:
        """Why records are not read, or one of a partition that is ours can neither be handled nor be kept."""
        return self._poll.failure or next(iter(self._unkept.values()), None)

    @property
    def open_records(self) -> int:
        """Records taken from the topic that are not accepted yet."""
        return self._open

    def oldest_s(self) -> float:
        """How many seconds ago the broker appended the oldest open record; 0 if there is none."""
        appended = [offsets.appended[0] for offsets in self._offsets.values() if offsets.appended]
        return max(0.0, time.time() - min(appended) / 1000) if appended else 0.0

    def publish(self) -> None:
        """Set the gauges of this topic."""
        metrics.OPEN_RECORDS.labels(self._topic).set(self._open)
        metrics.OLDEST_RECORD.labels(self._topic).set(self.oldest_s())
        metrics.KEYS_AT_WORK.labels(self._topic).set(len(self._tasks))
        metrics.PARTITIONS_OWNED.labels(self._topic).set(len(self.partitions))

    async def stop(self) -> None:
        """Stop taking records, end what runs, commit what is accepted and leave the group."""
        for _, task in list(self._tasks.values()):
            task.cancel()
        for background in list(self._background):
            background.cancel()
        self._poll.submit(self._commit)
        await self._poll.stop()

    def run(self, partition: int, key: str, job: Handler, slots: Slots | None = None) -> None:
        """Queue work of our own on a key, behind what waits there; with `slots` of its own it takes none of handlers'.

        All work of such a key must have them.
        """
        self._enqueue(Delivery(self, partition, key, None, slots), job, key)

    # The poll thread's side.

    def _attach(self, consumer: Consumer) -> None:
        def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._loop.call_soon_threadsafe(self._assigned, [p.partition for p in partitions])

        def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                self._commit(consumer)
            except KafkaException as error:
                # Raised from here it would end the thread. Whoever owns the partitions next gets some records again.
                log.warning("not committed before the partitions went", extra={"error": str(error)})
            self._let_go(consumer, [p.partition for p in partitions])
            self._loop.call_soon_threadsafe(self._revoked, [p.partition for p in partitions])

        def lost(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self._let_go(consumer, [p.partition for p in partitions])
            self._loop.call_soon_threadsafe(self._lost, [p.partition for p in partitions])

        consumer.subscribe([self._topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _commit(self, consumer: Consumer) -> None:
        self._commit_due = False
        positions = [(p, o.position) for p, o in list(self._offsets.items())]
        due = [TopicPartition(self._topic, p, at) for p, at in positions if at is not None]
        if due:
            consumer.commit(offsets=due, asynchronous=False)
            for p, at in positions:
                offsets = self._offsets.get(p)
                if offsets is not None and offsets.position == at:
                    offsets.position = None

    async def _commit_for_ever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_INTERVAL_S)
            if not self._commit_due and any(o.position is not None for o in self._offsets.values()):
                self._commit_due = True
                self._poll.submit(self._commit)

    def _pause(self, consumer: Consumer, everything: bool, full: frozenset[int]) -> None:
        """Pause all partitions, or those that are full, and resume the others.

        Only what is paused may be resumed: otherwise librdkafka begins again where the partition was begun.
        """
        assigned = {p.partition for p in consumer.assignment()}
        wanted = assigned if everything else assigned & full
        if more := wanted - self._still:
            consumer.pause(self._named(more))
        if fewer := self._still - wanted:
            consumer.resume(self._named(fewer))
        self._still = wanted

    def _let_go(self, consumer: Consumer, partitions: list[int]) -> None:
        """What is paused while it goes would still be so when it comes back."""
        paused = self._still.intersection(partitions)
        self._still -= paused
        try:
            if paused:
                consumer.resume(self._named(paused))
        except KafkaException as error:
            log.warning("not resumed before the partitions went", extra={"error": str(error)})

    def _named(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition) for partition in sorted(partitions)]

    # The loop's side.

    def _assigned(self, partitions: list[int]) -> None:
        self.joined = True
        metrics.REBALANCES.labels(self._topic).inc()
        for partition in partitions:
            self.partitions.add(partition)
            self._offsets[partition] = _Offsets()
            self._held[partition] = []
            self._taking_over[partition] = self._spawn(self._take_over(partition))
        if self._paused:
            self._pause_what_is_full()
        log.info("partitions assigned", extra={"topic": self._topic, "partitions": sorted(partitions)})

    async def _take_over(self, partition: int) -> None:
        held = self._held.get(partition)
        while True:
            try:
                await self._on_assigned(partition)
                break
            except Exception:
                log.exception("partition not taken over, trying again", extra={"partition": partition})
                await asyncio.sleep(TAKE_OVER_AGAIN_S)
        if held is None or self._held.get(partition) is not held:
            return
        del self._held[partition]
        for message in held:
            self._dispatch(partition, message)

    def _lost(self, partitions: list[int]) -> None:
        """The group has gone on without this member, which has to join it again."""
        self.joined = False
        self._revoked(partitions)

    def _revoked(self, partitions: list[int]) -> None:
        gone = set(partitions)
        for partition in partitions:
            # A take-over that ended later than this would make a second owner.
            taking_over = self._taking_over.pop(partition, None)
            if taking_over is not None:
                taking_over.cancel()
            self._on_revoked(partition)
        self.partitions -= gone
        for partition in gone:
            offsets = self._offsets.pop(partition, None)
            self._held.pop(partition, None)
            self._unkept.pop(partition, None)
            if offsets is not None:
                self._open -= offsets.open
        for key, (partition, task) in list(self._tasks.items()):
            if partition in gone:
                task.cancel()
                self._queues.pop(key, None)
                del self._tasks[key]
        if not self._full.isdisjoint(gone):
            self._full -= gone
            self._pause_what_is_full()
        self._resume_if_room()
        log.info("partitions revoked", extra={"topic": self._topic, "partitions": sorted(gone)})

    def _on_batch(self, batch: Batch) -> None:
        for message in batch:
            partition = message.partition()
            offsets = self._offsets.get(partition) if partition is not None else None
            if partition is None or offsets is None:
                continue
            if offsets.waiting and (message.offset() or 0) <= offsets.waiting[-1]:
                # The topic has lost its end, or is read again: what waits stands there once more, or not at all.
                self._open -= offsets.open
                offsets = self._offsets[partition] = _Offsets()
            offsets.took(message)
            self._open += 1
            if len(offsets.waiting) > self._max_open and partition not in self._full:
                self._full.add(partition)
                log.warning("partition waits for a record", extra={"topic": self._topic, "partition": partition})
                self._pause_what_is_full()
            held = self._held.get(partition)
            if held is not None:
                held.append(message)
            else:
                self._dispatch(partition, message)
        if self._open > self._max_open and not self._paused:
            self._paused = True
            self._pause_what_is_full()

    def _pause_what_is_full(self) -> None:
        everything, full = self._paused, frozenset(self._full)
        self._poll.submit(lambda consumer: self._pause(consumer, everything, full))

    def _resume_if_room(self) -> None:
        if self._paused and self._open < self._max_open // 2:
            self._paused = False
            self._pause_what_is_full()

    def _dispatch(self, partition: int, message: Message) -> None:
        key = (message.key() or b"").decode(errors="replace")
        is_urgent = self._is_urgent(message)
        slots = self._urgent_slots if is_urgent else None
        self._enqueue(
            Delivery(self, partition, key, message, slots), self._handler, f"{key} urgent" if is_urgent else key
        )

    def _enqueue(self, delivery: Delivery, job: Handler, lane: str) -> None:
        queue = self._queues.get(lane)
        if queue is not None:
            queue.append((delivery, job))
            return
        self._queues[lane] = deque([(delivery, job)])
        task = self._loop.create_task(self._work(lane))
        self._tasks[lane] = (delivery.partition, task)

    async def _work(self, lane: str) -> None:
        queue = self._queues[lane]
        slots = queue[0][0].slots
        await slots.acquire()
        try:
            while queue:
                delivery, job = queue.popleft()
                await self._handle(delivery, job)
        finally:
            slots.release()
        if self._queues.get(lane) is queue:
            del self._queues[lane]
            del self._tasks[lane]

    async def _handle(self, delivery: Delivery, job: Handler) -> None:
        if tracing.is_on() and delivery.message is not None:
            delivery.span = tracing.handling(self._topic, delivery.message.headers())
        failure, rest, is_kept = None, None, True
        with delivery.span.active():
            try:
                rest = await job(delivery)
            except Exception as error:  # noqa: BLE001 - the key must go on; the record is kept
                failure = error
                is_kept = await self._keep(delivery, error)
        if rest is not None:
            self._spawn(self._accepted_after(rest, delivery))
            return
        delivery.span.end(failure)
        if is_kept:
            delivery.accept()

    async def _accepted_after(self, rest: Rest, delivery: Delivery) -> None:
        try:
            with tracing.within(delivery.span):
                await rest()
        except Exception as error:  # noqa: BLE001 - the record is kept
            if not await self._keep(delivery, error):
                return
        delivery.accept()

    async def _keep(self, delivery: Delivery, error: Exception) -> bool:
        """Whether the record that could not be handled is kept elsewhere. If not, its offset stays, and it shows."""
        try:
            await self._on_failure(delivery, error)
        except Exception as worse:
            log.exception("failure not kept", extra={"topic": self._topic, "key": delivery.key})
            if delivery.partition in self.partitions:
                self._unkept[delivery.partition] = worse
            return False
        return True

    def accepted(self, partition: int, offset: int) -> None:
        offsets = self._offsets.get(partition)
        if offsets is None:
            return
        if not offsets.accepted(offset):
            return
        self._open -= 1
        if partition in self._full and len(offsets.waiting) < self._max_open // 2:
            self._full.discard(partition)
            self._pause_what_is_full()
        self._resume_if_room()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
