"""The consumer of requests: offsets, flow control and the executor put together over a `RequestSource`.

A partition belongs to one instance through the consumer group. An offset is committed when its request and all before
it are acknowledged: decided, or a dead letter. A request whose workflow goes on is acknowledged once its first
entry counts, because the journal has the workflow. One whose partition of the journal has stopped stays open, for who
can follow it further. Control commands pass the queue of their key by, and so do the kinds that wait for no workflow.
Everything here belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from sluice.engine.errors import PartitionFailedError
from sluice.engine.executor import KeyedExecutor
from sluice.engine.flow_control import FlowControl
from sluice.engine.journal import Journal
from sluice.engine.offsets import Offsets, Origin, RequestFacts
from sluice.engine.ports import Message, RequestSource
from sluice.engine.record import RequestPosition, Source
from sluice.exceptions import in_words
from sluice.telemetry import metrics, tracing
from sluice.telemetry.scrape import on_scrape

log = logging.getLogger(__name__)

COMMIT_AFTER_S = 2.0
"""How long after a request is acknowledged the offsets are committed, with all that are acknowledged by then."""
RETRY_TAKE_OVER_S = 1.0
CONTROL_HEADER = "ce_control"
"""The header of a control command: one that must not wait in the queue of its key."""


class WrongPartitionError(Exception):
    """The request stands in a partition that is not that of its key: its sender hashes keys differently."""


class Delivery:
    """A request on its way through a handler. `origin` is None for a control command, and for one that is misplaced.

    `offsets` are those of the assignment that delivered it.
    """

    def __init__(
        self, consumer: "RequestConsumer", message: Message, key: str, origin: Origin | None, offsets: Offsets
    ) -> None:
        self._consumer = consumer
        self.offsets = offsets
        self.message = message
        self.partition: int = message.partition()
        self.offset: int = message.offset()
        self.key = key
        self.origin = origin
        self.span: tracing.Span = tracing.NOTHING

    @property
    def value(self) -> bytes:
        return self.message.value() or b""

    @property
    def appended_at(self) -> int:
        """When the broker appended the request, epoch ms."""
        return self.message.timestamp()[1]

    def facts(self, id: str, principal: str = "") -> RequestFacts:
        """For the proposal of the request, as its envelope names it."""
        return RequestFacts(id, self.origin, self.appended_at, principal)

    def acknowledge(self) -> None:
        """The request need not be delivered a second time."""
        if self.offsets.acknowledge(self.offset):
            self._consumer.acknowledged(self.partition, self.offsets)


Continuation = Callable[[], Awaitable[object]]
Handler = Callable[[Delivery], Awaitable[Continuation | None]]
"""Handles a request. What it returns, if anything, runs beside the requests that follow; then it is acknowledged."""


class RequestConsumer:
    """Consumes the requests of `source`.

    `on_assigned(partition)` runs before the partition's requests do, behind the end of the journal. `on_failure` gets
    the request that a handler could not handle, and why, and must keep it where operators find it. A topic that is not
    `is_keyed` has one partition: its requests have no origin and may be handled a second time. Requests of the
    kinds `beside` (their `ce_type`) stand, in their order, in a queue of their own beside that of their key.

    A topic may have been given more partitions than that, or, if keyed, than the journal has. Those are not taken over:
    no key has them, so in a keyed topic what stands there is misplaced.
    """

    def __init__(
        self,
        source: RequestSource,
        journal: Journal,
        handler: Handler,
        on_assigned: Callable[[int], Awaitable[None]] | None,
        on_failure: Callable[[Delivery, Exception], Awaitable[None]],
        max_open: int = 10_000,
        on_revoked: Callable[[int], None] = lambda _partition: None,
        is_keyed: bool = True,
        beside: Collection[str] = (),
    ) -> None:
        self.partitions: set[int] = set()
        self.joined = False
        self.executor = KeyedExecutor()
        self._source = source
        self._journal = journal
        self._handler = handler
        self._on_assigned = on_assigned
        self._on_failure = on_failure
        self._on_revoked = on_revoked
        self._is_keyed = is_keyed
        self._beside = frozenset(beside)
        self._flow = FlowControl(source.topic, max_open, source.pause)
        self._offsets: dict[int, Offsets] = {}
        self._identities: dict[int, str] = {}
        self._held: dict[int, list[Message]] = {}
        self._problems: dict[int, Exception] = {}
        """Why a partition that is ours is not taken over, or one of its requests can neither be handled nor stored."""
        self._taking_over: dict[int, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._committing: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._source.start(self)
        on_scrape(f"consumer of {self._source.topic}", self.publish)

    async def stop(self) -> None:
        """Commit what is acknowledged, leave the group and end what runs.

        In this order, because requests come until the group is left.
        """
        try:
            await self._source.stop()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End what runs, as if the process had ended."""
        self.executor.cancel()
        for background in list(self._background):
            background.cancel()
        if self._committing is not None:
            self._committing.cancel()

    @property
    def failure(self) -> BaseException | None:
        """Why requests are not read, or a partition that is ours is not served."""
        return self._source.failure or next(iter(self._problems.values()), None)

    def problem(self) -> str | None:
        """What keeps this instance from being ready."""
        if self.failure is not None:
            return in_words(self.failure)
        return None if self.joined else "joining its group"

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits here."""
        return not self.executor.keys_at_work and not self._held

    @property
    def open_requests(self) -> int:
        """Requests taken from the topic that are not acknowledged yet."""
        return self._flow.open

    def publish(self) -> None:
        now_ms, topic = self._journal.clock.now_ms(), self._source.topic
        oldest = min((o.appended[0] for o in self._offsets.values() if o.appended), default=None)
        metrics.OPEN_RECORDS.labels(topic).set(self._flow.open)
        metrics.OLDEST_RECORD.labels(topic).set(max(0.0, (now_ms - oldest) / 1000) if oldest is not None else 0)
        metrics.KEYS_AT_WORK.labels(topic).set(self.executor.keys_at_work)
        metrics.PARTITIONS_OWNED.labels(topic).set(len(self.partitions))

    # What the source reports.

    def positions(self) -> Mapping[int, RequestPosition]:
        """See SourceListener."""
        return {p: position for p, o in list(self._offsets.items()) if (position := o.committable) is not None}

    def assigned(self, partitions: list[int]) -> None:
        """See SourceListener."""
        self.joined = True
        metrics.REBALANCES.labels(self._source.topic).inc()
        count = self._journal.partitions if self._is_keyed else 1
        for partition in partitions:
            self._offsets[partition] = Offsets()
            if partition < count:
                self.partitions.add(partition)
                self._held[partition] = []
                self._taking_over[partition] = self._spawn(self._take_over(partition))
        log.info("partitions assigned", extra={"topic": self._source.topic, "partitions": sorted(partitions)})

    def lost(self, partitions: list[int]) -> None:
        """See SourceListener."""
        self.joined = False
        self.revoked(partitions)

    def revoked(self, partitions: list[int]) -> None:
        """See SourceListener."""
        gone = set(partitions)
        for partition in partitions:
            # A take-over that ended later than this would make a second owner.
            taking_over = self._taking_over.pop(partition, None)
            if taking_over is not None:
                taking_over.cancel()
                self._on_revoked(partition)
        self.partitions -= gone
        self.executor.drop(gone)
        for partition in gone:
            self._held.pop(partition, None)
            self._problems.pop(partition, None)
            self._offsets.pop(partition, None)
            self._flow.gone(partition)
        log.info("partitions revoked", extra={"topic": self._source.topic, "partitions": sorted(gone)})

    def received(self, batch: Sequence[Message]) -> None:
        """See SourceListener."""
        for message in batch:
            partition, offset = message.partition(), message.offset()
            offsets = self._offsets.get(partition)
            if offsets is None:
                continue
            if offsets.runs_backwards(offset):
                # The topic has lost its end, or is read a second time: begin anew with what it is now.
                log.warning("offsets run backwards", extra={"topic": self._source.topic, "partition": partition})
                self.revoked([partition])
                self.assigned([partition])
                offsets = self._offsets[partition]
            offsets.took((_epoch(message), offset), message.timestamp()[1])
            self._flow.took(partition, offsets.behind_first)
            held = self._held.get(partition)
            if held is not None:
                held.append(message)
            else:
                self._dispatch(message)
        self._flow.batch_ended()

    # Taking a partition over.

    async def _take_over(self, partition: int) -> None:
        held = self._held[partition]
        while True:
            try:
                if self._is_keyed:
                    await self._journal.barrier((partition,))
                    self._identities[partition] = await self._source.identity()
                if self._on_assigned is not None:
                    await self._on_assigned(partition)
                break
            except Exception as error:  # noqa: BLE001 - the partition is ours: tried until it succeeds
                facts = {"topic": self._source.topic, "partition": partition, "error": in_words(error)}
                log.warning("partition not taken over yet", extra=facts)
                self._problems[partition] = error
                await asyncio.sleep(RETRY_TAKE_OVER_S)
        self._problems.pop(partition, None)
        if self._held.get(partition) is not held:
            return
        del self._held[partition]
        for message in held:
            self._dispatch(message)

    # Handling.

    def _dispatch(self, message: Message) -> None:
        key = (message.key() or b"").decode(errors="replace")
        headers = _headers(message)
        is_control = CONTROL_HEADER in headers
        partition = message.partition()
        offsets, origin = self._offsets[partition], None
        is_misplaced = self._is_misplaced(key, partition)
        if self._is_keyed and not (is_control or is_misplaced):
            origin = Origin(Source(self._identities[partition], _epoch(message), message.offset()), offsets)
        delivery = Delivery(self, message, key, origin, offsets)
        # No key has a space in it, so these are queues of no other key.
        if is_misplaced:
            queue = f"{partition} misplaced"
        else:
            queue = f"{key} control" if is_control else f"{key} beside" if _kind(headers) in self._beside else key
        self.executor.run(partition, queue, partial(self._handle, delivery))

    def _is_misplaced(self, key: str, partition: int) -> bool:
        return self._is_keyed and self._journal.partition_of(key) != partition

    async def _handle(self, delivery: Delivery) -> None:
        if tracing.is_on():
            delivery.span = tracing.handling(self._source.topic, delivery.message.headers())
        failure, continuation, is_stored = None, None, True
        with delivery.span.active():
            try:
                if self._is_misplaced(delivery.key, delivery.partition):
                    raise WrongPartitionError(f"{delivery.key!r} does not belong to partition {delivery.partition}")
                continuation = await self._handler(delivery)
            except Exception as error:  # noqa: BLE001 - the key must go on; the request is stored
                failure = error
                is_stored = await self._keep(delivery, error)
        if continuation is not None:
            self._spawn(self._acknowledged_after(continuation, delivery))
            return
        delivery.span.end(failure)
        if is_stored:
            delivery.acknowledge()

    async def _acknowledged_after(self, continuation: Continuation, delivery: Delivery) -> None:
        try:
            with tracing.within(delivery.span):
                await continuation()
        except Exception as error:  # noqa: BLE001 - the request is stored
            if not await self._keep(delivery, error):
                return
        delivery.acknowledge()

    async def _keep(self, delivery: Delivery, error: Exception) -> bool:
        """Whether the request that could not be handled is stored elsewhere. If not, its offset stays, and it shows."""
        if isinstance(error, PartitionFailedError):
            log.info("request stays open", extra={"key": delivery.key, "error": str(error)})
            return False
        try:
            await self._on_failure(delivery, error)
        except Exception as worse:
            log.exception("failure not stored", extra={"topic": self._source.topic, "key": delivery.key})
            if self._offsets.get(delivery.partition) is delivery.offsets:
                self._problems[delivery.partition] = worse
            return False
        return True

    def acknowledged(self, partition: int, offsets: Offsets) -> None:
        """One more of these is; those of an earlier assignment count no more."""
        if self._offsets.get(partition) is offsets:
            self._flow.acknowledged(partition, offsets.behind_first)
            self._commit_later()

    def _commit_later(self) -> None:
        if self._committing is None:
            self._committing = self._loop.call_later(COMMIT_AFTER_S, self._commit)

    def _commit(self) -> None:
        self._committing = None
        if self._source.commit():
            self._commit_later()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _epoch(message: Message) -> int:
    """-1 where the broker does not say."""
    epoch = message.leader_epoch()
    return epoch if isinstance(epoch, int) else -1


def _headers(message: Message) -> Mapping[str, Any]:
    return dict(message.headers() or ())


def _kind(headers: Mapping[str, Any]) -> str | None:
    kind = headers.get("ce_type")
    return kind.decode(errors="replace") if isinstance(kind, bytes) else kind
