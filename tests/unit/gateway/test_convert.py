"""Messages to values and back: what is kept, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_gateway.edge.errors import BadRequestError
from api_gateway.pravega import convert
from api_gateway.pravega.convert import LONGEST_NAME, stream_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.names import MARK_PREFIX, MAX_NAME_LENGTH
from sluice.domain.segment import Segment
from sluice.stream_messages import stream_config_message

INFO = pb.StreamInfo(scope="sc", stream="st")


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


configs = st.builds(
    StreamConfig,
    scaling=st.builds(ScalingPolicy, st.sampled_from(ScaleType), INT32, INT32, INT32),
    retention=st.none() | st.builds(RetentionPolicy, st.sampled_from(RetentionType), INT64, INT64),
    tags=st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=9, unique=True).map(tuple),
    timestamp_aggregation_timeout_ms=INT64,
    rollover_size_bytes=st.integers(0, 2**63 - 1),
)


@given(configs)
def test_a_configuration_survives_the_way_to_a_client_and_back(config: StreamConfig) -> None:
    message = pb.StreamConfig.FromString(stream_config_message(StreamId("sc", "st"), config).SerializeToString())
    assert message.streamInfo == INFO
    assert message.HasField("scalingPolicy")
    assert message.HasField("tags")
    assert message.HasField("retentionPolicy") == (config.retention is not None)
    assert convert.config_of(message) == config


def test_every_part_of_a_range_is_set_even_if_it_is_zero() -> None:
    (message,) = convert.ranges_message(StreamId("sc", "st"), [Segment(0, 0.0, 1.0)]).segmentRanges
    assert message.HasField("segmentId")
    assert message.segmentId.HasField("streamInfo")
    assert (message.segmentId.streamInfo.scope, message.segmentId.streamInfo.stream) == ("sc", "st")
    assert (message.segmentId.segmentId, message.minKey, message.maxKey) == (0, 0.0, 1.0)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_token_holds_the_name_and_is_not_empty(name: str) -> None:
    token = convert.token_of(name)
    assert token
    assert convert.name_in_token(token) == name


@pytest.mark.parametrize("token", ["*", "abc", "YQ", "ä", "gICA", "YQ==\n"])
def test_a_token_of_another_origin_is_refused(token: str) -> None:
    with pytest.raises(BadRequestError, match="continuation token"):
        convert.name_in_token(token)


def test_of_a_name_that_is_far_too_long_the_beginning_counts() -> None:
    found = stream_of(pb.StreamInfo(scope="s" * 1_000_000, stream=MARK_PREFIX * 200_000))
    assert (len(found.scope), len(found.name)) == (LONGEST_NAME, LONGEST_NAME)
    assert LONGEST_NAME > 2 * MAX_NAME_LENGTH
