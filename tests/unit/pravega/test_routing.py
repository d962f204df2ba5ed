"""Segment to container: segment-store-cluster A7."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.pravega.routing import consistent_hash, container_of, primary_name

key = st.integers(0, 2**64 - 1)
count = st.integers(1, 1024)


@given(key, count)
def test_a_bucket_is_in_range(value: int, buckets: int) -> None:
    assert 0 <= consistent_hash(value, buckets) < buckets


@given(key, count)
def test_one_bucket_more_moves_keys_only_there(value: int, buckets: int) -> None:
    assert consistent_hash(value, buckets + 1) in (consistent_hash(value, buckets), buckets)


def test_keys_spread_evenly() -> None:
    found = [container_of(f"scope/stream{n}/0.#epoch.0", 8) for n in range(8000)]
    assert all(800 < found.count(container) < 1200 for container in range(8))


@pytest.mark.parametrize(
    "name",
    [
        "s/st/0.#epoch.3",
        "s/st/0.#epoch.0",
        "s/st/0.#epoch.3#index",
        "s/st/0.#epoch.3#transaction." + "0" * 32,
        "s/st/0.#epoch.3#transient." + "0" * 32 + "." + "1" * 32,
        "s/st/0.#epoch.3#transaction." + "0" * 32 + "#transient." + "0" * 32 + "." + "1" * 32,
    ],
)
def test_all_of_one_segment_shares_a_container(name: str) -> None:
    assert primary_name(name) == "s/st/0"
    assert container_of(name, 16) == container_of("s/st/0", 16)


def test_other_names_are_used_whole() -> None:
    assert primary_name("s/_tables/x") == "s/_tables/x"
    assert primary_name("s/kvt_kvtable/2.#epoch.0") == "s/kvt_kvtable/2"
    assert primary_name("s/st/0#transaction.12") == "s/st/0#transaction.12"


def test_the_containers_own_segments_name_their_container() -> None:
    assert container_of("_system/containers/metadata_3", 4) == 3
    assert container_of("_system/containers/storage_metadata_2", 4) == 2
    assert 0 <= container_of("_system/containers/metadata_3$attributes.index", 4) < 4


def test_containers_as_seen_on_a_running_segment_store() -> None:
    """A store answered WrongHost for exactly the names whose container it did not have; see the integration test."""
    seen = [container_of(f"s/t/{number}.#epoch.0", 4) for number in range(16)]
    assert seen == [0, 0, 1, 0, 0, 2, 3, 3, 2, 2, 0, 0, 2, 2, 0, 1]


def test_there_must_be_containers() -> None:
    with pytest.raises(ValueError, match="0 containers"):
        container_of("s/t/0.#epoch.0", 0)
