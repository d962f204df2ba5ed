"""The journal as a service uses it: follow it, read the view, propose and wait, await replies.

The follower's thread hands batches of records to the event loop, where everything else here belongs. Proposing is
optimistic: decide on the present view, append, wait until the own follower has folded the record; if it turned out
void, decide again on the newer state. So no instance needs to own what it changes, and one that was frozen for a
minute can do no harm.
"""

import asyncio
import gc
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from confluent_kafka import Consumer, TopicPartition

from sluice.domain.aggregates import evolve, index
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.events import Event
from sluice.journal.barrier import BarrierError, EndOffsets, Ends
from sluice.journal.partition_view import GuardedReader, Outcome, PartitionView
from sluice.journal.record import Place, Record, decode_record, encode_record, record_type
from sluice.messaging.partition import partition_of
from sluice.messaging.poll_thread import Batch, PollThread
from sluice.messaging.producer import KafkaProducer, ProduceError
from sluice.messaging.requests import cloud_event_headers
from sluice.messaging.topics import JOURNAL
from sluice.telemetry import metrics, tracing

log = logging.getLogger(__name__)

LOAD_RETRY_S = 0.05

Decide = Callable[[GuardedReader, Context], Decision]


class JournalError(Exception):
    """The journal cannot serve now."""


class JournalUnavailableError(JournalError):
    """Kafka did not acknowledge, or did not answer, in time; what was appended may count or not."""


class PartitionFailedError(JournalError):
    """A record of the partition could not be decoded or applied; the partition stays stopped until that is mended."""


class MissingRecordsError(JournalError):
    """The follower was not given the records in between."""


