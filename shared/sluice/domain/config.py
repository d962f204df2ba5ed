"""The configurations of streams, reader groups and key-value tables.

Limits: controller-grpc-api section 4. Values are immutable and travel in commands, events and state alike.
"""

from enum import Enum
from typing import Literal, Self

import msgspec

from sluice.domain.errors import InvalidArgumentError
from sluice.domain.names import is_scope_name, is_stream_name

MAX_TAGS = 127
MAX_TAG_LENGTH = 255
MAX_SEGMENTS = 10_000
"""Segments of one epoch: what a record of the journal still holds with room to spare."""

MAX_KEY_LENGTH = 256
"""Bytes of a table's keys, both parts together: a segment store makes no segment for longer ones (protocol, 5.3)."""


class ScaleType(Enum):
    """How a stream decides its number of segments: Pravega's name for it, its number on the wire, and REST's word."""

    FIXED = "FIXED_NUM_SEGMENTS", 0, "fixed"
    KBYTES = "BY_RATE_IN_KBYTES_PER_SEC", 1, "kbytes"
    EVENTS = "BY_RATE_IN_EVENTS_PER_SEC", 2, "events"

    code: int
    word: Literal["fixed", "kbytes", "events"]

    def __new__(cls, value: str, code: int, word: Literal["fixed", "kbytes", "events"]) -> Self:
        """The value alone is what commands, events and states hold."""
        self = object.__new__(cls)
        self._value_, self.code, self.word = value, code, word
        return self


class _Worded(Enum):
    """The value is Pravega's name, and what commands, events and states hold; `word` is REST's."""

    def __new__(cls, value: str, word: str) -> Self:
        self = object.__new__(cls)
        self._value_, self.word = value, word  # type: ignore[attr-defined]
        return self


class RetentionType(_Worded):
    TIME = "TIME", "time"
    SIZE = "SIZE", "size"

    word: Literal["time", "size"]


class ScalingPolicy(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """`target_rate` is per segment and second, in KB or events; 0 for a fixed number of segments."""

    scale_type: ScaleType = ScaleType.FIXED
    target_rate: int = 0
    scale_factor: int = 0
    min_segments: int = 1

    @property
    def is_by_load(self) -> bool:
        return self.scale_type is not ScaleType.FIXED


class RetentionPolicy(msgspec.Struct, frozen=True, gc=False):
    """What must be kept (`minimum`) and what may be kept (`maximum`), in ms for TIME and bytes for SIZE."""

    retention_type: RetentionType
    minimum: int
    maximum: int

    @property
    def ceiling(self) -> int:
        """The maximum that counts: one below the minimum is the minimum. Old clients send 0 for none."""
        return max(self.maximum, self.minimum)


class StreamConfig(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    scaling: ScalingPolicy = ScalingPolicy()
    retention: RetentionPolicy | None = None
    tags: tuple[str, ...] = ()
    timestamp_aggregation_timeout_ms: int = 0
    rollover_size_bytes: int = 0


def check_config(config: StreamConfig, tags: tuple[str, ...]) -> None:
    """Raise InvalidArgumentError unless the limits hold; `tags` as sent, before repeated ones collapse."""
    if len(tags) > MAX_TAGS:
        raise InvalidArgumentError(f"{len(tags)} tags, the limit is {MAX_TAGS}")
    for tag in tags:
        length = len(tag.encode("utf-16-le", "surrogatepass")) // 2
        if length > MAX_TAG_LENGTH:
            raise InvalidArgumentError(f"tag of {length} characters, the limit is {MAX_TAG_LENGTH}")
    if config.rollover_size_bytes < 0:
        raise InvalidArgumentError(f"rolloverSizeBytes is {config.rollover_size_bytes}, it must not be negative")


class GroupRetention(_Worded):
    """When what a reader group has read may go (background-and-other-workflows 6.1)."""

    NONE = "NONE", "none"
    MANUAL = "MANUAL_RELEASE_AT_USER_STREAMCUT", "manual"
    AUTOMATIC = "AUTOMATIC_RELEASE_AT_LAST_CHECKPOINT", "automatic"

    word: Literal["none", "manual", "automatic"]


class ReaderGroupConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reader group: its streams ("scope/stream") with the cuts to start and end at, an empty cut for none.

    `id` is the group's UUID; `generation` grows by one with each update.
    """

    id: str
    starts: dict[str, dict[int, int]]
    ends: dict[str, dict[int, int]] = {}
    retention: GroupRetention = GroupRetention.NONE
    refresh_ms: int = 3000
    checkpoint_interval_ms: int = 30_000
    max_outstanding_checkpoints: int = 3
    generation: int = 0

    def subscribes(self) -> bool:
        """Whether the streams must keep what the group has yet to read."""
        return self.retention is not GroupRetention.NONE


def check_group_config(config: ReaderGroupConfig) -> None:
    """Raise InvalidArgumentError unless streams and cuts fit together (controller-grpc-api 5.8)."""
    if not config.starts:
        raise InvalidArgumentError("a reader group needs at least one stream")
    if config.max_outstanding_checkpoints <= 0:
        raise InvalidArgumentError("maxOutstandingCheckpointRequest must be greater than 0")
    for name in (*config.starts, *config.ends):
        scope, _, stream = name.partition("/")
        if not (is_scope_name(scope) and is_stream_name(stream)):
            raise InvalidArgumentError(f"{name!r} is not the name of a stream")
    for name, end in config.ends.items():
        if end and name not in config.starts:
            raise InvalidArgumentError(f"{name} has an end and no start")
        start = config.starts.get(name)
        if start and end:
            _check_start_and_end(name, start, end)


def _check_start_and_end(name: str, start: dict[int, int], end: dict[int, int]) -> None:
    for segment in start.keys() & end.keys():
        first, last = start[segment], end[segment]
        if last != -1 and (first == -1 or first > last):
            raise InvalidArgumentError(f"{name}: segment {segment} would start at {first} and end at {last}")
    if min(start) > min(end) or max(start) > max(end):
        raise InvalidArgumentError(f"{name}: the start lies after the end")


class TableConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key-value table: number of partitions, key lengths in bytes."""

    partitions: int
    primary_key_length: int
    secondary_key_length: int = 0
    rollover_size_bytes: int = 0


def check_table_config(config: TableConfig) -> None:
    """Raise InvalidArgumentError unless the limits hold (background-and-other-workflows 5.1)."""
    if config.partitions <= 0 or config.primary_key_length <= 0:
        raise InvalidArgumentError("partitionCount and primaryKeyLength must be greater than 0")
    if config.secondary_key_length < 0 or config.rollover_size_bytes < 0:
        raise InvalidArgumentError("secondaryKeyLength and rolloverSizeBytes must not be negative")
