"""Messages to values and back: what is kept, what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_gateway import convert
from api_gateway.errors import BadRequestError
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment

INFO = pb.StreamInfo(scope="sc", stream="st")


def _with_types(scale: Any, retention: Any) -> pb.StreamConfig:
    """With numbers that are in no enum, as an unknown client could send them."""
    return pb.StreamConfig(
        scalingPolicy=pb.ScalingPolicy(scaleType=scale), retentionPolicy=pb.RetentionPolicy(retentionType=retention)
    )


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("message", "config"),
    [
        (pb.StreamConfig(), StreamConfig(scaling=ScalingPolicy(min_segments=0))),
        (
            pb.StreamConfig(
                scalingPolicy=pb.ScalingPolicy(
                    scaleType="BY_RATE_IN_EVENTS_PER_SEC", targetRate=100, scaleFactor=3, minNumSegments=4
                ),
                retentionPolicy=pb.RetentionPolicy(retentionType="TIME", retentionParam=5, retentionMax=2**63 - 1),
                tags=pb.Tags(tag=["b", "a", "b"]),
                timestampAggregationTimeout=7,
                rolloverSizeBytes=8,
            ),
            StreamConfig(
                scaling=ScalingPolicy(ScaleType.EVENTS, 100, 3, 4),
                retention=RetentionPolicy(RetentionType.TIME, 5, 2**63 - 1),
                tags=("b", "a"),
                timestamp_aggregation_timeout_ms=7,
                rollover_size_bytes=8,
            ),
        ),
        (
            pb.StreamConfig(
                scalingPolicy=pb.ScalingPolicy(scaleType="BY_RATE_IN_KBYTES_PER_SEC", minNumSegments=-1),
                retentionPolicy=pb.RetentionPolicy(retentionType="SIZE", retentionParam=1),
            ),
            StreamConfig(
                scaling=ScalingPolicy(ScaleType.KBYTES, min_segments=-1),
                retention=RetentionPolicy(RetentionType.SIZE, 1, 0),
            ),
        ),
        (
            pb.StreamConfig(retentionPolicy=pb.RetentionPolicy(retentionType="UNKNOWN", retentionMax=2**63 - 1)),
            StreamConfig(scaling=ScalingPolicy(min_segments=0)),
        ),
    ],
)
def test_a_configuration_is_taken_as_sent(message: pb.StreamConfig, config: StreamConfig) -> None:
    assert convert.config_of(message) == config


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (_with_types(3, 0), "scaleType"),
        (_with_types(-1, 0), "scaleType"),
        (_with_types(0, 3), "retentionType"),
        (pb.StreamConfig(rolloverSizeBytes=-1), "rolloverSizeBytes"),
        (pb.StreamConfig(tags=pb.Tags(tag=["same"] * 128)), "128 tags"),
        (pb.StreamConfig(tags=pb.Tags(tag=["x" * 256])), "256 characters"),
    ],
)
def test_a_configuration_over_a_limit_is_refused(message: pb.StreamConfig, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        convert.config_of(message)


def test_a_configuration_at_its_limits_is_taken() -> None:
    tags = ["x" * 255, *(str(i) for i in range(126))]
    assert len(convert.config_of(pb.StreamConfig(tags=pb.Tags(tag=tags))).tags) == 127


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
    message = pb.StreamConfig.FromString(convert.config_message(StreamId("sc", "st"), config).SerializeToString())
    assert message.streamInfo == INFO
    assert message.HasField("scalingPolicy")
    assert message.HasField("tags")
    assert message.HasField("retentionPolicy") == (config.retention is not None)
    assert convert.config_of(message) == config


@pytest.mark.parametrize(
    "info", [pb.StreamInfo(), pb.StreamInfo(scope="sc"), pb.StreamInfo(stream="st")], ids=["both", "stream", "scope"]
)
def test_an_empty_name_is_refused(info: pb.StreamInfo) -> None:
    with pytest.raises(BadRequestError, match="is empty"):
        convert.stream_of(info)


def test_an_empty_scope_a_negative_epoch_and_an_empty_cut_are_refused() -> None:
    with pytest.raises(BadRequestError, match="scope is empty"):
        convert.scope_of("")
    with pytest.raises(BadRequestError, match="negative"):
        convert.epoch_of(-1)
    with pytest.raises(BadRequestError, match="cut is empty"):
        convert.cut_of({}.items())


def test_what_is_right_is_given_back() -> None:
    assert convert.scope_of("sc") == "sc"
    assert convert.stream_of(INFO) == ("sc", "st")
    assert convert.epoch_of(0) == 0
    assert convert.cut_of({1: -1}.items()) == {1: -1}


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


def test_no_token_is_the_first_page() -> None:
    assert convert.name_in_token("") == ""


@pytest.mark.parametrize("token", ["*", "abc", "YQ", "ä", "gICA", "YQ==\n"])
def test_a_token_of_somebody_else_is_refused(token: str) -> None:
    with pytest.raises(BadRequestError, match="continuation token"):
        convert.name_in_token(token)
