"""Reserves ranges of transactions and creates their segments: from the first record to the one that they are prepared.

A range becomes prepared only here, in the process that reserved it, when every creation has been answered. A creation
goes on when the partition is lost. If another process has discarded the range meanwhile, what was created late is
deleted: no transaction of such a range was ever opened, so that is safe at any time. Belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Callable

from sluice.domain.config import ScalingPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.events import TransactionRangePrepared, TransactionRangeReserved
from sluice.domain.transaction.prepared import (
    PreparedRange,
    decide_discard,
    decide_prepared,
    decide_reserve,
    find_range,
    segments_of,
)
from sluice.engine.crash_points import CrashPoints
from sluice.engine.journal import Journal
from sluice.engine.retry import delays
from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.workflows.segments import create_named

log = logging.getLogger(__name__)


class RangeCreator:
    """Each call of `prepare` is one range, from begin to end."""

    def __init__(self, journal: Journal, store: SegmentStore, crash_points: CrashPoints) -> None:
        self._journal = journal
        self._store = store
        self._crash_points = crash_points
        self._mine: dict[TransactionId, bool] = {}

    def is_mine(self, first: TransactionId) -> bool:
        """Whether the range is being created, or at least proposed, by this process."""
        return first in self._mine

    def observe(self, event: TransactionRangePrepared) -> None:
        """Learn that a range is prepared, whether or not `propose` reports it."""
        if event.first_id in self._mine:
            self._mine[event.first_id] = True

    async def prepare(self, id: StreamId, count: int, may_reserve: Callable[[], bool]) -> bool:
        """Prepare `count` transactions; say whether they are. Raises JournalError."""
        first = await self._propose_range(id, count, may_reserve)
        if first is None:
            return False
        try:
            found = find_range(self._journal.reader(id.key), first)
            stream = find_stream(self._journal.reader(id.key), id)
            if found is None or not found.is_reserved or stream is None:
                return False
            self._crash_points.passed("prepare-transactions/reserved")
            return await self._create(stream, found)
        finally:
            del self._mine[first]

    async def _propose_range(self, id: StreamId, count: int, may_reserve: Callable[[], bool]) -> TransactionId | None:
        """The first id of the range; None if nothing is reserved. Each decision is about another one.

        If the record of one counts after all, once another one was decided, this process does not create its segments,
        and the partition's owner discards it.
        """
        proposed: list[TransactionId] = []

        def decide(reader: Reader, context: Context) -> Decision:
            while proposed:
                if find_range(self._journal.reader(id.key), proposed[-1]) is not None:
                    return Decision()
                del self._mine[proposed.pop()]
            if not may_reserve():
                return Decision()
            decision = decide_reserve(reader, id, self._journal.chance.token(), count, context.now)
            for event in decision.events:
                assert isinstance(event, TransactionRangeReserved)
                proposed.append(event.first_id)
                self._mine[event.first_id] = False
            return decision

        try:
            await self._journal.propose(id.key, decide)
        except BaseException:
            for first in proposed:
                del self._mine[first]
            raise
        return proposed[0] if proposed else None

    async def _create(self, stream: Stream, found: PreparedRange) -> bool:
        """Create the segments, then record it, or that the range is discarded if that fails."""
        first = found.id
        names = segments_of(stream, found.transactions)
        is_created = True
        try:
            await create_named(self._store, stream, names, ScalingPolicy())
        except SegmentStoreError as error:
            log.warning("transactions not prepared", extra={"stream": str(stream.id), "error": str(error)})
            is_created = False
        self._crash_points.passed("prepare-transactions/after-segments")
        record = decide_prepared if is_created else decide_discard

        def decide(reader: Reader, context: Context) -> Decision:
            return record(reader, first, context.now)

        decision = await self._journal.propose(first.key, decide)
        is_prepared = self._mine[first]
        if not is_prepared and (decision is None or not decision.events):
            await self._delete(names)
        return is_prepared

    async def _delete(self, names: list[str]) -> None:
        """Delete what was created for a range that another process has discarded."""
        for wait in delays(chance=self._journal.chance):
            try:
                await all_done(self._store.delete_unused_segment(name) for name in names)
                return
            except SegmentStoreError as error:
                log.warning("segments not deleted yet", extra={"segments": len(names), "error": str(error)})
                await asyncio.sleep(wait)
