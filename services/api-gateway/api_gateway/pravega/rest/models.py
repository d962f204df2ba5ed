"""The models of the interface (admin-rest-api 6), with its property names.

What is sent is read as Pravega's controller does: unknown properties are ignored, an unknown text where one of several
is expected counts as none, numbers may be written as text and the other way round (admin-rest-api 2). Every property
may be missing; what that means is a matter of `convert`.
"""

import math
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

ScalingType = Literal["FIXED_NUM_SEGMENTS", "BY_RATE_IN_KBYTES_PER_SEC", "BY_RATE_IN_EVENTS_PER_SEC"]
RetentionType = Literal["LIMITED_DAYS", "LIMITED_SIZE_MB"]
State = Literal["SEALED"]
Status = Literal["UP", "STARTING", "NEW", "UNKNOWN", "FAILED", "DOWN"]


def _whole(value: object) -> object:
    """What is behind the point is dropped; true and false are no numbers."""
    if isinstance(value, bool):
        raise ValueError("not a number")
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


Int32 = Annotated[int, BeforeValidator(_whole), Field(ge=-(2**31), lt=2**31, json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, BeforeValidator(_whole), Field(ge=-(2**63), lt=2**63, json_schema_extra={"format": "int64"})]


def _or_none(values: Any) -> BeforeValidator:
    """One of the texts; any other text counts as none."""
    known = get_args(values)

    def check(value: object) -> object:
        return value if value in known or not isinstance(value, str) else None

    return BeforeValidator(check)


class Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", coerce_numbers_to_str=True
    )


class CreateScopeRequest(Model):
    """A scope to be created."""

    scope_name: str | None = Field(default=None, examples=["demo"])


class ScopeProperty(Model):
    """A scope."""

    scope_name: str = Field(examples=["demo"])


class ScopesList(Model):
    """Scopes; without the property if there are none."""

    scopes: list[ScopeProperty] | None = None


class TimeBasedRetention(Model):
    """A span of time; all three are needed."""

    days: Int64 | None = None
    hours: Int64 | None = None
    minutes: Int64 | None = None


class ScalingConfig(Model):
    """How the number of segments is decided; a type that is not known counts as BY_RATE_IN_KBYTES_PER_SEC."""

    type: Annotated[ScalingType | None, _or_none(ScalingType)] = None
    target_rate: Int32 | None = Field(
        default=None, description="Per segment and second; not where the number is fixed."
    )
    scale_factor: Int32 | None = Field(default=None, description="Not where the number is fixed.")
    min_segments: Int32 | None = None


class RetentionConfig(Model):
    """What is kept: so many days or megabytes. A value of 0 days leaves it to timeBasedRetention."""

    type: Annotated[RetentionType | None, _or_none(RetentionType)] = None
    value: Int64 | None = None
    time_based_retention: TimeBasedRetention | None = None
    max_value: Int64 | None = Field(default=None, description="Only where a stream is created.")
    max_time_based_retention: TimeBasedRetention | None = Field(
        default=None, description="Only where a stream is created."
    )


class UpdateStreamRequest(Model):
    """The new configuration of a stream, as a whole."""

    scaling_policy: ScalingConfig | None = None
    retention_policy: RetentionConfig | None = Field(default=None, description="Nothing is ever truncated if left out.")
    stream_tags: Annotated[list[str | None], Field(fail_fast=True)] | None = Field(default=None, examples=[["sensors"]])
    timestamp_aggregation_timeout: Int64 | None = Field(default=None, description="Milliseconds.")
    rollover_size_bytes: Int64 | None = Field(default=None, description="0: as segment stores do.")


class CreateStreamRequest(UpdateStreamRequest):
    """A stream to be created."""

    stream_name: str | None = Field(default=None, examples=["greetings"])


class StreamProperty(Model):
    """A stream."""

    scope_name: str = Field(examples=["demo"])
    stream_name: str = Field(examples=["greetings"])
    scaling_policy: ScalingConfig
    retention_policy: RetentionConfig | None = None
    tags: list[str]
    timestamp_aggregation_timeout: int
    rollover_size_bytes: int


class StreamsList(Model):
    """Streams."""

    streams: list[StreamProperty]


class StreamState(Model):
    """The state of a stream; the only one that can be requested is SEALED."""

    stream_state: Annotated[State | None, _or_none(State)] = None


class ScaledSegment(Model):
    """A segment after a scale."""

    number: int
    epoch: int
    start: int = Field(description="When it was created, epoch ms.")
    key_start: float
    key_end: float


class ScaleEvent(Model):
    """The begin of an epoch."""

    timestamp: int = Field(description="Epoch ms.")
    segments: list[ScaledSegment]
    splits: int = Field(description="How many segments before it overlap more than one of these.")
    merges: int = Field(description="How many of these overlap more than one segment before it.")


class ReaderGroupName(Model):
    """A reader group."""

    reader_group_name: str


class ReaderGroupsList(Model):
    """Reader groups; without the property if there are none."""

    reader_groups: list[ReaderGroupName] | None = None


class ReaderGroupProperty(Model):
    """A reader group as its readers have left it."""

    scope_name: str
    reader_group_name: str
    stream_list: list[str] = Field(description="scope/stream of all segments that are read or wait for a reader.")
    online_reader_ids: list[str]


class HealthResult(Model):
    """The health of a component and of what it consists of."""

    name: str
    status: Status
    readiness: bool
    liveness: bool
    details: dict[str, str]
    children: dict[str, "HealthResult"]
