"""Messages on reader groups to values and back: what is kept, what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.gateway.support import GROUP_ID, cut_message, group_message

from api_gateway.edge.errors import BadRequestError
from api_gateway.pravega.convert_groups import group_config_message, group_config_of, id_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import GroupRetention, ReaderGroupConfig
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import GroupId

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (group_message(startingStreamCuts=[cut_message({0: 0}), cut_message({0: 1})]), "twice"),
        (group_message(endingStreamCuts=[cut_message({})] * 2), "twice"),
        (group_message("a/b"), "name of a stream"),
        (group_message(startingStreamCuts=[cut_message({}, scope="")]), "scope is empty"),
        (group_message(startingStreamCuts=[cut_message({}, scope="a/b")]), "name of a stream"),
        (group_message(startingStreamCuts=[pb.StreamCut()]), "scope is empty"),
        (group_message(endingStreamCuts=[cut_message({}, "a_b")]), "name of a stream"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(message: pb.ReaderGroupConfiguration, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        group_config_of(message)


@pytest.mark.parametrize(
    ("start", "end", "fits"),
    [
        ({0: 5}, {0: 5}, True),
        ({0: 5}, {0: 4}, False),
        ({0: 5}, {0: -1}, True),
        ({0: -1}, {0: -1}, True),
        ({0: -1}, {0: 4}, False),
        ({0: 5}, {}, True),
        ({}, {0: 0}, True),
        ({0: 9, 1: 9}, {2: 0, 3: 0}, True),
        ({2: 0, 3: 0}, {0: 9, 1: 9}, False),
        ({0: 0, 3: 0}, {1: 0, 2: 0}, False),
        ({1: 0, 2: 0}, {0: 0, 3: 0}, False),
    ],
)
def test_a_start_lies_before_its_end(start: dict[int, int], end: dict[int, int], fits: bool) -> None:
    message = group_message(startingStreamCuts=[cut_message(start)], endingStreamCuts=[cut_message(end)])
    if fits:
        assert group_config_of(message).ends == {"sc/st": end}
    else:
        with pytest.raises(BadRequestError):
            group_config_of(message)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        (GROUP_ID, GROUP_ID),
        (GROUP_ID.upper(), GROUP_ID),
        ("1-2-3-4-5", "00000001-0002-0003-0004-000000000005"),
        ("0-0-0-0-0", "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_an_id_has_one_form(text: str, id: str) -> None:
    assert id_of(text) == id


@pytest.mark.parametrize(
    "text",
    ["", "x", GROUP_ID.replace("-", ""), f"{{{GROUP_ID}}}", f" {GROUP_ID}", f"{GROUP_ID}\n", "1-2-3-4", "g-2-3-4-5"],
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no UUID"):
        id_of(text)


cut_values = st.dictionaries(st.integers(0, 2**62), st.integers(-1, 2**62), max_size=3)
names = st.from_regex(r"(sc|other)/_?[A-Za-z0-9.\-]{1,20}", fullmatch=True)
configs = st.builds(
    ReaderGroupConfig,
    id=st.uuids().map(str),
    starts=st.dictionaries(names, cut_values, min_size=1, max_size=4),
    ends=st.dictionaries(names, st.just({}), max_size=4),
    retention=st.sampled_from(GroupRetention),
    refresh_ms=INT64,
    checkpoint_interval_ms=INT64,
    max_outstanding_checkpoints=st.integers(1, 2**31 - 1),
    generation=INT64,
)


@given(configs)
def test_a_configuration_survives_the_way_to_a_client_and_back(config: Any) -> None:
    sent = group_config_message(GroupId("sc", "rg"), config)
    message = pb.ReaderGroupConfiguration.FromString(sent.SerializeToString())
    assert (message.scope, message.readerGroupName) == ("sc", "rg")
    streams = [cut.streamInfo for cut in message.startingStreamCuts]
    assert [f"{stream.scope}/{stream.stream}" for stream in streams] == list(config.starts)
    assert group_config_of(message) == config
