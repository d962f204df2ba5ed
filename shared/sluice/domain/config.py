"""A stream's configuration: scaling and retention policy, tags, sizes.

Limits: controller-grpc-api section 4. Values are immutable and travel in commands, events and state alike.
"""

from enum import Enum

import msgspec

from sluice.domain.errors import InvalidArgumentError

MAX_TAGS = 127
MAX_TAG_LENGTH = 255


class ScaleType(Enum):
    """How a stream decides its number of segments; the values are Pravega's names."""

    FIXED = "FIXED_NUM_SEGMENTS"
    KBYTES = "BY_RATE_IN_KBYTES_PER_SEC"
    EVENTS = "BY_RATE_IN_EVENTS_PER_SEC"


class RetentionType(Enum):
    TIME = "TIME"
    SIZE = "SIZE"


class ScalingPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """`target_rate` is per segment and second, in KB or events; 0 for a fixed number of segments."""

    scale_type: ScaleType = ScaleType.FIXED
    target_rate: int = 0
    scale_factor: int = 0
    min_segments: int = 1


class RetentionPolicy(msgspec.Struct, frozen=True):
    """What must be kept (`minimum`) and what may be kept (`maximum`), in ms for TIME and bytes for SIZE."""

    retention_type: RetentionType
    minimum: int
    maximum: int


class StreamConfig(msgspec.Struct, frozen=True, omit_defaults=True):
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
        if len(tag) > MAX_TAG_LENGTH:
            raise InvalidArgumentError(f"tag of {len(tag)} characters, the limit is {MAX_TAG_LENGTH}")
    if config.rollover_size_bytes < 0:
        raise InvalidArgumentError(f"rolloverSizeBytes is {config.rollover_size_bytes}, it must not be negative")
