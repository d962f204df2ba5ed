"""The events of the journal: what became true, in the past tense.

An event names the aggregate it touches. Folding events in log order is the only way state comes about, so a type or
field that was released keeps its meaning for ever.
"""

import msgspec

from sluice.domain.commands import AbortReason, DecisionKind, Host
from sluice.domain.config import ReaderGroupConfig, RetentionPolicy, StreamConfig, TableConfig
from sluice.domain.names import (
    commits_aggregate,
    fences_aggregate,
    group_aggregate,
    scope_aggregate,
    stream_aggregate,
    table_aggregate,
    transaction_aggregate,
)


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A segment's id (creation epoch in the high 32 bits, number in the low) and its key range [low, high)."""

    id: int
    low: float
    high: float


class ScopeEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.scope)


class StreamEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str

    @property
    def aggregate(self) -> str:
        return stream_aggregate(self.scope, self.stream)


class ClusterEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    @property
    def aggregate(self) -> str:
        return "cluster"


class ScopeCreated(ScopeEvent, frozen=True):
    creation_id: str
    at: int


class ScopeDeletionStarted(ScopeEvent, frozen=True):
    """Whoever sees this creates nothing in the scope before its end.

    With `recursive` everything in it is being deleted, else it goes only if nothing is in it.
    """

    recursive: bool = False
    request: str | None = None
    at: int = 0


class ScopeDeleted(ScopeEvent, frozen=True):
    """Nothing is in the scope any more, and the scope is gone."""


class ScopeKept(ScopeEvent, frozen=True):
    """The scope was to be deleted, but something is in it."""


