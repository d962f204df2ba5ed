"""Keys that name partitions."""

import pytest

from sluice.domain.names import fences_aggregate, is_scope_name, is_stream_name, key_of
from sluice.engine.partition import partition_keys, partition_of


@pytest.mark.parametrize("partitions", [1, 2, 16, 64, 100])
def test_every_partition_has_a_key_of_its_own_that_names_nothing_else(partitions: int) -> None:
    keys = partition_keys(partitions)
    assert [partition_of(key, partitions) for key in keys] == list(range(partitions))
    assert not any(is_scope_name(key) or is_stream_name(key) for key in keys)
    assert [key_of(fences_aggregate(key)) for key in keys] == list(keys)


def test_the_key_of_a_partition_is_the_first_that_belongs_there() -> None:
    assert partition_keys(4)[partition_of("#0", 4)] == "#0"
