"""The periodic work on streams: each job looks at intervals at the streams that need it, and only at those.

It is done for the streams of the partitions that this instance owns, so it spreads with the consumer group. A round's
work begins behind the read barrier. One that goes on for streams which meanwhile have another owner does no harm: what
it appends to the journal is void if it is out of date, what it appends to segments names the length it expects, and
what it sends to topics may be there twice. One task for all jobs; each job has its own rhythm and its own bound on how
many streams it works on at a time. Whatever fails is logged, counted, and tried again in the next round.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Protocol

from sluice.domain.ids import StreamId
from sluice.engine.journal import Journal, JournalError
from sluice.engine.ports import SendError
from sluice.exceptions import in_words
from sluice.pravega.errors import SegmentStoreError
from stream_workflows.metrics import PERIODIC_FAILURES, PERIODIC_SECONDS

log = logging.getLogger(__name__)

AT_ONCE = 32
Owned = Callable[[], Iterable[int]]
Prepare = Callable[[Collection[int]], Awaitable[None]]


class Job(Protocol):
    """`due` names the streams of some partitions that need work now, `work` does it for one of them."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float: ...

    def due(self, partitions: frozenset[int]) -> Collection[StreamId]: ...

    def work(self, stream: StreamId) -> Awaitable[None]: ...


class Periodic:
    """Runs jobs for the partitions that `owned` says are ours at the moment, once `prepare` has seen to them."""

    def __init__(
        self,
        journal: Journal,
        owned: Owned,
        jobs: Collection[Job],
        at_once: int = AT_ONCE,
        prepare: Prepare | None = None,
    ) -> None:
        self._journal = journal
        self._owned = owned
        self._jobs = jobs
        self._at_once = at_once
        self._prepare = prepare

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            for job in self._jobs:
                group.create_task(self._repeat(job), name=job.name)

    async def _repeat(self, job: Job) -> None:
        while True:
            await self.round(job)
            await asyncio.sleep(job.interval_s)

    async def round(self, job: Job) -> None:
        """Work once on every stream that is due. A job that has no partitions is asked, too, and drops what it held."""
        # Those of the journal that have stopped show elsewhere, and are no reason to leave the others alone.
        owned = frozenset(self._owned()).difference(self._journal.failed)
        with PERIODIC_SECONDS.labels(job.name).time():
            try:
                if self._prepare is not None:
                    await self._prepare(owned)
                due = job.due(owned)
                if due:
                    await self._journal.barrier(owned)
            except Exception as error:  # noqa: BLE001 - logged and counted; the next round comes
                self._log_failure(job, None, error)
                return
            streams = iter(due)
            await asyncio.gather(*(self._some(job, streams) for _ in range(min(len(due), self._at_once))))

    async def _some(self, job: Job, streams: Iterator[StreamId]) -> None:
        """Take one stream after the other, as long as there are some that no worker has taken."""
        for stream in streams:
            try:
                await job.work(stream)
            except Exception as error:  # noqa: BLE001 - logged and counted; the next round comes
                self._log_failure(job, stream, error)

    def _log_failure(self, job: Job, stream: StreamId | None, error: Exception) -> None:
        PERIODIC_FAILURES.labels(job.name).inc()
        foreseen = isinstance(error, SegmentStoreError | JournalError | SendError)
        facts = {"job": job.name, "stream": str(stream or ""), "error": in_words(error)}
        log.warning("periodic work failed", extra=facts, exc_info=None if foreseen else error)