class FenceRaised(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Whoever creates something in the partition of `partition_key` has folded that of `behind` up to `position`."""

    partition_key: str
    behind: str
    position: int

    @property
    def aggregate(self) -> str:
        return fences_aggregate(self.partition_key)


class StreamCreationStarted(StreamEvent, frozen=True):
    """From here on the stream exists in state CREATING; its segments are the ones of epoch 0."""

    creation_id: str
    config: StreamConfig
    created_at: int
    segments: tuple[Segment, ...]
    request: str | None = None
    at: int = 0


class StreamCreated(StreamEvent, frozen=True):
    pass


class Replacement(msgspec.Struct, frozen=True, omit_defaults=True):
    """The segments of the active epoch that go and those that come for them, from `at` (epoch ms) on."""

    seals: tuple[int, ...]
    creates: tuple[Segment, ...]
    at: int


class StreamUpdateStarted(StreamEvent, frozen=True):
    """The new configuration is visible at once; the segment stores have yet to learn the scaling policy.

    A policy that asks for another number of segments replaces all active ones.
    """

    config: StreamConfig
    replacement: Replacement | None = None
    request: str | None = None
    at: int = 0


class StreamUpdated(StreamEvent, frozen=True):
    """The update is done; with `config` it began and ended in this one record."""

    config: StreamConfig | None = None
    sealed_sizes: dict[int, int] = {}


class StreamScaleStarted(StreamEvent, frozen=True):
    """The new segments are decided for good; they have yet to be created."""

    replacement: Replacement
    at: int = 0


class StreamEpochAdded(StreamEvent, frozen=True):
    """The new segments exist and are known as successors; the ones they replace have yet to be sealed."""

    created_at: int


class StreamScaled(StreamEvent, frozen=True):
    """The replaced segments are sealed, at these sizes in bytes; the new epoch is the active one."""

    sealed_sizes: dict[int, int]


class StreamTruncationStarted(StreamEvent, frozen=True):
    """The head is `cut` at once; `deleted` are the segments wholly below it, `size_till` the bytes below it."""

    cut: dict[int, int]
    deleted: tuple[int, ...]
    size_till: int
    request: str | None = None
    at: int = 0


class StreamTruncated(StreamEvent, frozen=True):
    pass


class WorkflowQueued(StreamEvent, frozen=True):
    """A workflow of this kind waits for the stream, so commits let it go first; said again while it waits."""

    kind: str
    at: int


class WorkflowAdmitted(StreamEvent, frozen=True):
    """What waited for the stream has been decided, whatever came of it."""


class StreamEpochsRolled(StreamEvent, frozen=True):
    """Two epochs come after the newest: duplicates of the epoch `duplicates`, which hold what was committed and are
    sealed at these sizes, then duplicates of the active epoch. The active segments have yet to be sealed.
    """

    duplicates: int
    created_at: int
    sealed_sizes: dict[int, int]


class StreamRolled(StreamEvent, frozen=True):
    """The replaced segments are sealed, at these sizes in bytes; the newest epoch is the active one."""

    sealed_sizes: dict[int, int]


class TransactionEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str
    transaction: str

    @property
    def aggregate(self) -> str:
        return transaction_aggregate(self.scope, self.stream, self.transaction)


class TransactionOpened(TransactionEvent, frozen=True):
    """The id is given; its segments have yet to be created, until when no lease runs. Times in epoch ms."""

    lease_ms: int
    at: int
    request: str | None = None


class TransactionReady(TransactionEvent, frozen=True):
    """The segments exist; the lease runs from `at`."""

    at: int


class TransactionPinged(TransactionEvent, frozen=True):
    """The lease runs for `lease_ms` from `at`, which is never before the broker appended the ping."""

    lease_ms: int
    at: int


class TransactionCommitting(TransactionEvent, frozen=True):
    """The transaction will be committed, behind those of its stream for which this was said before."""

    at: int
    writer: str = ""
    timestamp: int = 0


class TransactionAborting(TransactionEvent, frozen=True):
    """The transaction will not be committed; its segments have yet to be deleted."""

    reason: AbortReason
    at: int


class TransactionCommitted(TransactionEvent, frozen=True):
    at: int


class TransactionAborted(TransactionEvent, frozen=True):
    at: int


class CommitsEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str

    @property
    def aggregate(self) -> str:
        return commits_aggregate(self.scope, self.stream)


class CommitBatchStarted(CommitsEvent, frozen=True):
    """These transactions, all of one epoch, are merged in this order; with `rolls` into segments of a new epoch."""

    transactions: tuple[str, ...]
    at: int
    rolls: bool = False


class CommitBatchEnded(CommitsEvent, frozen=True):
    pass


class StreamSealStarted(StreamEvent, frozen=True):
    request: str | None = None
    at: int = 0


class StreamSealed(StreamEvent, frozen=True):
    pass


class StreamDeletionStarted(StreamEvent, frozen=True):
    """With `refusal` it undoes a creation, whose request is refused in the end for that reason."""

    request: str | None = None
    at: int = 0
    refusal: str = ""


class StreamDeleted(StreamEvent, frozen=True):
    """The stream is gone; a later stream of this name numbers its segments from `next_number`."""

    next_number: int


class SubscriberAdded(StreamEvent, frozen=True):
    """A reader group that is known already only moves on to a later generation."""

    subscriber: str
    group_id: str
    generation: int
    at: int


class SubscriberRemoved(StreamEvent, frozen=True):
    subscriber: str


class SubscriberCutUpdated(StreamEvent, frozen=True):
    subscriber: str
    cut: dict[int, int]
    at: int


class WriterTimeNoted(StreamEvent, frozen=True):
    writer: str
    timestamp: int
    position: dict[int, int]


class WriterRemoved(StreamEvent, frozen=True):
    """The writer was shut down; its mark still holds until a watermark has passed it."""

    writer: str


class WritersForgotten(StreamEvent, frozen=True):
    """A watermark has passed these writers, which were shut down or silent for too long."""

    writers: tuple[str, ...]


class WatermarkEmitted(StreamEvent, frozen=True):
    """The mark stream holds a watermark with these bounds, in the writers' own time; `at` in epoch ms."""

    lower: int
    upper: int
    at: int


class ReportsForwarded(StreamEvent, frozen=True):
    """What segment stores have appended to `segment` of the stream before `offset` has been passed on."""

    segment: int
    offset: int


class RetentionPolicyAnnounced(StreamEvent, frozen=True):
    """Whoever decides on retention has been told the policy, None for none."""

    policy: RetentionPolicy | None


class DecisionRecorded(StreamEvent, frozen=True):
    """What was decided on the stream at `at` (epoch ms), and why, if that is something else than the time before."""

    kind: DecisionKind
    code: str
    reason: str
    at: int


class GroupEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    group: str

    @property
    def aggregate(self) -> str:
        return group_aggregate(self.scope, self.group)


class ReaderGroupCreationStarted(GroupEvent, frozen=True):
    creation_id: str
    config: ReaderGroupConfig
    created_at: int
    request: str | None = None
    at: int = 0


class ReaderGroupCreated(GroupEvent, frozen=True):
    pass


class ReaderGroupUpdateStarted(GroupEvent, frozen=True):
    """The new configuration holds at once; the streams in `leaves` have yet to forget the group."""

    config: ReaderGroupConfig
    leaves: tuple[str, ...]
    request: str | None = None
    at: int = 0


class ReaderGroupUpdated(GroupEvent, frozen=True):
    """The update is done; with `config` it began and ended in this one record."""

    config: ReaderGroupConfig | None = None


class ReaderGroupDeletionStarted(GroupEvent, frozen=True):
    """With `refusal` it undoes a creation, whose request is refused in the end for that reason."""

    request: str | None = None
    at: int = 0
    refusal: str = ""


class ReaderGroupDeleted(GroupEvent, frozen=True):
    pass


class TableEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    table: str

    @property
    def aggregate(self) -> str:
        return table_aggregate(self.scope, self.table)


class TableCreationStarted(TableEvent, frozen=True):
    creation_id: str
    config: TableConfig
    created_at: int
    segments: tuple[Segment, ...]
    request: str | None = None
    at: int = 0


class TableCreated(TableEvent, frozen=True):
    pass


class TableDeletionStarted(TableEvent, frozen=True):
    """With `refusal` it undoes a creation, whose request is refused in the end for that reason."""

    request: str | None = None
    at: int = 0
    refusal: str = ""


class TableDeleted(TableEvent, frozen=True):
    """The table is gone; a later one of this name numbers its segments from `next_number`."""

    next_number: int


class WorkflowStepFailed(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """A step failed and will be tried again, or waits for others, without attempts; for people, it decides nothing."""

    aggregate: str
    step: str
    attempts: int
    error: str


class WorkflowRetryRequested(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Somebody asked for another attempt at once."""

    aggregate: str


class WorkflowCancelled(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Whoever runs the workflow ends it before its next step, undoing what it has done."""

    aggregate: str


class StreamScaleCancelled(StreamEvent, frozen=True):
    """No segment was replaced; the new ones, as far as they were created, stay empty until the stream goes."""


class ContainersAssigned(ClusterEvent, frozen=True):
    """Which segment store runs which container; `hosts` are all that were alive, also those without a container."""

    containers: dict[int, Host]
    hosts: tuple[Host, ...]
    at: int


class MemberJoined(ClusterEvent, frozen=True):
    service: str
    instance: str
    endpoints: dict[str, str]
    at: int


class MemberLeft(ClusterEvent, frozen=True):
    instance: str
    at: int


Event = (
    ScopeCreated
    | ScopeDeletionStarted
    | ScopeDeleted
    | ScopeKept
    | FenceRaised
    | StreamCreationStarted
    | StreamCreated
    | StreamUpdateStarted
    | StreamUpdated
    | StreamScaleStarted
    | StreamEpochAdded
    | StreamScaled
    | StreamTruncationStarted
    | StreamTruncated
    | WorkflowQueued
    | WorkflowAdmitted
    | StreamEpochsRolled
    | StreamRolled
    | TransactionOpened
    | TransactionReady
    | TransactionPinged
    | TransactionCommitting
    | TransactionAborting
    | TransactionCommitted
    | TransactionAborted
    | CommitBatchStarted
    | CommitBatchEnded
    | StreamSealStarted
    | StreamSealed
    | StreamDeletionStarted
    | StreamDeleted
    | SubscriberAdded
    | SubscriberRemoved
    | SubscriberCutUpdated
    | WriterTimeNoted
    | WriterRemoved
    | WritersForgotten
    | WatermarkEmitted
    | ReportsForwarded
    | RetentionPolicyAnnounced
    | DecisionRecorded
    | ReaderGroupCreationStarted
    | ReaderGroupCreated
    | ReaderGroupUpdateStarted
    | ReaderGroupUpdated
    | ReaderGroupDeletionStarted
    | ReaderGroupDeleted
    | TableCreationStarted
    | TableCreated
    | TableDeletionStarted
    | TableDeleted
    | WorkflowStepFailed
    | WorkflowRetryRequested
    | WorkflowCancelled
    | StreamScaleCancelled
    | ContainersAssigned
    | MemberJoined
    | MemberLeft
)
