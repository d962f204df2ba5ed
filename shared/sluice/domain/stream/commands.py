"""The commands of streams."""

from enum import Enum

import msgspec

from sluice.domain.config import RetentionPolicy, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId


class StreamCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the stream's key."""

    scope: str
    stream: str

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def key(self) -> str:
        return self.stream_id.key

    @property
    def aggregate(self) -> str:
        return self.stream_id.aggregate


class CreateStream(StreamCommand, frozen=True):
    config: StreamConfig


class UpdateStream(StreamCommand, frozen=True):
    """`expected` is the configuration that it replaces: a stream with another one by now stays as it is.

    `creation_id` names the life of the stream that is meant; "" is whichever.
    """

    config: StreamConfig
    expected: StreamConfig | None = None
    creation_id: str = ""


class Subscription(msgspec.Struct, frozen=True):
    """That of a reader group, until the group changes; without a report of where its readers are it holds no data."""

    group_id: str
    generation: int
    has_reported: bool


class TruncateStream(StreamCommand, frozen=True):
    """`cut` maps segment ids to byte offsets, -1 for a segment not yet reached.

    `policy` is the retention policy that asks for it, as decided at `at` (epoch ms) with these subscriptions known by
    their reader groups: if the stream has another policy or other subscriptions by now, nothing is truncated.
    """

    cut: dict[int, int]
    policy: RetentionPolicy | None = None
    subscriptions: dict[str, Subscription] = {}
    at: int = 0


class ScaleStream(StreamCommand, frozen=True):
    """Replace segments of the active epoch by new ones that tile the same key ranges; `at` in epoch ms.

    `policy` is the scaling policy that asks for it, as decided at `at` in `epoch`: if the stream has another policy or
    another active epoch by now, nothing is scaled.
    """

    seals: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]
    at: int
    policy: ScalingPolicy | None = None
    epoch: int = 0


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
    """What was decided on the stream of this creation at `at` (epoch ms), and why; `code` names the case.

    It `acts` if a scale or a truncation is requested for it, with the id `request`. `numbers` are those that it rests
    on, by name with their units.
    """

    creation_id: str
    kind: DecisionKind
    code: str
    reason: str
    at: int
    acts: bool = False
    request: str = ""
    numbers: dict[str, int] = {}


Report = AddSubscriber | RemoveSubscriber | UpdateSubscriberCut | NoteWriterTime | RemoveWriter | RecordDecision
"""What is only noted on a stream: it begins no workflow and waits for none."""

Command = CreateStream | UpdateStream | TruncateStream | ScaleStream | SealStream | DeleteStream | Report
