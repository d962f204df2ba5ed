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
from sluice.domain.config import StreamConfig, check_config
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import StreamId, TableId
from sluice.domain.segment import Segment
from sluice.stream_messages import stream_config_of

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
    """Raises BadRequestError, too, where the limits do not hold."""
    try:
        config = stream_config_of(message)
        check_config(config, tuple(message.tags.tag))
    except InvalidArgumentError as error:
        raise BadRequestError(str(error)) from error
    return config


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
