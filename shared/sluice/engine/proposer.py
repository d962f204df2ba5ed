"""Decides requests and appends what comes of it: many requests of one partition in one record.

While a record of a partition is on its way, requests of that partition gather; the next record takes them all, in the
order in which they came, each as an entry of its own. A request that reads what one before it changes waits for the
record after that one. So what one record can hold grows with the load, and a single request pays nothing for it.

Proposing is optimistic: decide on the present view, append, wait until the own follower has folded the record; what
turned out void by a version is decided anew on the newer state. A duplicate is final. So no process needs to own what
it changes, and one that was frozen for a minute can do no harm. While the log is away everything waits. Belongs to the
event loop; per partition one record is on its way at a time.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from sluice.engine.decision import Context, Decision
from sluice.engine.errors import JournalUnavailableError, PartitionFailedError
from sluice.engine.fold import GuardedReader, Outcome, PartitionView
from sluice.engine.offsets import NO_REQUEST, RequestFacts
from sluice.engine.ports import Clock, RecordTooLargeError
from sluice.engine.record import Entry, RequestPosition
from sluice.exceptions import in_words
from sluice.telemetry import tracing

log = logging.getLogger(__name__)

MAX_ENTRIES = 256
RETRY_S = 0.1

Decide = Callable[[GuardedReader, Context], Decision]


class _Item(msgspec.Struct, eq=False):
    key: str
    decide: Decide
    decided: "asyncio.Future[Decision | None]"
    request: RequestFacts
    span: tracing.Span


class _Batch:
    """What is gathered for one record: items with their decisions and entries."""

    def __init__(self) -> None:
        self.items: list[tuple[_Item, Decision]] = []
        self.entries: list[Entry[Any, Any]] = []
        self.touched: set[str] = set()

    def floors(self) -> dict[str, RequestPosition]:
        origins = (item.request.origin for item, _ in self.items)
        return {o.source.topic: o.offsets.floor for o in origins if o is not None}


class Appending(Protocol):
    """What the proposer needs of the journal."""

    clock: Clock

    def partition_of(self, key: str) -> int: ...

    def check(self, partition: int) -> None:
        """Raises PartitionFailedError if it has stopped."""
        ...

    def reader(self, key: str) -> PartitionView: ...

    def append(
        self, key: str, entries: tuple[Entry[Any, Any], ...], *, floors: dict[str, RequestPosition]
    ) -> Awaitable[list[Outcome]]:
        """Raises JournalError."""
        ...


class Proposer:
    """`max_entries` bounds the entries of one record."""

    def __init__(self, journal: Appending, max_entries: int = MAX_ENTRIES) -> None:
        self._journal = journal
        self._max_entries = max_entries
        self._queues: dict[int, deque[_Item]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> int:
        """Requests that are in no record yet."""
        return sum(len(queue) for queue in self._queues.values())

    def submit(self, key: str, decide: Decide, request: RequestFacts = NO_REQUEST) -> "asyncio.Future[Decision | None]":
        """The decision once its entry counts; None if the request was decided before.

        A decision without events and reply needs no entry, unless the request has an origin: every request that was
        decided leaves one. Fails with what `decide` raises, with RecordTooLargeError as the cause of a
        JournalUnavailableError, or with PartitionFailedError; while the log is away it waits. A cancelled future is not
        decided any more.
        """
        loop = asyncio.get_running_loop()
        partition = self._journal.partition_of(key)
        item = _Item(key, decide, loop.create_future(), request, tracing.current())
        queue = self._queues.setdefault(partition, deque())
        queue.append(item)
        if partition not in self._tasks:
            self._tasks[partition] = loop.create_task(self._work(partition, queue))
        return item.decided

    def everything_before(self, key: str) -> "asyncio.Future[Decision | None]":
        """Done when all that was submitted so far for the key's partition is decided."""
        return self.submit(key, lambda _reader, _context: Decision())

    async def stop(self) -> None:
        """End; what is in no record yet stays undecided."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, partition: int, queue: deque[_Item]) -> None:
        most = self._max_entries
        try:
            while queue:
                batch = self._gather(partition, queue, most)
                if not batch.entries:
                    continue
                try:
                    await self._append(batch, queue)
                    most = self._max_entries
                except Exception as error:  # noqa: BLE001 - it reaches those who wait for it
                    most = await self._failed(error, partition, batch, queue) or self._max_entries
        finally:
            del self._tasks[partition]

    async def _append(self, batch: _Batch, queue: deque[_Item]) -> None:
        with tracing.shared("decide together", (item.span for item, _ in batch.items)):
            outcomes = await self._journal.append(batch.items[0][0].key, tuple(batch.entries), floors=batch.floors())
        stale = []
        for (item, decision), outcome in zip(batch.items, outcomes, strict=True):
            if outcome is Outcome.STALE:
                stale.append(item)
            elif not item.decided.done():
                item.decided.set_result(decision if outcome is Outcome.COUNTED else None)
        queue.extendleft(reversed(stale))

    async def _failed(self, error: Exception, partition: int, batch: _Batch, queue: deque[_Item]) -> int | None:
        """How many entries to try next; None: as many as ever."""
        log.warning(
            "requests wait", extra={"partition": partition, "requests": len(batch.items), "error": in_words(error)}
        )
        items = [item for item, _ in batch.items]
        is_too_large = isinstance(error.__cause__, RecordTooLargeError)
        if isinstance(error, JournalUnavailableError) and not is_too_large:
            queue.extendleft(reversed(items))
            await asyncio.sleep(RETRY_S)
        elif not isinstance(error, PartitionFailedError) and len(items) > 1:
            # One of them is too large or cannot be encoded, and is to fail alone.
            queue.extendleft(reversed(items))
            return len(items) // 2
        else:
            for item in items:
                if not item.decided.done():
                    item.decided.set_exception(error)
        return None

    def _gather(self, partition: int, queue: deque[_Item], most: int) -> _Batch:
        """Decide what fits into one record. What needs no entry waits until all before it is decided.

        Nothing is decided on a partition that has stopped: its view may show half of the record that it stopped at, or
        what the journal has lost.
        """
        batch = _Batch()
        while queue and len(batch.items) < most:
            item = queue[0]
            if item.decided.done():
                queue.popleft()
                continue
            view, facts = self._journal.reader(item.key), item.request
            source = facts.origin.source if facts.origin is not None else None
            reader = GuardedReader(view)
            now_ms = max(self._journal.clock.now_ms(), facts.appended_at)
            context = Context(now_ms, facts.id, facts.appended_at)
            try:
                self._journal.check(partition)
                if source is not None and view.is_decided(source):
                    queue.popleft()
                    item.decided.set_result(None)
                    continue
                decision = item.decide(reader, context)
                names = dict.fromkeys(event.aggregate for event in decision.events)
                for name in names:
                    reader.get(name)
            except Exception as error:  # noqa: BLE001 - it reaches the callers that wait
                queue.popleft()
                item.decided.set_exception(error)
                continue
            if batch.touched and not batch.touched.isdisjoint(reader.seen):
                break
            if not decision.events and decision.reply is None and source is None:
                if batch.items:
                    break
                queue.popleft()
                item.decided.set_result(decision)
                continue
            queue.popleft()
            batch.touched.update(names)
            request = facts.id if decision.reply is not None else None
            batch.items.append((item, decision))
            batch.entries.append(Entry(reader.seen, decision.events, request, decision.reply, source, facts.principal))
        return batch
