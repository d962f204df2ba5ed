"""What became true of streams: configuration, epochs, head, subscribers, writers' times."""

import msgspec

from sluice.domain.config import RetentionPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.names import stream_aggregate
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import DecisionKind


class StreamEvent(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def aggregate(self) -> str:
        return stream_aggregate(self.scope, self.stream)


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


class Replacement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
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
    """The policy was written to the retention topic; None for none."""

    policy: RetentionPolicy | None


class DecisionRecorded(StreamEvent, frozen=True):
    """What was decided on the stream at `at` (epoch ms), and why, if that is something else than the time before.

    It `acts` if a scale or a truncation is requested for it, with the id `request`. `numbers` are those that it rests
    on, by name with their units.
    """

    kind: DecisionKind
    code: str
    reason: str
    at: int
    acts: bool = False
    request: str = ""
    numbers: dict[str, int] = {}


class StreamRestored(StreamEvent, frozen=True):
    """What happened to the stream behind the back-up that it is from is found out; see `domain.stream.restore`.

    The segments that were `found`, by id, come behind those that were known, epoch by epoch. Behind all comes the epoch
    `base` with the segments that it `creates`, and all before these are sealed, at these sizes in bytes. If it creates
    none that epoch has the segments that were active: the stream goes on in them, or was `sealed`.
    The head is at `cut` if there is one.
    """

    at: int
    base: int
    found: tuple[int, ...] = ()
    creates: tuple[Segment, ...] = ()
    sealed_sizes: dict[int, int] = {}
    sealed: bool = False
    cut: dict[int, int] = {}


class StreamScaleCancelled(StreamEvent, frozen=True):
    """No segment was replaced; the new ones, as far as they were created, stay empty until the stream goes."""


Event = (
    StreamCreationStarted
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
    | StreamScaleCancelled
    | StreamRestored
)
