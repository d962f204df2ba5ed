"""A transaction: events that become readable all together, when it is committed, or never.

They are written to segments of the transaction's own, which a commit merges into those of the stream. The controller
aborts a transaction whose lease runs out, so a task pings it until it ends. Concurrency: one task uses a transaction;
any number of transactions side by side.
"""

import asyncio
import logging
import math
from collections.abc import Iterable
from enum import Enum
from types import TracebackType
from typing import Self
from uuid import UUID

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import transaction_segment_name
from sluice.domain.transaction_ids import epoch_of, halves, text_of
from sluice.pravega import SegmentStore
from sluice_client.attempts import Patience
from sluice_client.controller import ControllerApi, stream_message
from sluice_client.errors import ClientError, Refused, TransactionEnded
from sluice_client.event_writer import EventWriter, Ranges
from sluice_client.names import check_stream

DEFAULT_LEASE_S = 90.0
_NO_TIMESTAMP = -(2**63)
_log = logging.getLogger(__name__)


class TransactionStatus(Enum):
    """What has become of a transaction, in Pravega's words."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"
    UNKNOWN = "UNKNOWN"
    """The controller knows nothing of it, or not any more: a day after its end it is forgotten."""


class Transaction:
    """An open transaction. As an async context manager it is committed at the end of the block, aborted on an error.

    `Client.begin_transaction` makes one. `writer_id` says whose watermarks a commit with a timestamp counts for.
    """

    def __init__(
        self,
        controller: ControllerApi,
        store: SegmentStore,
        stream: tuple[str, str],
        id: UUID,
        ranges: Ranges,
        *,
        lease_s: float,
        patience: Patience,
        writer_id: str = "",
    ) -> None:
        self.id = id
        self._controller = controller
        self._name = f"{'/'.join(stream)} {id}"
        self._request = pb.TxnRequest(
            streamInfo=stream_message(*stream), txnId=_id_message(id), writerId=writer_id, timestamp=_NO_TIMESTAMP
        )
        self._lease_ms = round(lease_s * 1000)
        self._ranges: Ranges | None = ranges
        self._writer = EventWriter(store, self._ask, patience.deadline_s)
        self._ended = False
        """It is known to be open no more."""
        self._committing = False
        """All is stored, and the controller was called to commit it, once or more often."""
        self._answered = False
        """The controller has answered a commit or an abort that was called here, so the caller knows how it ended."""
        self._pinger = asyncio.create_task(self._ping(), name=f"ping {self._name}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                await self._abort_after(error)
            elif not self._answered:
                await self.commit()
        finally:
            await self._stop()

    def add(self, key: str | None, data: bytes) -> None:
        """Takes an event; it is stored when the next `flush` or `commit` returns. Raises EntryTooLarge.

        Raises TransactionEnded if it was ended here, or a ping has found out that it is no longer open.
        """
        self._check_open()
        self._writer.add(key, data)

    async def flush(self) -> None:
        """Stores all that was added, for this transaction. Raises as `EventWriter.flush`, and TransactionEnded."""
        self._check_open()
        await self._writer.flush()

    async def commit(self, timestamp_ms: int | None = None) -> None:
        """Stores all that was added and decides that it is to be read; it may be so a little later.

        `timestamp_ms` is the writer's time. Raises as `flush`. After any other error than TransactionEnded, or when
        cancelled, it may be called again: to commit what is committed does no harm.
        """
        if not self._committing:
            await self.flush()
            self._request.timestamp = _NO_TIMESTAMP if timestamp_ms is None else timestamp_ms
            self._committing = True
        answer = await self._controller.call(lambda stub: stub.commitTransaction, self._request)
        self._answered = True
        await self._stop()
        if answer.status != pb.TxnStatus.SUCCESS:
            raise TransactionEnded(f"{self._name}: commit {pb.TxnStatus.Status.Name(answer.status)}")

    async def abort(self) -> None:
        """Decides that nothing of it is ever read.

        Raises Refused if it was committed, or is unknown; TransactionEnded as `add`.
        """
        if self._ended:
            raise TransactionEnded(self._name)
        answer = await self._controller.call(lambda stub: stub.abortTransaction, self._request)
        self._answered = True
        await self._stop()
        if answer.status != pb.TxnStatus.SUCCESS:
            raise Refused(f"{self._name}: abort {pb.TxnStatus.Status.Name(answer.status)}")

    async def status(self) -> TransactionStatus:
        """What has become of it; until it is COMMITTED, what it holds need not be readable."""
        state = (await self._controller.call(lambda stub: stub.checkTransactionState, self._request)).state
        return TransactionStatus(pb.TxnState.State.Name(state))

    async def ping(self) -> bool:
        """Begins the lease anew, as a task does by itself as long as the transaction is open; False: it has ended."""
        request = pb.PingTxnRequest(
            streamInfo=self._request.streamInfo, txnId=self._request.txnId, lease=self._lease_ms
        )
        status = (await self._controller.call(lambda stub: stub.pingTransaction, request)).status
        if status in (pb.PingTxnStatus.COMMITTED, pb.PingTxnStatus.ABORTED, pb.PingTxnStatus.UNKNOWN):
            return False
        if status != pb.PingTxnStatus.OK:
            raise Refused(f"{self._name}: ping {pb.PingTxnStatus.Status.Name(status)}")
        return True

    async def _ping(self) -> None:
        lease_s = self._lease_ms / 1000
        while not self._ended:
            # As often as Java's client does: the more often the shorter the lease (stream-and-transaction-semantics).
            await asyncio.sleep(lease_s / max(1.0, math.sqrt(lease_s)))
            try:
                self._ended = not await self.ping()
            except ClientError as error:
                _log.warning("%s", error)

    async def _ask(self) -> Ranges:
        """The segments of the transaction, once: when one of them is gone there are no others."""
        ranges, self._ranges = self._ranges, None
        if ranges is None:
            self._ended = True
            raise TransactionEnded(self._name)
        return ranges

    async def _abort_after(self, error: BaseException) -> None:
        if self._ended:
            return
        try:
            await self.abort()
        except ClientError as failure:
            # The lease ends it all the same.
            error.add_note(f"{failure}")

    async def _stop(self) -> None:
        self._ended = True
        self._pinger.cancel()
        await asyncio.gather(self._pinger, return_exceptions=True)

    def _check_open(self) -> None:
        if self._ended or self._committing:
            raise TransactionEnded(self._name)


async def begin(controller: ControllerApi, scope: str, stream: str, lease_s: float) -> tuple[UUID, Ranges]:
    """A new transaction, and its segments behind the upper ends of their ranges. Raises StreamMissing."""
    check_stream(scope, stream)
    request = pb.CreateTxnRequest(streamInfo=stream_message(scope, stream), lease=round(lease_s * 1000))
    answer = await controller.call(lambda stub: stub.createTransaction, request)
    id = UUID(text_of(answer.txnId.highBits, answer.txnId.lowBits))
    return id, _ranges(scope, stream, id, answer.activeSegments)


async def resume(controller: ControllerApi, scope: str, stream: str, id: UUID) -> Ranges:
    """The segments of a transaction that another process may have begun. Raises StreamMissing."""
    check_stream(scope, stream)
    request = pb.GetEpochSegmentsRequest(streamInfo=stream_message(scope, stream), epoch=epoch_of(str(id)))
    answer = await controller.call(lambda stub: stub.getEpochSegments, request)
    return _ranges(scope, stream, id, answer.segmentRanges)


def _ranges(scope: str, stream: str, id: UUID, segments: Iterable[pb.SegmentRange]) -> Ranges:
    high, low = halves(str(id))
    return sorted(
        (found.maxKey, transaction_segment_name(scope, stream, found.segmentId.segmentId, high, low))
        for found in segments
    )


def _id_message(id: UUID) -> pb.TxnId:
    high, low = halves(str(id))
    return pb.TxnId(highBits=high, lowBits=low)
