"""Opens transactions: the decision, the segments, then the answer.

The id follows from the request, so whoever handles a request again finds the transaction it has opened, and goes on
from there. The lease begins with the answer: however long the segments take, the client loses nothing of it.

The segments are created while the decision is on its way to the journal, because both take time and the names can be
those of no other transaction. If it is decided otherwise in the end, they are deleted.
"""

import asyncio
import logging

from sluice.domain.commands import OpenTransaction
from sluice.domain.config import ScalingPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.events import TransactionOpened
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction.decide import Limits, decide_open, decide_ready, opened_by
from sluice.domain.transaction.state import (
    Transaction,
    TransactionState,
    find_transaction,
    open_transaction,
    segment_names,
)
from sluice.journal.group_commit import GroupCommit
from sluice.journal.journal import Decide, Journal, JournalError, now_ms
from sluice.journal.partition_view import GuardedReader
from sluice.messaging.requests import Request
from sluice.segmentstore.errors import SegmentStoreError
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.backoff import delays
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.segments import create_named
from sluice.workflows.steps import all_done
from txn_manager import metrics

log = logging.getLogger(__name__)


class Opening:
    def __init__(
        self, journal: Journal, group: GroupCommit, store: SegmentStore, limits: Limits, crash_points: CrashPoints
    ) -> None:
        self._journal = journal
        self._group = group
        self._store = store
        self._limits = limits
        self._crash_points = crash_points

    async def open(self, request: Request, command: OpenTransaction, appended_at: int) -> None:
        """Open a transaction and answer; tried again until it is done or the transaction has ended."""

        def decide(reader: Reader, context: Context) -> Decision:
            return decide_open(reader, command, context, self._limits)

        foreseen = self._foresee(request, command, decide)
        names = self._names(command, foreseen)
        decided = self._group.submit(command.key, request.id, appended_at, decide)
        creating = asyncio.ensure_future(self._create_segments(command, names)) if names else None
        refused = (await decided).reply is not None
        self._crash_points.passed("open-transaction/decided")
        transaction = self._opened_by(request, command)
        as_foreseen = foreseen == transaction and names == self._names(command, transaction)
        is_open = False
        if not refused:
            under_way = creating if as_foreseen else None
            is_open = await self._finish(request, command, transaction, under_way, appended_at)
        elif transaction:
            # It was opened before its stream was sealed, and handled once more since.
            await self._clear(command, transaction, self._names(command, transaction))
        if creating is not None and not (is_open and as_foreseen):
            await asyncio.gather(creating, return_exceptions=True)
            await self._clear(command, foreseen, names)

    def _foresee(self, request: Request, command: OpenTransaction, decide: Decide) -> str:
        """The id that the transaction will have if nothing changes until it is decided; empty if there will be none."""
        reader = GuardedReader(self._journal.reader(command.key))
        foreseen = decide(reader, Context(now_ms(), request.id)).events
        return next((e.transaction for e in foreseen if isinstance(e, TransactionOpened)), "")

    def _opened_by(self, request: Request, command: OpenTransaction) -> str:
        """The id of the transaction; empty if its stream has gone meanwhile."""
        reader = self._journal.reader(command.key)
        stream = find_stream(reader, command.scope, command.stream)
        return opened_by(reader, stream, request.id) or "" if stream is not None else ""

    async def _finish(
        self,
        request: Request,
        command: OpenTransaction,
        transaction: str,
        creating: "asyncio.Future[None] | None",
        appended_at: int,
    ) -> bool:
        """Answer once the segments exist; say whether the transaction is open then."""
        names = self._names(command, transaction)
        for wait in delays():
            view = self._journal.reader(command.key)
            if open_transaction(view, command.scope, command.stream, transaction) is None:
                break
            try:
                await (creating or self._create_segments(command, names))
                break
            except SegmentStoreError as error:
                facts = {"request": request.id, "transaction": transaction, "error": str(error)}
                log.warning("transaction not open yet", extra=facts)
                creating = None
                await asyncio.sleep(wait)
        self._crash_points.passed("open-transaction/after-segments")

        def ready(reader: Reader, context: Context) -> Decision:
            return decide_ready(reader, command.scope, command.stream, transaction, context.now)

        decision = await self._group.submit(command.key, request.id, appended_at, ready)
        if decision.events:
            metrics.OPENED.inc()
        is_open = decision.reply is not None and decision.reply.status == "OK"
        if not is_open:
            await self._clear(command, transaction, names)
        return is_open

    def _names(self, command: OpenTransaction, transaction: str) -> tuple[str, ...]:
        """Of the transaction's segments. A later stream of the name has others, so they are put together only once."""
        stream = find_stream(self._journal.reader(command.key), command.scope, command.stream)
        return tuple(segment_names(stream, transaction).values()) if stream is not None and transaction else ()

    async def _create_segments(self, command: OpenTransaction, names: tuple[str, ...]) -> None:
        stream = find_stream(self._journal.reader(command.key), command.scope, command.stream)
        if stream is not None:
            await create_named(self._store, stream, names, ScalingPolicy())

    async def _clear(self, command: OpenTransaction, transaction: str, names: tuple[str, ...]) -> None:
        """Delete what was created for a transaction that did not come about, or created once more when it was aborted.

        Never that of a committed one: a segment store that is told to delete a segment soon after it has merged it
        loses the container (the merge in its long-term storage finds nothing). What is left of those is empty.
        """

        def is_decided(view: Reader) -> bool:
            return not isinstance(find_transaction(view, command.scope, command.stream, transaction), Transaction)

        for wait in delays():
            try:
                await self._journal.until(command.key, is_decided)
                found = find_transaction(self._journal.reader(command.key), command.scope, command.stream, transaction)
                if found is not None and found.state is TransactionState.COMMITTED:
                    return
                await all_done(self._store.delete_segment(name) for name in names)
                break
            except (SegmentStoreError, JournalError) as error:
                log.warning("segments not deleted yet", extra={"transaction": transaction, "error": str(error)})
                await asyncio.sleep(wait)
