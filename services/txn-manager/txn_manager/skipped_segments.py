"""Deletes what batches of commits have skipped, behind them.

The owner of a partition of the topic of commits does this for its streams, by the journal: a segment that was skipped
stands in the state of the stream's commits until it is known to be deleted. The end of a later batch says that; if
none comes for a while, one record of its own, and then the journal rests. The next owner deletes once more what stands
there: the names are never used for anything else.
"""

import asyncio
import logging

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.names import COMMITS
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction.batch import Commits, find_commits, record_deleted, skipped_names
from sluice.domain.transaction.events import EmptySegmentsDeleted, EmptySegmentsSkipped
from sluice.engine.consumer import RequestConsumer
from sluice.engine.executor import Job
from sluice.engine.journal import Journal, JournalError
from sluice.engine.retry import delays
from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentStoreError
from txn_manager.step_context import TransactionStepContext

log = logging.getLogger(__name__)

RECORD_AFTER_S = 60.0
"""How long no batch of a stream may begin before a record of its own says what is deleted."""

GATHER_S = 1.0
"""How long what batches of a stream skip is gathered: a store deletes many at once for little more than a few."""

SEGMENTS_AT_ONCE = 512
"""So many of a stream are deleted side by side, unless a single batch has skipped more."""

DELETE_CONCURRENCY = 64
"""Streams whose skipped segments are deleted at once."""


class SkippedSegments:
    """Belongs to the event loop. One job of a stream runs at a time, in a queue of its own."""

    def __init__(self, journal: Journal, consumer: RequestConsumer, context: TransactionStepContext) -> None:
        self._journal = journal
        self._consumer = consumer
        self._context = context
        self._owned: set[int] = set()
        self._limit = asyncio.Semaphore(DELETE_CONCURRENCY)
        self._gathering: set[str] = set()
        """Commits whose next deletions begin in a moment."""
        self._waiting: set[str] = set()
        """Commits for whose next batch the record of what is deleted waits."""
        journal.on_entry.append(self._observe)

    def take_over(self, partition: int) -> None:
        """Delete what others have left. The view must be at the end of the journal."""
        self._owned.add(partition)
        for _, state in list(self._journal.views()[partition].aggregates(COMMITS)):
            if isinstance(state, Commits) and state.skipped:
                self._run(partition, state.stream)

    def drop(self, partition: int) -> None:
        """Leave the partition to its next owner."""
        self._owned.discard(partition)

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        for event in entry.events:
            if isinstance(event, EmptySegmentsSkipped) and partition in self._owned:
                self._run_later(partition, event.stream_id)
            elif isinstance(event, EmptySegmentsDeleted) and not self._commits(event.stream_id).skipped:
                self._context.deleted.pop(event.aggregate, None)

    def _run_later(self, partition: int, id: StreamId) -> None:
        if id.commits not in self._gathering:
            self._gathering.add(id.commits)
            asyncio.get_running_loop().call_later(GATHER_S, self._run_gathered, partition, id)

    def _run_gathered(self, partition: int, id: StreamId) -> None:
        self._gathering.discard(id.commits)
        if partition in self._owned:
            self._run(partition, id)

    def _run(self, partition: int, id: StreamId) -> None:
        async def job() -> None:
            await self._delete(id)
            self._record_later(partition, id)

        self._queue(partition, id, job)

    def _queue(self, partition: int, id: StreamId, job: Job) -> None:
        self._consumer.executor.run(partition, f"{id.commits}/skipped", job)

    def _commits(self, id: StreamId) -> Commits:
        return find_commits(self._journal.reader(id.key), id) or Commits(id)

    async def _delete(self, id: StreamId) -> None:
        """In the order of the batches, so that all up to one of them are deleted.

        Each round stands behind those of the other streams that wait.
        """
        waits = delays(chance=self._journal.chance)
        while (due := self._due(id)) is not None:
            batch, names = due
            try:
                async with self._limit:
                    await all_done(self._context.store.delete_unused_segment(name) for name in names)
            except SegmentStoreError as error:
                log.warning("skipped segments not deleted yet", extra={"stream": id.key, "error": str(error)})
                await asyncio.sleep(next(waits))
            else:
                self._context.deleted[id.commits] = batch

    def _due(self, id: StreamId) -> tuple[int, list[str]] | None:
        """The next segments that this process has not deleted, and up to which batch these are all."""
        stream = find_stream(self._journal.reader(id.key), id)
        if stream is None:
            return None
        done, names, last = self._context.deleted.get(id.commits, 0), list[str](), None
        for number, skipped in self._commits(id).skipped.items():
            if number > done and len(names) < SEGMENTS_AT_ONCE:
                names.extend(skipped_names(stream, skipped))
                last = number
        return (last, names) if last is not None else None

    def _record_later(self, partition: int, id: StreamId) -> None:
        """Record what is deleted when no batch of the stream has begun for a while."""
        commits = self._commits(id)
        if not commits.skipped or id.commits in self._waiting:
            return
        self._waiting.add(id.commits)
        loop = asyncio.get_running_loop()
        loop.call_later(RECORD_AFTER_S, self._record_if_idle, partition, id, commits.batches)

    def _record_if_idle(self, partition: int, id: StreamId, batches: int) -> None:
        self._waiting.discard(id.commits)
        if partition not in self._owned:
            return
        if self._commits(id).batches != batches:
            self._record_later(partition, id)
            return

        async def record() -> None:
            try:
                await self._journal.propose(id.key, decide)
            except JournalError as error:
                log.warning("deletions not recorded yet", extra={"stream": id.key, "error": str(error)})
                self._record_later(partition, id)

        def decide(reader: Reader, _context: Context) -> Decision:
            return Decision(record_deleted(reader, id, self._context.deleted.get(id.commits, 0)))

        self._queue(partition, id, record)
