"""RPCs on transactions (controller-grpc-api 5.6).

txn-manager decides on opening, pinging and ending one. The state of one, and which have ended, is read from the
view, so that clients may poll as often as they like. The state of one that is ending comes with its end, or a little
later: who polls sees the end when it is there, and asks once instead of every few milliseconds.
"""

from typing import Any

from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import fill_range, stream_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import response_to
from api_gateway.pravega.rpc import trace_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.decision import Reply
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.domain.status import Status
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, OpenTransaction, PingTransaction
from sluice.domain.transaction.state import TransactionState
from sluice.domain.transaction_ids import halves, text_of
from sluice.security.resources import Permission, stream_resource
from sluice.security.tokens import TokenSigner

LONGEST_ANSWER_S = 0.1
"""How long the answer to checkTransactionState waits for a commit or an abort that is under way to end."""

MAX_LISTED = 500
"""How many ended transactions a list has (stream-and-transaction-semantics 6.9)."""

_REFUSALS: dict[Status, type[Exception]] = {
    Status.STREAM_NOT_FOUND: NotFoundError,
    Status.LEASE_OUT_OF_BOUNDS: InvalidArgumentError,
    Status.STREAM_SEALED: IllegalStateError,
    Status.ENDED: IllegalStateError,
    Status.FAILURE: IllegalStateError,
    Status.TOO_MANY_OPEN: OverloadedError,
    Status.TOO_MANY_WAITING: OverloadedError,
}
"""Refusals that the responses have no status for: gRPC says them."""


class TransactionHandlers:
    def __init__(self, reads: Reads, requests: Requests, tokens: TokenSigner) -> None:
        self._reads = reads
        self._requests = requests
        self._tokens = tokens

    def table(self) -> dict[str, Handler]:
        return {
            "createTransaction": self.create,
            "pingTransaction": self.ping,
            "commitTransaction": self.commit,
            "abortTransaction": self.abort,
            "checkTransactionState": self.state,
            "listCompletedTransactions": self.completed,
        }

    async def create(self, request: pb.CreateTxnRequest, context: Context) -> pb.CreateTxnResponse:
        id = stream_of(request.streamInfo)
        command = OpenTransaction(*id, lease_ms=request.lease)
        reply = await self._requests.submit(command, trace_of(context))
        if reply.status != Status.OK:
            raise _refusal(reply)
        high, low = halves(reply.transaction)
        response = pb.CreateTxnResponse(txnId=pb.TxnId(highBits=high, lowBits=low))
        for segment in reply.segments:
            fill_range(response.activeSegments.add(), id, segment)
        response.delegationToken = self._tokens.of(Permission.READ_UPDATE, stream_resource(*id))
        return response

    async def ping(self, request: pb.PingTxnRequest, context: Context) -> Any:
        id = stream_of(request.streamInfo)
        command = PingTransaction(*id, _id_of(request.txnId), lease_ms=request.lease)
        return await self._submit(command, context)

    async def commit(self, request: pb.TxnRequest, context: Context) -> Any:
        id = stream_of(request.streamInfo)
        command = CommitTransaction(
            *id,
            _id_of(request.txnId),
            writer=request.writerId,
            timestamp=request.timestamp,
        )
        return await self._submit(command, context)

    async def abort(self, request: pb.TxnRequest, context: Context) -> Any:
        id = stream_of(request.streamInfo)
        command = AbortTransaction(*id, _id_of(request.txnId))
        return await self._submit(command, context)

    async def state(self, request: pb.TxnRequest, _context: Context) -> pb.TxnState:
        id = stream_of(request.streamInfo).transaction(_id_of(request.txnId))
        found = await self._reads.transaction_state(id, LONGEST_ANSWER_S)
        return pb.TxnState(state=found.value)

    async def completed(self, request: pb.ListCompletedTxnRequest, _context: Context) -> pb.ListCompletedTxnResponse:
        """The last that have ended, the latest first."""
        response = pb.ListCompletedTxnResponse()
        for ended in await self._reads.ended_transactions(stream_of(request.streamInfo), MAX_LISTED):
            high, low = halves(ended.uuid)
            committed = ended.state is TransactionState.COMMITTED
            status = pb.TxnResponse.COMMITTED if committed else pb.TxnResponse.ABORTED
            response.response.add(txnId=pb.TxnId(highBits=high, lowBits=low), status=status)
        return response

    async def _submit(self, command: PingTransaction | CommitTransaction | AbortTransaction, context: Context) -> Any:
        reply = await self._requests.submit(command, trace_of(context))
        if reply.status == Status.TOO_MANY_WAITING:
            raise _refusal(reply)
        return response_to(command, reply, context)


def _id_of(id: pb.TxnId) -> str:
    return text_of(id.highBits, id.lowBits)


def _refusal(reply: Reply) -> Exception:
    return _REFUSALS[reply.status](reply.reason)
