"""What a stream is: configuration, epochs and segments, head, and the workflow that is changing it.

`evolve` owns the state it is given and may change it in place: a stream with a thousand epochs is not copied to add
one. Code that reads a state across an await must take out what it needs first; epochs and segments, in its `history`,
stay the same.
Rules: stream-and-transaction-semantics 1 and 2.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from sluice.domain.config import RetentionPolicy, StreamConfig
from sluice.domain.decision import Reader
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import DecisionKind, Subscription
from sluice.domain.stream.events import Replacement
from sluice.domain.stream.history import NONE, Epoch, History
from sluice.domain.workflow import Workflow, check_idle


class StreamState(Enum):
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"
    SCALING = "SCALING"
    TRUNCATING = "TRUNCATING"
    SEALING = "SEALING"
    SEALED = "SEALED"
    RESTORING = "RESTORING"
    """A back-up knew it; what happened to it since is being found out, so nothing is said of its segments."""


class StreamWorkflow(Workflow):
    """`deletes` are the segments a truncation leaves behind, `replacement` what a scale or an update puts there.

    Each restore that was made behind the back-up had epochs go on at one of the `bases`; the last is this one's.
    """

    deletes: tuple[int, ...] = ()
    replacement: Replacement | None = None
    bases: tuple[int, ...] = ()


YIELD_MS = 5_000
"""How long a request that is queued on its stream goes before commits, from when it was last recorded as queued."""


class Queued(msgspec.Struct, frozen=True, array_like=True):
    """A command of this kind is queued on the stream; last recorded at `at`, epoch ms."""

    kind: str
    at: int

    def is_current(self, now: int) -> bool:
        """Whether it counts at `now`: one that waits is recorded repeatedly, one that is not there any more is not."""
        return now - self.at < YIELD_MS


class Subscriber(msgspec.Struct, array_like=True):
    """A reader group whose progress bounds what may be truncated; `cut` is empty until it has reported one."""

    group_id: str
    generation: int
    updated_at: int
    cut: dict[int, int] = {}

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.group_id, self.generation, bool(self.cut))


class WriterTime(msgspec.Struct, array_like=True):
    """A writer's latest report of its own time at a position; not `alive` once it was shut down."""

    timestamp: int
    position: dict[int, int]
    alive: bool = True


class WatermarkBounds(msgspec.Struct, frozen=True):
    """The latest watermark: bounds in the writers' own time, and when it was emitted in epoch ms."""

    lower: int
    upper: int
    at: int


class RecordedDecision(msgspec.Struct, frozen=True, array_like=True):
    """A decision on scaling or retention, and why; `at` in epoch ms."""

    code: str
    reason: str
    at: int


class Stream(msgspec.Struct, array_like=True, gc=False):
    """`cut` is the head, empty before the first truncation, `cut_size` the bytes before it.

    `next_number` is the number after the highest one ever used: numbers of one name are never used again.
    `spare` are segments that cancelled scales may have created; they go with the stream.
    """

    id: StreamId
    creation_id: str
    state: StreamState
    config: StreamConfig
    created_at: int
    history: History
    next_number: int
    active: int = 0
    cut: Mapping[int, int] = NONE
    cut_size: int = 0
    workflow: StreamWorkflow | None = None
    waiting: Queued | None = None
    spare: tuple[int, ...] = ()
    cancelled_scale: int | None = None
    """The epoch on which the last scale began, if it was cancelled."""
    subscribers: Mapping[str, Subscriber] = NONE
    writers: Mapping[str, WriterTime] = NONE
    watermark: WatermarkBounds | None = None
    forwarded: dict[int, int] | None = None
    """How far each segment has been passed on; only the stream that segment stores report to has this."""
    announced: RetentionPolicy | None = None
    """The retention policy that was last announced to retention-spark."""
    decisions: Mapping[DecisionKind, RecordedDecision] = NONE
    """The last decision of each kind that was new."""
    actions: Mapping[DecisionKind, RecordedDecision] = NONE
    """The last decision of each kind that acts."""

    @property
    def next_epoch(self) -> int:
        """The number of the epoch that will come behind the active one."""
        return self.active + 1

    @property
    def active_epoch(self) -> Epoch:
        """The epoch that writers write to; while a replacement is under way the newest one comes after it."""
        return self.history.epoch(self.active)

    @property
    def subscriptions(self) -> dict[str, Subscription]:
        """By the names of reader groups."""
        return {name: subscriber.subscription for name, subscriber in sorted(self.subscribers.items())}

    def active_segments(self) -> list[Segment]:
        """The segments of the active epoch, by key range."""
        return self.history.segments_of(self.active)


class DeletedStream(msgspec.Struct, frozen=True, array_like=True):
    """What is left of a deleted stream: where its successor's numbers begin."""

    next_number: int


def find_stream(reader: Reader, id: StreamId) -> Stream | None:
    state = reader.get(id.aggregate)
    return state if isinstance(state, Stream) else None


def find_created(reader: Reader, id: StreamId, creation_id: str) -> Stream | None:
    """The stream if it is of that creation; "" is whichever."""
    stream = find_stream(reader, id)
    return stream if stream is not None and creation_id in ("", stream.creation_id) else None


def idle_stream(reader: Reader, id: StreamId, creation_id: str = "") -> Stream | None:
    """The stream to begin a workflow on; with a creation id only that creation of it.

    Raises BusyError while another workflow is running, a batch of commits included. Both are read, and so guarded: of a
    workflow and a batch that begin at the same moment only one counts.
    """
    stream = find_created(reader, id, creation_id)
    if stream is not None:
        check_idle(id, stream, reader.get(id.commits))
    return stream


def first_number(reader: Reader, id: StreamId) -> int:
    state = reader.get(id.aggregate)
    return state.next_number if isinstance(state, DeletedStream) else 0
