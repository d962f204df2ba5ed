"""Messages on key-value tables to values and back: what is kept, what is refused."""

import pytest
from unit.gateway.support import table_message

from api_gateway.convert_tables import table_config_message, table_config_of, table_of
from api_gateway.errors import BadRequestError
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import TableConfig
from sluice.domain.ids import TableId

MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("message", "config"),
    [
        (table_message(partitionCount=1, primaryKeyLength=1), TableConfig(1, 1)),
        (table_message(secondaryKeyLength=3, rolloverSizeBytes=2**62), TableConfig(2, 8, 3, 2**62)),
        (table_message(partitionCount=MOST, primaryKeyLength=MOST), TableConfig(MOST, MOST)),
    ],
)
def test_a_configuration_survives_both_ways(message: pb.KeyValueTableConfig, config: TableConfig) -> None:
    assert table_config_of(message) == config
    assert table_config_message(TableId("sc", "kv"), config) == message


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (table_message(partitionCount=0), "partitionCount"),
        (table_message(partitionCount=-1), "partitionCount"),
        (table_message(primaryKeyLength=0), "primaryKeyLength"),
        (table_message(primaryKeyLength=-1), "primaryKeyLength"),
        (table_message(secondaryKeyLength=-1), "secondaryKeyLength"),
        (table_message(rolloverSizeBytes=-1), "rolloverSizeBytes"),
        (pb.KeyValueTableConfig(), "partitionCount"),
    ],
)
def test_a_configuration_over_a_limit_is_refused(message: pb.KeyValueTableConfig, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        table_config_of(message)


def test_an_empty_name_is_refused() -> None:
    assert table_of(pb.KeyValueTableInfo(scope="sc", kvtName="kv")) == ("sc", "kv")
    with pytest.raises(BadRequestError, match="table's name"):
        table_of(pb.KeyValueTableInfo(scope="sc"))
    with pytest.raises(BadRequestError, match="scope"):
        table_of(pb.KeyValueTableInfo(kvtName="kv"))
