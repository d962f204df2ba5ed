"""Between Pravega's message for the configuration of a stream and the domain's value. Pure functions."""

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import StreamId

_SCALE_TYPES: dict[int, ScaleType] = {pb.ScalingPolicy.ScalingPolicyType.Value(t.value): t for t in ScaleType}
_RETENTION_TYPES: dict[int, RetentionType] = {
    pb.RetentionPolicy.RetentionPolicyType.Value(t.value): t for t in RetentionType
}


def stream_config_of(message: pb.StreamConfig) -> StreamConfig:
    """As sent, each tag once: without a scaling policy the number of segments is 0, as in the message.

    Raises InvalidArgumentError for a number that is in no enum.
    """
    scaling = message.scalingPolicy
    scale_type = _SCALE_TYPES.get(scaling.scaleType)
    if scale_type is None:
        raise InvalidArgumentError(f"{scaling.scaleType} is no scaleType")
    return StreamConfig(
        scaling=ScalingPolicy(scale_type, scaling.targetRate, scaling.scaleFactor, scaling.minNumSegments),
        retention=_retention_of(message.retentionPolicy),
        tags=tuple(dict.fromkeys(message.tags.tag)),
        timestamp_aggregation_timeout_ms=message.timestampAggregationTimeout,
        rollover_size_bytes=message.rolloverSizeBytes,
    )


def _retention_of(message: pb.RetentionPolicy) -> RetentionPolicy | None:
    if message.retentionType == pb.RetentionPolicy.UNKNOWN:
        return None
    kind = _RETENTION_TYPES.get(message.retentionType)
    if kind is None:
        raise InvalidArgumentError(f"{message.retentionType} is no retentionType")
    return RetentionPolicy(kind, message.retentionParam, message.retentionMax)


def stream_config_message(id: StreamId, config: StreamConfig) -> pb.StreamConfig:
    """Every part is set, but the retention policy only if there is one."""
    scaling, retention = config.scaling, config.retention
    return pb.StreamConfig(
        streamInfo=pb.StreamInfo(scope=id.scope, stream=id.name),
        scalingPolicy=pb.ScalingPolicy(
            scaleType=scaling.scale_type.value,
            targetRate=scaling.target_rate,
            scaleFactor=scaling.scale_factor,
            minNumSegments=scaling.min_segments,
        ),
        retentionPolicy=_retention_message(retention) if retention is not None else None,
        tags=pb.Tags(tag=config.tags),
        timestampAggregationTimeout=config.timestamp_aggregation_timeout_ms,
        rolloverSizeBytes=config.rollover_size_bytes,
    )


def _retention_message(policy: RetentionPolicy) -> pb.RetentionPolicy:
    return pb.RetentionPolicy(
        retentionType=policy.retention_type.value, retentionParam=policy.minimum, retentionMax=policy.maximum
    )
