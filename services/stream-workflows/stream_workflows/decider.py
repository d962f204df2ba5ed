"""Has a request decided, however long it takes: views that lag, workflows that run, a scope that may be deleted.

A request that waits is decided anew when the view shows what it waits for. A truncation rests on the lengths of
segments, which the segment stores say. They only grow, so a cut that is within them stays so.
"""

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from sluice.domain import registry
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision
from sluice.domain.errors import BusyError, LengthsUnknownError, ScopeBusyError, ViewBehindError
from sluice.domain.scope.state import find_scope, is_deleted_plainly
from sluice.domain.stream.commands import AddSubscriber, DeleteStream
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import Journal, JournalError
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import RecordTooLargeError
from sluice.engine.retry import delays
from sluice.engine.step import all_done
from sluice.pravega.errors import AccessDenied, Permanent, SegmentStoreError
from sluice.pravega.store import SegmentStore
from stream_workflows.fairness import ExclusiveCommand, Fairness

log = logging.getLogger(__name__)

RECHECK_S = 10.0
"""After so long a request is decided anew, should the view not have shown what it waits for."""


class Decider:
    def __init__(self, journal: Journal, fairness: Fairness, store: SegmentStore) -> None:
        self._journal = journal
        self._fairness = fairness
        self._store = store

    async def decide(self, command: Command, request: RequestFacts) -> None:
        """Return when the command of the request is decided; one that is asked again anyway may be left undecided.

        Raises JournalError for one that no record can hold, Permanent if a segment that it names cannot be measured.
        """
        caught_up = False
        measured: dict[int, int] = {}

        def decided(reader: GuardedReader, context: Context) -> Decision:
            known = msgspec.structs.replace(context, caught_up=caught_up, measured=measured)
            return registry.decide(reader, command, known)

        for wait in delays(chance=self._journal.chance):
            try:
                await self._journal.propose(command.key, decided, request)
                return
            except ViewBehindError as error:
                reached = await self._reached(error, wait)
                if isinstance(command, AddSubscriber) and not reached:
                    # Others' reports stand behind it, and its group asks again.
                    return
                caught_up = caught_up or reached
            except LengthsUnknownError as error:
                measured |= await self._lengths(error.segments, command, wait)
            except (JournalError, BusyError) as error:
                if isinstance(error.__cause__, RecordTooLargeError):
                    raise
                log.info("request waits", extra={"request": request.id, "error": str(error)})
                await self._wait_for(error, command, wait)

    async def _reached(self, behind: ViewBehindError, wait: float) -> bool:
        """Return when the views may be where they have to be; whether they hold all that was acknowledged before."""
        position = behind.position
        try:
            if position is None:
                await self._journal.barrier({self._journal.partition_of(key) for key in behind.keys})
                return True
            for key in behind.keys:
                await self._journal.until(key, lambda view: view.next_offset >= position, RECHECK_S)
        except JournalError as error:
            log.warning("request waits for the journal", extra={"keys": list(behind.keys), "error": str(error)})
            await asyncio.sleep(wait)
        return False

    async def _lengths(self, segments: Mapping[int, str], command: Command, wait: float) -> dict[int, int]:
        """The present lengths of segments in bytes; nothing, after a while, if a store does not answer.

        Raises Permanent.
        """
        try:
            infos = await all_done(self._store.segment_info(name) for name in segments.values())
        except SegmentStoreError as error:
            # A key that differs is put right by an operator, and until then it is no fault of the request.
            if isinstance(error, Permanent) and not isinstance(error, AccessDenied):
                raise
            log.warning("request waits for a segment store", extra={"key": command.key, "error": str(error)})
            if isinstance(command, ExclusiveCommand):
                await self._fairness.record_queued(command)
            await asyncio.sleep(wait)
            return {}
        return {s: info.length for s, info in zip(segments, infos, strict=True)}

    async def _wait_for(self, error: Exception, command: Command, wait: float) -> None:
        """Return when it may be worth another attempt."""
        try:
            if isinstance(error, ScopeBusyError):
                scope = error.scope
                await self._journal.until(
                    scope, lambda view: not is_deleted_plainly(find_scope(view, scope)), RECHECK_S
                )
                return
            if isinstance(error, BusyError) and isinstance(command, ExclusiveCommand | DeleteStream):
                await self._fairness.wait(command)
                return
        except JournalError as problem:
            log.warning("journal away", extra={"key": command.key, "error": str(problem)})
        await asyncio.sleep(wait)
