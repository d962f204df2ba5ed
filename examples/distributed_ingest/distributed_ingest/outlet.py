"""The one way from a source into the stream: check the lock, write, wait until it is stored, note the position.

A batch whose writing failed is written anew a few times before the task gives up; the part of it that was stored is
then in the stream twice. Nothing is ever noted that is not stored: **at least once**.

Concurrency: belongs to one event loop; used by all tasks of a node.
"""

from collections.abc import Awaitable, Callable, Sequence

from distributed_ingest.patience import PAUSES_S, tried
from distributed_ingest.records import Event, KeyRule
from distributed_ingest.settle import settled
from distributed_ingest.sink import Sink, SinkError, StreamEndedError
from distributed_ingest.tally import Counts, Tally
from sluice_coordination import TaskContext

BATCH_BYTES = 512 * 1024


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
            unkeyed = sum(event.key is None for event in events) if self.keys.may_lack else 0
            size = sum(len(event.data) for event in events)
            self.tally.add(origin, Counts(len(events), size, 0, unkeyed))
        if note is not None:
            await note()

    async def _write(self, context: TaskContext, events: Sequence[Event]) -> None:
        async def write() -> None:
            context.check()
            await self._sink.write(events)

        try:
            await tried(write, SinkError, self._pauses_s, lambda error: self.tally.problem(f"writing failed: {error}"))
        except StreamEndedError as error:
            self.ended = str(error)
            raise
