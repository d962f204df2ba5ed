"""The ways from a source into the stream: check the lock, write, wait until it is stored, note the position.

A batch whose writing failed is written anew a few times before the task gives up; the part of it that was stored is
then in the stream twice. Nothing is ever noted that is not stored: **at least once**.

A task that can be read again from its beginning is written in one transaction, which its document names before the
first event. Who takes the task over asks what became of that one, and has it aborted if it is still open; so a holder
that comes late commits nothing, and everything is in the stream **once**.

Concurrency: belongs to one event loop; used by all tasks of a node.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from distributed_ingest.patience import PAUSES_S, tried, until_answered
from distributed_ingest.records import Event, KeyRule
from distributed_ingest.settle import settled
from distributed_ingest.sink import Sink, SinkError, StreamEndedError
from distributed_ingest.tally import Counts, Tally
from sluice_coordination import DocumentStore, TaskContext

BATCH_BYTES = 512 * 1024
_TRANSACTION = "transaction"


class Outlet:
    """What tasks write through. `ended`: why the stream will never take anything again; empty while it may."""

    def __init__(self, sink: Sink, keys: KeyRule, tally: Tally, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self.keys = keys
        self.tally = tally
        self.ended = ""
        self._sink = sink
        self._pauses_s = pauses_s

    def event(self, data: bytes, origin: str, key: bytes | None = None) -> Event:
        """Return the record with its routing key. `key`: that of a Kafka record."""
        return Event(data, self.keys.key(data, origin, key))

    async def deliver(
        self,
        context: TaskContext,
        origin: str,
        events: Sequence[Event],
        note: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Have events stored, then their position noted; both also when the task is stopped meanwhile.

        Raises SinkError when all attempts failed, StreamEndedError, LockLostError.
        """
        await settled(self._deliver(context, origin, events, note), lambda: context.left_s)

    async def deliver_once(
        self, context: TaskContext, store: DocumentStore, batches: AsyncIterator[tuple[str, Sequence[Event]]]
    ) -> None:
        """Have all events of a task stored once, however often it is begun; each batch comes with its origin.

        Raises SinkError, StreamEndedError, LockLostError, and what `batches` raises; then nothing is in the stream.
        """
        try:
            found = await until_answered(lambda: store.get(context.task), context.check)
            before = found.body.get(_TRANSACTION) if found is not None else None
            if before is not None and await self._sink.is_committed(before):
                return
            written: list[tuple[str, Counts]] = []
            async with self._sink.transaction() as transaction:
                changes = {_TRANSACTION: transaction.id}
                await until_answered(lambda: context.held_lock.update(changes), context.check)
                async for origin, events in batches:
                    context.check()
                    await transaction.write(events)
                    written.append((origin, self._counts(events)))
                context.check()
                await settled(transaction.commit(), lambda: context.left_s)
        except StreamEndedError as error:
            self.ended = str(error)
            raise
        except SinkError as error:
            self.tally.problem(f"writing failed: {error}")
            raise
        for origin, counts in written:
            self.tally.add(origin, counts)

    def skipped(self, origin: str, count: int, why: str) -> None:
        """Tell that records were left out, for good."""
        self.tally.add(origin, Counts(skipped=count))
        self.tally.problem(why)

    async def _deliver(
        self,
        context: TaskContext,
        origin: str,
        events: Sequence[Event],
        note: Callable[[], Awaitable[None]] | None,
    ) -> None:
        if events:
            await self._write(context, events)
            self.tally.add(origin, self._counts(events))
        if note is not None:
            await note()

    def _counts(self, events: Sequence[Event]) -> Counts:
        unkeyed = sum(event.key is None for event in events) if self.keys.may_lack else 0
        return Counts(len(events), sum(len(event.data) for event in events), 0, unkeyed)

    async def _write(self, context: TaskContext, events: Sequence[Event]) -> None:
        async def write() -> None:
            context.check()
            await self._sink.write(events)

        try:
            await tried(write, SinkError, self._pauses_s, lambda error: self.tally.problem(f"writing failed: {error}"))
        except StreamEndedError as error:
            self.ended = str(error)
            raise
