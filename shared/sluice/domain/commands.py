"""The commands that travel on the request topics: what somebody wants done, in the imperative.

Each names the key it belongs to and the aggregate it is about; commands of one key are handled one after the other.
What is created in a scope is asked of the scope first, which reserves the name (`CreateStream`), and then of the
thing's own key (`CreateReserved`).
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


class NameKind(Enum):
    """What a name in a scope stands for; names of different kinds do not meet."""

    STREAM = "stream"
    READER_GROUP = "reader-group"
    TABLE = "table"

    def aggregate(self, scope: str, name: str) -> str:
        return _AGGREGATES[self](scope, name)


_AGGREGATES = {
    NameKind.STREAM: stream_aggregate,
    NameKind.READER_GROUP: group_aggregate,
    NameKind.TABLE: table_aggregate,
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


class CreateScope(ScopeCommand, frozen=True):
    pass


class DeleteScope(ScopeCommand, frozen=True):
    pass


class DeleteScopeRecursive(ScopeCommand, frozen=True):
    """Fence the scope, then delete everything in it, then the scope."""


class CreateStream(ScopeCommand, frozen=True):
    stream: str
    config: StreamConfig

    @property
    def kind(self) -> NameKind:
        return NameKind.STREAM

    @property
    def name(self) -> str:
        return self.stream


class CreateReaderGroup(ScopeCommand, frozen=True):
    group: str
    config: ReaderGroupConfig

    @property
    def kind(self) -> NameKind:
        return NameKind.READER_GROUP

    @property
    def name(self) -> str:
        return self.group


class CreateTable(ScopeCommand, frozen=True):
    table: str
    config: TableConfig

    @property
    def kind(self) -> NameKind:
        return NameKind.TABLE

    @property
    def name(self) -> str:
        return self.table


Create = CreateStream | CreateReaderGroup | CreateTable


class ReleaseName(ScopeCommand, frozen=True):
    """The thing of that incarnation is going: drop its name and those of the streams that came with it."""

    kind: NameKind
    name: str
    incarnation: str


class CreateCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command on a creation that is handled under the key of the thing to come."""

    create: Create

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return self.create.kind.aggregate(self.create.scope, self.create.name)


class CreateReserved(CreateCommand, frozen=True):
    """Create what the scope has reserved a name for; `incarnation` is the id of the request that asked."""

    incarnation: str
    created_at: int


class JoinCreation(CreateCommand, frozen=True):
    """The name is held by another request: answer once its thing is there, or go back if it went meanwhile.

    `again`: the creation has come again, so nothing new may be reserved for it. `held` is the incarnation that holds
    the name, if that one was passed on just before, because nothing was there. `asked_at` is when the broker appended
    the creation, epoch ms.
    """

    again: bool = False
    held: str = ""
    asked_at: int = 0


class ResumeCreation(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A creation that had joined another one goes back to the scope: what it waited for is not there.

    `again`, `held` and `asked_at` are those of the JoinCreation.
    """

    create: Create
    again: bool = False
    held: str = ""
    asked_at: int = 0

    @property
    def key(self) -> str:
        return self.create.scope

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.create.scope)


PassedOn = CreateReserved | JoinCreation | ResumeCreation
"""What a creation becomes on its way between the scope and the thing."""


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
    pass


class DeleteStream(StreamCommand, frozen=True):
    pass


class AddSubscriber(StreamCommand, frozen=True):
    """Keep what the reader group `subscriber` (scope/name) has yet to consume; `group_id` is the group's UUID."""

    subscriber: str
    group_id: str
    generation: int


class RemoveSubscriber(StreamCommand, frozen=True):
    """Forget the reader group, unless one with another id has taken its name; "" is any."""

    subscriber: str
    generation: int
    group_id: str = ""


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


class NoteDecision(StreamCommand, frozen=True):
    """What was decided on the stream of this incarnation at `at` (epoch ms), and why; `code` names the case."""

    incarnation: str
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
    """`id` None deletes the group whatever its id."""

    id: str | None = None


class DeleteTable(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    scope: str
    table: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return table_aggregate(self.scope, self.table)


class KickWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Have the aggregate's workflow try its step again now instead of waiting any longer."""

    aggregate: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


class CancelWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """End the aggregate's workflow as if it had never begun, if it has not passed its point of no return.

    `workflow` is the id of the one that is meant, so that this does nothing to a later one when it is delivered again;
    empty: whichever runs.
    """

    aggregate: str
    workflow: str = ""

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
    | ReleaseName
    | CreateReserved
    | JoinCreation
    | ResumeCreation
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
    | NoteDecision
    | OpenTransaction
    | PingTransaction
    | CommitTransaction
    | AbortTransaction
    | CheckLease
    | UpdateReaderGroup
    | DeleteReaderGroup
    | DeleteTable
    | KickWorkflow
    | CancelWorkflow
    | Heartbeat
)
