"""The configuration of a stream as it is sent, and the domain's value of it. Pure functions.

`config_of` raises InvalidArgumentError for what breaks a limit (controller-grpc-api 4).
"""

from typing import Annotated, Literal

from pydantic import Field

from api_gateway.console.rest.base import INT32_MAX, INT64_MAX, Body
from sluice.domain import config as domain
from sluice.domain.config import MAX_SEGMENTS, MAX_TAG_LENGTH, MAX_TAGS, check_config
from sluice.domain.errors import InvalidArgumentError

_SCALE_TYPES = {scale_type.word: scale_type for scale_type in domain.ScaleType}
_RETENTION_TYPES = {retention_type.word: retention_type for retention_type in domain.RetentionType}


class ScalingBody(Body):
    """How the number of a stream's segments is decided."""

    type: Literal["fixed", "events", "kbytes"] = Field(
        default="fixed", description="A fixed number, or by the rate of events or of kilobytes."
    )
    target_rate: int = Field(
        default=0, ge=0, le=INT32_MAX, description="Per segment and second, in events or kilobytes; 0 where fixed."
    )
    scale_factor: int = Field(
        default=0, ge=0, le=INT32_MAX, description="Into how many segments one is split at most; 0 where fixed."
    )
    min_segments: int = Field(default=1, ge=1, le=MAX_SEGMENTS, description="How many segments there are at least.")


class RetentionBody(Body):
    """What must be kept of a stream, and what may be."""

    type: Literal["size", "time"] = Field(description="By size, in bytes, or by age, in milliseconds.")
    min: int = Field(ge=0, le=INT64_MAX, description="So much is kept in any case.", examples=[1073741824])
    max: int = Field(
        default=INT64_MAX,
        ge=0,
        le=INT64_MAX,
        description="More than this is not kept; not less than `min`, the default is no limit.",
    )


class StreamSettings(Body):
    """The configuration of a stream."""

    scaling: ScalingBody = Field(default=ScalingBody(), description="One segment if left out.")
    retention: RetentionBody | None = Field(default=None, description="Nothing is ever truncated if left out or null.")
    tags: list[Annotated[str, Field(max_length=MAX_TAG_LENGTH)]] = Field(
        default=[],
        max_length=MAX_TAGS,
        fail_fast=True,
        description="Texts to find streams by.",
        examples=[["sensors"]],
    )
    rollover_size_bytes: int = Field(
        default=0, ge=0, le=INT64_MAX, description="Of parts of segments; 0: as stores do."
    )
    timestamp_aggregation_timeout: int = Field(
        default=0,
        ge=0,
        le=INT64_MAX,
        description="After how many milliseconds a silent writer no longer holds up watermarks.",
    )


def retention_of(retention: RetentionBody) -> domain.RetentionPolicy:
    if retention.max < retention.min:
        raise InvalidArgumentError(
            f"retention.max is {retention.max}, less than retention.min, which is {retention.min}"
        )
    return domain.RetentionPolicy(_RETENTION_TYPES[retention.type], retention.min, retention.max)


def config_of(settings: StreamSettings) -> domain.StreamConfig:
    scaling, retention = settings.scaling, settings.retention
    config = domain.StreamConfig(
        scaling=domain.ScalingPolicy(
            scale_type=_SCALE_TYPES[scaling.type],
            target_rate=scaling.target_rate,
            scale_factor=scaling.scale_factor,
            min_segments=scaling.min_segments,
        ),
        retention=retention_of(retention) if retention is not None else None,
        tags=tuple(dict.fromkeys(settings.tags)),
        timestamp_aggregation_timeout_ms=settings.timestamp_aggregation_timeout,
        rollover_size_bytes=settings.rollover_size_bytes,
    )
    check_config(config, tuple(settings.tags))
    return config
