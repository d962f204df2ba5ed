"""Decides many requests of one partition into one record.

While a record of a partition is on its way, requests of that partition gather; the next record takes them all, in the
order in which they came. A request that reads what one before it changes waits for the record after that one. So what
one record can hold grows with the load, and a single request pays nothing for it. Everything here belongs to the event
loop; per partition one record is on its way at a time.

The requests must bear to be decided again: their answers are told, not remembered.
"""

import asyncio
import logging
from collections import deque

import msgspec

from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.events import Event
from sluice.journal.journal import Decide, Journal, JournalError, now_ms
from sluice.journal.partition_view import GuardedReader, Outcome
from sluice.messaging.producer import RecordTooLargeError
from sluice.telemetry import tracing

log = logging.getLogger(__name__)

MOST = 256
"""Requests in one record."""

RETRY_S = 0.1


class _Item(msgspec.Struct, eq=False):
    key: str
    request: str | None
    asked_at: int
    decide: Decide
    decided: asyncio.Future[Decision]
    span: tracing.Span = tracing.NOTHING


class _Record(msgspec.Struct, eq=False):
    """What is gathered for one record."""

    items: list[tuple[_Item, Decision]] = []
    expect: dict[str, int] = {}
    events: list[Event] = []
    answers: dict[str, Reply] = {}


class GroupCommit:
    """`most` bounds the requests of one record."""

    def __init__(self, journal: Journal, most: int = MOST) -> None:
        self._journal = journal
        self._most = most
        self._queues: dict[int, deque[_Item]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> int:
        """Requests that are in no record yet."""
        return sum(len(queue) for queue in self._queues.values())

    def submit(self, key: str, request: str | None, asked_at: int, decide: Decide) -> asyncio.Future[Decision]:
        """The decision, once the record that holds it counts. `asked_at` is when the broker appended the request.

        Fails only with what `decide` raises, or if no record can hold it; while the journal is away it waits.
        """
        loop = asyncio.get_running_loop()
        partition = self._journal.partition_of(key)
        item = _Item(key, request, asked_at, decide, loop.create_future(), tracing.current())
        queue = self._queues.setdefault(partition, deque())
        queue.append(item)
        if partition not in self._tasks:
            self._tasks[partition] = loop.create_task(self._work(partition, queue))
        return item.decided

    def everything_before(self, key: str) -> asyncio.Future[Decision]:
        """Done when all that was submitted so far for the key's partition is decided."""
        return self.submit(key, None, 0, lambda _reader, _context: Decision())

    async def stop(self) -> None:
        """End; what is in no record yet stays undecided."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, partition: int, queue: deque[_Item]) -> None:
        most = self._most
        try:
            while queue:
                taken: list[_Item] = []
                try:
                    await self._one_record(queue, taken, most)
                    most = self._most
                except Exception as error:  # noqa: BLE001 - it is told to whoever asked
                    facts = {"partition": partition, "requests": len(taken), "error": repr(error)}
                    log.warning("requests wait", extra=facts)
                    if isinstance(error, JournalError) and not isinstance(error.__cause__, RecordTooLargeError):
                        queue.extendleft(reversed(taken))
                        await asyncio.sleep(RETRY_S)
                    elif len(taken) > 1:
                        # One of them is at fault, and is to fail alone.
                        queue.extendleft(reversed(taken))
                        most = len(taken) // 2
                    else:
                        failing = taken[0] if taken else queue.popleft()
                        if not failing.decided.done():
                            failing.decided.set_exception(error)
        finally:
            del self._tasks[partition]

    async def _one_record(self, queue: deque[_Item], taken: list[_Item], most: int) -> None:
        """Decide what fits into one record and append it. `taken` says what was, should it have to be done again."""
        while True:
            queue.extendleft(reversed(taken))
            taken.clear()
            record = self._gather(queue, taken, most)
            if not record.events and not record.answers:
                break
            at = now_ms()
            key = record.items[0][0].key
            with tracing.shared("decide together", (item.span for item, _ in record.items)):
                outcome = await self._journal.append(
                    key, record.expect, tuple(record.events), answers=record.answers, at=at
                )
            if outcome is Outcome.COUNTED:
                break
        for item, decision in record.items:
            if not item.decided.done():
                item.decided.set_result(decision)

    def _gather(self, queue: deque[_Item], taken: list[_Item], most: int) -> _Record:
        record, touched = _Record(), set[str]()
        while queue and len(taken) < most:
            item = queue[0]
            view = self._journal.reader(item.key)
            reader = GuardedReader(view)
            context = Context(max(now_ms(), item.asked_at), item.request, item.asked_at, view.last_ms)
            try:
                decision = item.decide(reader, context)
            except Exception as error:  # noqa: BLE001 - it is told to whoever asked
                queue.popleft()
                if not item.decided.done():
                    item.decided.set_exception(error)
                continue
            names = [event.aggregate for event in decision.events]
            if touched and not touched.isdisjoint({*reader.seen, *names}):
                break
            taken.append(queue.popleft())
            record.items.append((item, decision))
            for name in names:
                reader.get(name)
            touched.update(names)
            record.expect.update(reader.seen)
            record.events.extend(decision.events)
            if decision.reply is not None and item.request is not None:
                record.answers[item.request] = decision.reply
        return record
