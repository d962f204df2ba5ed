"""The partition of a table's entry: the hash of the Java client, over a seed that `mmh3` cannot have."""

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega.table_routing import entry_position, murmur3_first_half


@pytest.mark.parametrize(
    ("key", "position"),
    [
        (b"a", 0.6272098046731807),
        (b"key1", 0.011579266115581355),
        (b"customer", 0.4740694593564474),
        (b"0123456789abcdef", 0.3339020757249709),
        (b"sixteen bytes and 1 more", 0.50803210310931),
        ("äöü".encode(), 0.8563613482486392),
        (bytes(16), 0.8153192835338181),
        (bytes(range(256)), 0.7101550448669356),
    ],
)
def test_an_entry_lies_where_the_java_client_looks_for_it(key: bytes, position: float) -> None:
    assert entry_position(key) == position


@given(st.binary(max_size=70), st.integers(0, 2**31 - 1))
def test_the_hash_is_that_of_the_library_for_seeds_it_can_have(data: bytes, seed: int) -> None:
    assert murmur3_first_half(data, seed) == mmh3.hash64(data, seed, signed=False)[0]
