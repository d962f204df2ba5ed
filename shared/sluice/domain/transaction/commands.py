"""The commands of transactions."""

from enum import Enum

from sluice.domain.ids import TransactionId
from sluice.domain.stream.commands import StreamCommand


class OpenTransaction(StreamCommand, frozen=True):
    """Open a transaction that lives `lease_ms` after each sign of life."""

    lease_ms: int


class TransactionCommand(StreamCommand, frozen=True):
    """A command on one transaction, named by the UUID that is its id."""

    transaction: str

    @property
    def transaction_id(self) -> TransactionId:
        return TransactionId(self.scope, self.stream, self.transaction)

    @property
    def key(self) -> str:
        return self.transaction_id.key

    @property
    def aggregate(self) -> str:
        return self.transaction_id.aggregate


class PingTransaction(TransactionCommand, frozen=True):
    """The transaction is still wanted, for `lease_ms` from when this was appended."""

    lease_ms: int


class CommitTransaction(TransactionCommand, frozen=True):
    """`timestamp` is the writer's own time; a `writer` of "" or a time of -2^63 notes none."""

    writer: str = ""
    timestamp: int = 0


class AbortReason(Enum):
    """Why a transaction was aborted: its client wanted it, its lease ran out, its stream was sealed, or a back-up in
    which it was open was restored.
    """

    USER = "user"
    LEASE = "lease"
    SEAL = "seal"
    RESTORE = "restore"


class AbortTransaction(TransactionCommand, frozen=True):
    """With `version` it holds only while the transaction has that version: it was not pinged since."""

    reason: AbortReason = AbortReason.USER
    version: int | None = None


class CheckLease(TransactionCommand, frozen=True):
    """The lease seems to have run out. Passes every queue that may hold a sign of life before it becomes an abort."""


Command = OpenTransaction | PingTransaction | CommitTransaction | AbortTransaction | CheckLease
