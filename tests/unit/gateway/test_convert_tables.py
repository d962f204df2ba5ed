"""Messages on key-value tables to values and back."""

import pytest
from unit.gateway.support import table_message

from api_gateway.pravega.convert_tables import table_config_message, table_config_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import TableConfig
from sluice.domain.ids import TableId

MAX_INT = 2**31 - 1


@pytest.mark.parametrize(
    ("message", "config"),
    [
        (table_message(secondaryKeyLength=3, rolloverSizeBytes=2**62), TableConfig(2, 8, 3, 2**62)),
        (table_message(partitionCount=MAX_INT, primaryKeyLength=MAX_INT), TableConfig(MAX_INT, MAX_INT)),
    ],
)
def test_a_configuration_survives_both_ways(message: pb.KeyValueTableConfig, config: TableConfig) -> None:
    assert table_config_of(message) == config
    assert table_config_message(TableId("sc", "kv"), config) == message
