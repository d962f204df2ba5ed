"""The commands that travel on the request topics: what somebody wants done, in the imperative.

Each names the key it belongs to and the aggregate it is about; commands of one key are handled one after the other.
What is created in a scope is asked for under its own key.
"""

from enum import Enum

import msgspec

from sluice.domain.config import ReaderGroupConfig, RetentionPolicy, StreamConfig, TableConfig
from sluice.domain.names import (
    group_aggregate,
    key_of,
    scope_aggregate,
    stream_aggregate,
    table_aggregate,
    transaction_aggregate,
)


class ResourceKind(Enum):
    """What a name in a scope stands for; names of different kinds do not meet."""

    STREAM = "stream"
    READER_GROUP = "reader-group"
    TABLE = "table"

    def aggregate(self, scope: str, name: str) -> str:
        return _AGGREGATES[self](scope, name)


_AGGREGATES = {
    ResourceKind.STREAM: stream_aggregate,
    ResourceKind.READER_GROUP: group_aggregate,
    ResourceKind.TABLE: table_aggregate,
}


class ScopeCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the scope's key."""

    scope: str

    @property
    def key(self) -> str:
        return self.scope

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.scope)


class StreamCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the stream's key."""

    scope: str
    stream: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return stream_aggregate(self.scope, self.stream)


class GroupCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the reader group's key."""

    scope: str
    group: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return group_aggregate(self.scope, self.group)


class TableCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the key-value table's key."""

    scope: str
    table: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return table_aggregate(self.scope, self.table)


class CreateScope(ScopeCommand, frozen=True):
    pass


class DeleteScope(ScopeCommand, frozen=True):
    """Delete the scope if nothing is in it."""


class DeleteScopeRecursive(ScopeCommand, frozen=True):
    """Fence the scope, then delete everything in it, then the scope."""


class CreateStream(StreamCommand, frozen=True):
    config: StreamConfig


class CreateReaderGroup(GroupCommand, frozen=True):
    config: ReaderGroupConfig


class CreateTable(TableCommand, frozen=True):
    config: TableConfig


Create = CreateStream | CreateReaderGroup | CreateTable
"""The id of the request is the creation id of what comes of it: no two lives of a name have the same."""


class UpdateStream(StreamCommand, frozen=True):
    config: StreamConfig


class TruncateStream(StreamCommand, frozen=True):
    """`cut` maps segment ids to byte offsets, -1 for a segment not yet reached.

    `policy` is the retention policy that asks for it: if the stream has another one by now, nothing is truncated.
    """

    cut: dict[int, int]
    policy: RetentionPolicy | None = None


class ScaleStream(StreamCommand, frozen=True):
    """Replace segments of the active epoch by new ones that tile the same key ranges; `at` in epoch ms."""

    seals: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]
    at: int


class SealStream(StreamCommand, frozen=True):
    """`creation_id` names the life of the stream that is meant; "" is whichever."""

    creation_id: str = ""


class DeleteStream(StreamCommand, frozen=True):
    """`creation_id` names the life of the stream that is meant; "" is whichever."""

    creation_id: str = ""


class AddSubscriber(StreamCommand, frozen=True):
    """Keep what the reader group `subscriber` (scope/name) has yet to consume; `group_id` is the group's UUID.

    `creation_id` names the life of the stream that is meant; "" is whichever.
    """

    subscriber: str
    group_id: str
    generation: int
    creation_id: str = ""


class RemoveSubscriber(StreamCommand, frozen=True):
    """Forget the reader group, unless one with another id has taken its name; "" is any.

    `creation_id` names the life of the stream that is meant; "" is whichever.
    """

    subscriber: str
    generation: int
    group_id: str = ""
    creation_id: str = ""


class UpdateSubscriberCut(StreamCommand, frozen=True):
    """The reader group has consumed everything before `cut`."""

    subscriber: str
    group_id: str
    generation: int
    cut: dict[int, int]


