"""Opens transactions: the decision first, then the segments, then the answer.

The id follows from the request, so whoever handles a request again finds the transaction it has opened, and goes on
from there. The lease begins with the answer: however long the segments take, the client loses nothing of it.
"""

import asyncio
import logging
from functools import partial

from sluice.domain.commands import OpenTransaction
from sluice.domain.config import ScalingPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.decide import decide_ready, opened_by
from sluice.domain.transaction.state import open_transaction, segment_names
from sluice.journal.journal import Journal, JournalError, now_ms
from sluice.segmentstore.errors import SegmentStoreError
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.backoff import delays
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.segments import create_named
from txn_manager import metrics

log = logging.getLogger(__name__)


class Opening:
    """The part of opening that comes after the decision."""

    def __init__(self, journal: Journal, store: SegmentStore, crash_points: CrashPoints) -> None:
        self._journal = journal
        self._store = store
        self._crash_points = crash_points

    async def finish(self, request: str, command: OpenTransaction, appended_at: int) -> None:
        """Create the segments and answer; tried again until it is done or the transaction has ended."""
        key = command.key
        for wait in delays():
            reader = self._journal.reader(key)
            stream = find_stream(reader, command.scope, command.stream)
            transaction = opened_by(reader, stream, request) if stream is not None else None
            if stream is None or transaction is None:
                log.warning("nothing was opened", extra={"request": request, "stream": key})
                return
            try:
                if open_transaction(reader, command.scope, command.stream, transaction) is not None:
                    self._crash_points.passed("open-transaction/before-segments")
                    await self._create_segments(stream, transaction)
                    self._crash_points.passed("open-transaction/after-segments")
                at = max(appended_at, now_ms())
                ready = partial(self._ready, command=command, transaction=transaction, at=at)
                executed = await self._journal.execute(key, request, ready)
                if executed.reply is not None and executed.reply.status == "OK":
                    metrics.OPENED.inc()
                return
            except (SegmentStoreError, JournalError) as error:
                facts = {"request": request, "transaction": transaction, "error": str(error)}
                log.warning("transaction not open yet", extra=facts)
                await asyncio.sleep(wait)

    async def _create_segments(self, stream: Stream, transaction: str) -> None:
        await create_named(self._store, stream, segment_names(stream, transaction).values(), ScalingPolicy())

    @staticmethod
    def _ready(reader: Reader, _context: Context, *, command: OpenTransaction, transaction: str, at: int) -> Decision:
        return decide_ready(reader, command.scope, command.stream, transaction, at)