class Executed(msgspec.Struct, frozen=True):
    """`decision` is None if the request had been answered before; `reply` is the answer then, too."""

    reply: Reply | None
    decision: Decision | None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Journal:
    """Follows all partitions of the journal from its start.

    `client` is the common librdkafka configuration, `source` this process as service/instance.
    """

    def __init__(
        self, client: dict[str, Any], producer: KafkaProducer, source: str, partitions: int, timeout_s: float = 10.0
    ) -> None:
        self.source = source
        self.partitions = partitions
        self.loaded = asyncio.Event()
        self.failed: dict[int, str] = {}
        self.on_record: list[Callable[[int, Record], None]] = []
        self._timeout_s = timeout_s
        self._producer = producer
        self._loop = asyncio.get_running_loop()
        self._views = [PartitionView(evolve, index) for _ in range(partitions)]
        self._proposals: dict[str, asyncio.Future[Outcome]] = {}
        self._replies: dict[str, asyncio.Future[Reply]] = {}
        self._awaited: list[dict[asyncio.Future[Reply], None]] = [{} for _ in range(partitions)]
        self._reached: list[dict[asyncio.Future[None], int]] = [{} for _ in range(partitions)]
        self._changed: list[dict[asyncio.Future[None], None]] = [{} for _ in range(partitions)]
        self._ids = map(f"{secrets.token_hex(5)}-{{:x}}".format, itertools.count(1))
        self._ends = EndOffsets(client, JOURNAL.name, partitions, timeout_s=2.0)
        config = {
            **client,
            "group.id": "sluice-journal-follower",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 2000,
            "max.partition.fetch.bytes": 512 * 1024,
            "fetch.max.bytes": 2 * 1024 * 1024,
        }
        self._follower = PollThread("journal-follower", config, self._attach, self._on_batch)
        self._loading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._ends.start()
        self._follower.start()
        self._loading = self._loop.create_task(self._load())

    async def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        self._ends.stop()
        await self._follower.stop()

    @property
    def failure(self) -> str | None:
        """Why this journal can not be followed any further, for people; None while it can."""
        if self.failed:
            return "; ".join(f"partition {p}: {reason}" for p, reason in sorted(self.failed.items()))
        return repr(self._follower.failure) if self._follower.failure else self._ends.failure

    # Reading.

    def partition_of(self, key: str) -> int:
        return partition_of(key, self.partitions)

    def ends(self) -> asyncio.Future[Ends]:
        """Where the partitions end now, asked of Kafka; fails with BarrierError."""
        return self._ends.ask()

    def reader(self, key: str) -> PartitionView:
        """The view of the partition that a key belongs to. Read it behind a barrier, and not across an await."""
        return self._views[partition_of(key, self.partitions)]

    def views(self) -> list[PartitionView]:
        return self._views

    async def barrier(self, partitions: Iterable[int]) -> None:
        """Return once the view of these partitions holds all that was acknowledged before this call.

        Raises JournalUnavailableError or PartitionFailedError.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                ends = await self._ends.ask()
                for partition in partitions:
                    self._check(partition)
                    if self._views[partition].next_offset < ends[partition]:
                        await self._reach(partition, ends[partition])
        except (BarrierError, TimeoutError) as error:
            raise JournalUnavailableError(f"end of journal not reached: {error}") from error

    async def until(self, key: str, holds: Callable[[PartitionView], bool]) -> None:
        """Return once `holds(view)` is true of the key's partition; looked at again after every change of it."""
        partition = self.partition_of(key)
        while not holds(self._views[partition]):
            self._check(partition)
            changed: asyncio.Future[None] = self._loop.create_future()
            self._changed[partition][changed] = None
            try:
                await changed
            finally:
                del self._changed[partition][changed]

    def expect_reply(self, request: str, keys: Iterable[str]) -> asyncio.Future[Reply]:
        """A future for the reply to a request that is about to be sent; cancel it to forget.

        It takes the partitions of these keys to answer it. Raises PartitionFailedError if one of them has stopped, as
        the future does if one stops meanwhile.
        """
        partitions = {self.partition_of(key) for key in keys}
        for partition in partitions:
            self._check(partition)
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._replies[request] = reply
        for partition in partitions:
            self._awaited[partition][reply] = None

        def forget(_: asyncio.Future[Reply]) -> None:
            self._replies.pop(request, None)
            for partition in partitions:
                self._awaited[partition].pop(reply, None)

        reply.add_done_callback(forget)
        return reply

    @property
    def replies_expected(self) -> int:
        return len(self._replies)

    # Proposing.

    async def execute(self, key: str, request: str | None, decide: Decide, place: Place | None = None) -> Executed:
        """Decide on the key's aggregates and append until the record counts, or the request turns out answered.

        A decision without events and reply is not appended. With `place` the aggregates remember where the request
        stood, refused or not, and the decision learns of its time; only for requests that are decided in the order of
        their topic. Raises JournalError.
        """
        view = self.reader(key)
        while True:
            if request is not None:
                answer = view.answer(request)
                if answer is not None:
                    return Executed(answer, None)
            reader = GuardedReader(view)
            context = Context(now_ms(), request, place.at if place is not None else 0, view.last_ms)
            decision = decide(reader, context)
            if not decision.events and decision.reply is None:
                return Executed(None, decision)
            for event in decision.events:
                reader.get(event.aggregate)
            outcome = await self.append(
                key, reader.seen, decision.events, request=request, reply=decision.reply, place=place, at=context.now
            )
            if outcome is Outcome.COUNTED:
                return Executed(decision.reply, decision)

    async def append(
        self,
        key: str,
        expect: dict[str, int],
        events: tuple[Event, ...],
        *,
        request: str | None = None,
        reply: Reply | None = None,
        answers: dict[str, Reply] | None = None,
        place: Place | None = None,
        at: int,
    ) -> Outcome:
        """Append one record and wait until it is folded. Raises JournalError; whether it counts is open then."""
        record = Record(
            id=next(self._ids),
            at=at,
            by=self.source,
            expect=expect,
            request=request,
            events=events,
            reply=reply,
            answers=answers or {},
            place=place,
        )
        self._check(self.partition_of(key))
        folded: asyncio.Future[Outcome] = self._loop.create_future()
        self._proposals[record.id] = folded

        def failed(error: ProduceError) -> None:
            if not folded.done():
                folded.set_exception(JournalUnavailableError(str(error)))

        headers = cloud_event_headers(record_type(record), record.id, record.by, record.at, key)
        span = tracing.appending(JOURNAL.name, record_type(record)) if tracing.is_on() else tracing.NOTHING
        headers.extend(span.carrier().items())
        try:
            with tracing.within(span):
                self._producer.send_quietly(JOURNAL.name, key, encode_record(record), headers, failed)
                async with asyncio.timeout(self._timeout_s):
                    outcome = await folded
                span.note({"sluice.outcome": outcome.value})
            return outcome
        except ProduceError as error:
            raise JournalUnavailableError(str(error)) from error
        except TimeoutError:
            raise JournalUnavailableError(f"record not folded within {self._timeout_s} s") from None
        finally:
            self._proposals.pop(record.id, None)

    # Following.

    def _attach(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(JOURNAL.name, p, 0) for p in range(self.partitions)])

    async def _load(self) -> None:
        started = time.monotonic()
        while not self.loaded.is_set():
            try:
                ends = await self._ends.ask()
            except BarrierError:
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            for partition, end in ends.items():
                if self._views[partition].next_offset < end:
                    # A partition that stops on the way is no reason to keep the others from serving.
                    with suppress(PartitionFailedError):
                        await self._reach(partition, end)
            records = sum(v.next_offset for v in self._views)
            log.info("journal loaded", extra={"records": records, "seconds": round(time.monotonic() - started, 3)})
            self.loaded.set()

    async def _reach(self, partition: int, offset: int) -> None:
        self._check(partition)
        reached: asyncio.Future[None] = self._loop.create_future()
        self._reached[partition][reached] = offset
        try:
            await reached
        finally:
            del self._reached[partition][reached]

    def _check(self, partition: int) -> None:
        if partition in self.failed:
            raise PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")

    def _on_batch(self, batch: Batch) -> None:
        touched = set()
        loading = not self.loaded.is_set()
        unheard = not (self._proposals or self._replies or self.on_record)
        if loading:
            # What is loaded lives on: spare the collector from walking through all of it again and again.
            gc.disable()
        for message in batch:
            partition = message.partition()
            offset = message.offset()
            assert partition is not None and offset is not None
            if partition in self.failed:
                continue
            touched.add(partition)
            view = self._views[partition]
            try:
                # The journal is neither compacted nor written in transactions: its offsets have no gaps.
                if offset != view.next_offset:
                    raise MissingRecordsError(f"the last one before it is at {view.next_offset - 1}")
                if message.error() is not None:
                    continue
                record = decode_record(message.value() or b"")
                outcome = view.fold(record, offset, message.timestamp()[1])
            except Exception as error:  # noqa: BLE001 - whatever it is, the partition stops there
                self._stop_partition(partition, offset, error)
                continue
            if outcome is not Outcome.COUNTED or not unheard:
                self._tell(partition, record, outcome)
        metrics.JOURNAL_RECORDS.inc(len(batch))
        if loading:
            gc.freeze()
            gc.enable()
        for partition in touched:
            self._wake(partition)

    def _tell(self, partition: int, record: Record, outcome: Outcome) -> None:
        proposal = self._proposals.get(record.id)
        if proposal is not None and not proposal.done():
            proposal.set_result(outcome)
        if outcome is not Outcome.COUNTED:
            metrics.JOURNAL_VOID.labels(record.by.partition("/")[0], outcome.value).inc()
            return
        if record.reply is not None and record.request is not None:
            waiting = self._replies.get(record.request)
            if waiting is not None and not waiting.done():
                waiting.set_result(record.reply)
        for request, answer in record.answers.items():
            waiting = self._replies.get(request)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        for listener in self.on_record:
            try:
                listener(partition, record)
            except Exception:
                # What comes behind it must be folded all the same, and the other listeners hear of it.
                log.critical("record not heard", extra={"partition": partition, "record": record.id}, exc_info=True)

    def _wake(self, partition: int) -> None:
        for future in self._changed[partition]:
            if not future.done():
                future.set_result(None)
        reached = self._views[partition].next_offset
        for future, offset in self._reached[partition].items():
            if offset <= reached and not future.done():
                future.set_result(None)

    def _stop_partition(self, partition: int, offset: int, error: Exception) -> None:
        self.failed[partition] = f"record at offset {offset} cannot be applied: {error!r}"
        log.critical("journal partition stopped", extra={"partition": partition, "offset": offset}, exc_info=error)
        failure = PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")
        waiting: list[asyncio.Future[Any]] = [
            *self._changed[partition],
            *self._reached[partition],
            *self._awaited[partition],
        ]
        for future in waiting:
            if not future.done():
                future.set_exception(failure)