class NoteWriterTime(StreamCommand, frozen=True):
    """A writer's own time at a position: everything it will write from here on is at or after `timestamp`."""

    writer: str
    timestamp: int
    position: dict[int, int]


class RemoveWriter(StreamCommand, frozen=True):
    writer: str


class DecisionKind(Enum):
    """What is decided on from reports."""

    SCALE = "scale"
    RETENTION = "retention"


class RecordDecision(StreamCommand, frozen=True):
    """What was decided on the stream of this creation at `at` (epoch ms), and why; `code` names the case."""

    creation_id: str
    kind: DecisionKind
    code: str
    reason: str
    at: int


class OpenTransaction(StreamCommand, frozen=True):
    """Open a transaction that lives `lease_ms` after each sign of life."""

    lease_ms: int


class TransactionCommand(StreamCommand, frozen=True):
    """A command on one transaction, named by the UUID that is its id."""

    transaction: str

    @property
    def key(self) -> str:
        return key_of(stream_aggregate(self.scope, self.stream))

    @property
    def aggregate(self) -> str:
        return transaction_aggregate(self.scope, self.stream, self.transaction)


class PingTransaction(TransactionCommand, frozen=True):
    """The transaction is still wanted, for `lease_ms` from when this was appended."""

    lease_ms: int


class CommitTransaction(TransactionCommand, frozen=True):
    """`writer` "" notes no time; `timestamp` is the writer's own time."""

    writer: str = ""
    timestamp: int = 0


class AbortReason(Enum):
    """Why a transaction was aborted: its client wanted it, nobody pinged it, or its stream was sealed."""

    USER = "user"
    LEASE = "lease"
    SEAL = "seal"


class AbortTransaction(TransactionCommand, frozen=True):
    """With `version` it holds only while the transaction has that version: nothing was heard of it since."""

    reason: AbortReason = AbortReason.USER
    version: int | None = None


class CheckLease(TransactionCommand, frozen=True):
    """The lease seems to have run out. Passes every queue that may hold a sign of life before it becomes an abort."""


class UpdateReaderGroup(GroupCommand, frozen=True):
    """`config.generation` and `config.id` must be the stored ones."""

    config: ReaderGroupConfig


class DeleteReaderGroup(GroupCommand, frozen=True):
    """`id` None deletes the group whatever its id; `creation_id` names the life that is meant, "" is whichever."""

    id: str | None = None
    creation_id: str = ""


class DeleteTable(TableCommand, frozen=True):
    """`creation_id` names the life of the table that is meant; "" is whichever."""

    creation_id: str = ""


class RetryWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Have the aggregate's workflow try its step again now instead of waiting any longer."""

    aggregate: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


class CancelWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """End the aggregate's workflow as if it had never begun, if it has not passed its point of no return.

    `workflow` is the id of the one that is meant; a later one of the aggregate is left alone.
    """

    aggregate: str
    workflow: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


class Host(msgspec.Struct, frozen=True, order=True):
    """Where a segment store listens, exactly as it registered itself."""

    address: str
    port: int


class Heartbeat(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A service instance is alive; `endpoints` maps a protocol ("grpc", "rest") to host:port."""

    service: str
    instance: str
    endpoints: dict[str, str]

    @property
    def key(self) -> str:
        return "cluster"

    @property
    def aggregate(self) -> str:
        return "cluster"


Command = (
    CreateScope
    | DeleteScope
    | DeleteScopeRecursive
    | CreateStream
    | CreateReaderGroup
    | CreateTable
    | UpdateStream
    | TruncateStream
    | ScaleStream
    | SealStream
    | DeleteStream
    | AddSubscriber
    | RemoveSubscriber
    | UpdateSubscriberCut
    | NoteWriterTime
    | RemoveWriter
    | RecordDecision
    | OpenTransaction
    | PingTransaction
    | CommitTransaction
    | AbortTransaction
    | CheckLease
    | UpdateReaderGroup
    | DeleteReaderGroup
    | DeleteTable
    | RetryWorkflow
    | CancelWorkflow
    | Heartbeat
)
