"""Between the models of the interface and the domain's values (admin-rest-api 7).

What cannot be converted raises BadRequestError. Pure functions.
"""

from api_gateway.edge.errors import BadRequestError
from api_gateway.pravega.rest.models import (
    RetentionConfig,
    RetentionType,
    ScalingConfig,
    StreamProperty,
    TimeBasedRetention,
    UpdateStreamRequest,
)
from sluice.domain import config as domain
from sluice.domain.config import MAX_SEGMENTS, ScaleType, ScalingPolicy, StreamConfig, check_config
from sluice.domain.errors import InvalidArgumentError

MEGABYTE = 1024 * 1024
MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

UNBOUNDED = 2**63 - 1

_SCALE_TYPES = {scale_type.value: scale_type for scale_type in ScaleType}


def config_of(sent: UpdateStreamRequest, *, with_maximum: bool) -> StreamConfig:
    """The configuration; an update ignores the maximum of a retention (7.2)."""
    if sent.scaling_policy is None:
        raise BadRequestError("scalingPolicy is missing")
    tags = tuple(sent.stream_tags or ())
    if any(tag is None for tag in tags):
        raise BadRequestError("a tag is null")
    texts = tuple(tag for tag in tags if tag is not None)
    if any("\ud800" <= char <= "\udfff" for tag in texts for char in tag):
        raise BadRequestError("a tag has half of a surrogate pair, which is no text")
    retention = sent.retention_policy
    config = StreamConfig(
        scaling=_scaling_of(sent.scaling_policy),
        retention=_retention_of(retention, with_maximum) if retention is not None else None,
        tags=tuple(dict.fromkeys(texts)),
        timestamp_aggregation_timeout_ms=sent.timestamp_aggregation_timeout or 0,
        rollover_size_bytes=sent.rollover_size_bytes or 0,
    )
    try:
        check_config(config, texts)
    except InvalidArgumentError as error:
        raise BadRequestError(str(error)) from error
    return config


def _scaling_of(sent: ScalingConfig) -> ScalingPolicy:
    least = sent.min_segments or 0
    if not 1 <= least <= MAX_SEGMENTS:
        raise BadRequestError(f"minSegments must be 1 to {MAX_SEGMENTS}")
    if sent.type == ScaleType.FIXED.value:
        return ScalingPolicy(ScaleType.FIXED, 0, 0, least)
    rate, factor = sent.target_rate or 0, sent.scale_factor or 0
    if rate <= 0 or factor <= 0:
        raise BadRequestError("targetRate and scaleFactor must be greater than 0")
    return ScalingPolicy(_SCALE_TYPES[sent.type] if sent.type else ScaleType.KBYTES, rate, factor, least)


def _retention_of(sent: RetentionConfig, with_maximum: bool) -> domain.RetentionPolicy:
    if sent.type is None or sent.value is None:
        raise BadRequestError("a retentionPolicy needs type and value")
    if sent.type == "LIMITED_SIZE_MB":
        most = sent.max_value * MEGABYTE if with_maximum and sent.max_value is not None else UNBOUNDED
        return _policy(domain.RetentionType.SIZE, sent.value * MEGABYTE, most)
    least = sent.value * DAY_MS
    if sent.time_based_retention is not None and sent.value == 0:
        least = _span(sent.time_based_retention)
    return _policy(domain.RetentionType.TIME, least, _longest(sent) if with_maximum else UNBOUNDED)


def _longest(sent: RetentionConfig) -> int:
    if sent.max_time_based_retention is not None and not sent.max_value:
        return _span(sent.max_time_based_retention)
    return sent.max_value * DAY_MS if sent.max_value is not None else UNBOUNDED


def _span(sent: TimeBasedRetention) -> int:
    if sent.days is None or sent.hours is None or sent.minutes is None:
        raise BadRequestError("a time needs days, hours and minutes")
    return sent.days * DAY_MS + sent.hours * HOUR_MS + sent.minutes * MINUTE_MS


def _policy(kind: domain.RetentionType, least: int, most: int) -> domain.RetentionPolicy:
    if not all(-UNBOUNDED <= limit <= UNBOUNDED for limit in (least, most)):
        raise BadRequestError("a retention is too large to be counted in ms or bytes")
    return domain.RetentionPolicy(kind, least, most)


def stream_property(scope: str, stream: str, config: StreamConfig) -> StreamProperty:
    scaling, fixed = config.scaling, config.scaling.scale_type is ScaleType.FIXED
    return StreamProperty(
        scope_name=scope,
        stream_name=stream,
        scaling_policy=ScalingConfig.model_construct(
            type=scaling.scale_type.value,
            target_rate=None if fixed else scaling.target_rate,
            scale_factor=None if fixed else scaling.scale_factor,
            min_segments=scaling.min_segments,
        ),
        retention_policy=_retention_shown(config.retention) if config.retention is not None else None,
        tags=list(config.tags),
        timestamp_aggregation_timeout=config.timestamp_aggregation_timeout_ms,
        rollover_size_bytes=config.rollover_size_bytes,
    )


def _retention_shown(policy: domain.RetentionPolicy) -> RetentionConfig:
    """The maximum is never shown (7.3)."""
    kind: RetentionType
    if policy.retention_type is domain.RetentionType.SIZE:
        kind = "LIMITED_SIZE_MB"
        return RetentionConfig.model_construct(type=kind, value=_quotient(policy.minimum, MEGABYTE))
    kind = "LIMITED_DAYS"
    days, rest = _quotient(policy.minimum, DAY_MS), _remainder(policy.minimum, DAY_MS)
    span = TimeBasedRetention.model_construct(
        days=days, hours=_quotient(rest, HOUR_MS), minutes=_quotient(_remainder(rest, HOUR_MS), MINUTE_MS)
    )
    whole = rest == 0
    return RetentionConfig.model_construct(type=kind, value=days if whole else 0, time_based_retention=span)


def _quotient(number: int, by: int) -> int:
    """Towards zero, as the original divides."""
    return number // by if number >= 0 else -(-number // by)


def _remainder(number: int, by: int) -> int:
    return number - _quotient(number, by) * by
