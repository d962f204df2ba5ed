"""Between Pravega's messages and the domain's values.

What cannot be converted raises BadRequestError: an empty name where the name says what is meant, a number that is not
in an enum, limits of a configuration exceeded (controller-grpc-api 3.1 and 4). Names are not checked any further here,
that is the domain's business. Pure functions.
"""

import base64
import binascii
import math
from collections.abc import Iterable
from itertools import chain

from api_gateway.edge.errors import BadRequestError
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import (
    RetentionPolicy,
    RetentionType,
    ScaleType,
    ScalingPolicy,
    StreamConfig,
    check_config,
)
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import StreamId, TableId
from sluice.domain.segment import Segment

_SCALE_TYPES: dict[int, ScaleType] = {pb.ScalingPolicy.ScalingPolicyType.Value(t.value): t for t in ScaleType}
_RETENTION_TYPES: dict[int, RetentionType] = {
    pb.RetentionPolicy.RetentionPolicyType.Value(t.value): t for t in RetentionType
}


LONGEST_NAME = 1_000
"""Of a name that is longer only the beginning counts: it is as invalid as the whole, and to hash that takes long."""


def name_of(name: str) -> str:
    """A name as far as it counts."""
    return name[:LONGEST_NAME]


def scope_of(name: str) -> str:
    if not name:
        raise BadRequestError("the scope is empty")
    return name_of(name)


def stream_of(info: pb.StreamInfo) -> StreamId:
    if not info.scope:
        raise BadRequestError("the scope is empty")
    if not info.stream:
        raise BadRequestError("the stream's name is empty")
    return StreamId(name_of(info.scope), name_of(info.stream))


def epoch_of(epoch: int) -> int:
    if epoch < 0:
        raise BadRequestError(f"epoch {epoch} is negative")
    return epoch


def cut_of(cut: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The items of a message's map as a cut; it must hold something."""
    converted = dict(cut)
    if not converted:
        raise BadRequestError("the stream cut is empty")
    return converted


def ranges_of(entries: Iterable[pb.ScaleRequest.KeyRangeEntry]) -> tuple[tuple[float, float], ...]:
    """The key ranges of new segments; two that begin alike, or a bound that is no number, cannot be meant."""
    ranges = tuple((entry.start, entry.end) for entry in entries)
    if len({start for start, _ in ranges}) < len(ranges):
        raise BadRequestError("two key ranges begin at the same key")
    if not all(map(math.isfinite, chain.from_iterable(ranges))):
        raise BadRequestError("a bound of a key range is not a finite number")
    return ranges


def config_of(message: pb.StreamConfig) -> StreamConfig:
    """Without a scaling policy the number of segments is 0, as in the message; the domain refuses that."""
    scaling, sent_tags = message.scalingPolicy, tuple(message.tags.tag)
    scale_type = _SCALE_TYPES.get(scaling.scaleType)
    if scale_type is None:
        raise BadRequestError(f"{scaling.scaleType} is no scaleType")
    config = StreamConfig(
        scaling=ScalingPolicy(scale_type, scaling.targetRate, scaling.scaleFactor, scaling.minNumSegments),
        retention=_retention_of(message.retentionPolicy),
        tags=tuple(dict.fromkeys(sent_tags)),
        timestamp_aggregation_timeout_ms=message.timestampAggregationTimeout,
        rollover_size_bytes=message.rolloverSizeBytes,
    )
    try:
        check_config(config, sent_tags)
    except InvalidArgumentError as error:
        raise BadRequestError(str(error)) from error
    return config


def _retention_of(message: pb.RetentionPolicy) -> RetentionPolicy | None:
    if message.retentionType == pb.RetentionPolicy.UNKNOWN:
        return None
    kind = _RETENTION_TYPES.get(message.retentionType)
    if kind is None:
        raise BadRequestError(f"{message.retentionType} is no retentionType")
    return RetentionPolicy(kind, message.retentionParam, message.retentionMax)


def config_message(id: StreamId, config: StreamConfig) -> pb.StreamConfig:
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


def fill_segment_id(target: pb.SegmentId, stream: StreamId | TableId, segment: int) -> None:
    """Set in place: this is on the path of every read, and building messages to copy them in costs twice."""
    info = target.streamInfo
    info.scope = stream.scope
    info.stream = stream.name
    target.segmentId = segment


def fill_range(target: pb.SegmentRange, stream: StreamId | TableId, segment: Segment) -> None:
    fill_segment_id(target.segmentId, stream, segment.id)
    target.minKey = segment.low
    target.maxKey = segment.high


def ranges_message(stream: StreamId | TableId, segments: Iterable[Segment]) -> pb.SegmentRanges:
    message = pb.SegmentRanges()
    add = message.segmentRanges.add
    for segment in segments:
        fill_range(add(), stream, segment)
    return message


def token_of(name: str) -> str:
    """The continuation token of a page that ends with this name (controller-grpc-api 6.5)."""
    return base64.b64encode(name.encode()).decode()


def name_in_token(token: str) -> str:
    """The name after which the next page begins; empty for the first page."""
    try:
        return base64.b64decode(token, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"not a continuation token: {error}") from error
