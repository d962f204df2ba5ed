"""Segment ids and names: stream-and-transaction-semantics 2.1 and 10.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.domain import segment as ids

int32 = st.integers(0, 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
name = st.from_regex(r"\A_?[A-Za-z0-9.\-]{1,20}\Z")


def test_examples_of_the_reference() -> None:
    segment = ids.segment_id(1, 2)
    assert segment == (1 << 32) | 2
    assert ids.segment_name("myscope", "s", segment) == "myscope/s/2.#epoch.1"
    assert ids.kvt_segment_name("sc", "t", 0) == "sc/t_kvtable/0.#epoch.0"
    assert (
        ids.transaction_segment_name("myscope", "s", ids.segment_id(1, 0), 1 << 32, 7)
        == "myscope/s/0.#epoch.1#transaction.00000001000000000000000000000007"
    )


def test_a_transaction_segment_carries_the_epoch_of_its_transaction() -> None:
    name = ids.transaction_segment_name("s", "t", ids.segment_id(0, 3), (5 << 32) | 9, -1)
    assert name == "s/t/3.#epoch.5#transaction.0000000500000009ffffffffffffffff"
    assert ids.parse_segment_name(name) == ("s", "t", ids.segment_id(5, 3), ((5 << 32) | 9, -1))


@given(name, name, int32, int32)
def test_a_segment_name_reads_back(scope: str, stream: str, epoch: int, number: int) -> None:
    segment = ids.segment_id(epoch, number)
    assert (ids.epoch_of(segment), ids.number_of(segment)) == (epoch, number)
    assert ids.parse_segment_name(ids.segment_name(scope, stream, segment)) == (scope, stream, segment, None)


@given(name, name, int32, st.integers(0, 2**63 - 1), int64)
def test_a_transaction_segment_name_reads_back(scope: str, stream: str, number: int, high: int, low: int) -> None:
    written = ids.transaction_segment_name(scope, stream, number, high, low)
    assert ids.parse_segment_name(written) == (scope, stream, ids.segment_id(high >> 32, number), (high, low))


def test_a_bare_number_is_of_epoch_0_and_a_scope_may_be_missing() -> None:
    assert ids.parse_segment_name("sc/st/4") == ("sc", "st", 4, None)
    assert ids.parse_segment_name("st/4.#epoch.2") == ("", "st", ids.segment_id(2, 4), None)


@pytest.mark.parametrize(
    "name",
    ["", "s", "s/t", "s/t/x", "a/b/c/0.#epoch.0", "s/t/0.#epoch.", "s/t/0.#epoch.0#transaction.12", "s/t/4294967296"],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        ids.parse_segment_name(name)


@pytest.mark.parametrize(("epoch", "number"), [(-1, 0), (0, -1), (2**31, 0), (0, 2**31)])
def test_ids_have_bounds(epoch: int, number: int) -> None:
    with pytest.raises(ValueError, match="32-bit"):
        ids.segment_id(epoch, number)
