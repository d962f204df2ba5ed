"""What counts as time in which no sign of life could arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.transaction.state import MAX_LEASE_MS
from txn_manager.outage_tracker import RETURN_MS, SILENCE_MS, OutageTracker

P = 3


def listening(*acknowledged: int) -> OutageTracker:
    """An instance that has always owned the partition, and was acknowledged at these times."""
    outages = OutageTracker()
    for now in acknowledged:
        outages.acknowledged(now)
    return outages


def regular(begin: int, end: int) -> list[int]:
    return list(range(begin, end + 1, 1000))


def test_it_receives_as_long_as_it_was_acknowledged_lately() -> None:
    assert not OutageTracker().is_receiving(0, 0)
    outages = listening(10_000)
    assert outages.is_receiving(0, 10_000 + SILENCE_MS)
    assert not outages.is_receiving(0, 10_000 + SILENCE_MS + 1)


def test_an_outage_alone_is_added_with_the_time_that_clients_need_to_return() -> None:
    outages = listening(*regular(0, 10_000), *regular(25_000, 60_000))
    assert outages.extension(P, 0, 60_000) == 15_000 + RETURN_MS
    assert outages.extension(P, 30_000, 60_000) == 0


def test_only_what_lies_between_the_sign_of_life_and_the_question_counts() -> None:
    outages = listening(10_000, 30_000)
    assert outages.extension(P, 20_000, 60_000 - 30_000) == 10_000 + RETURN_MS
    assert outages.extension(P, 30_000, 31_000) == 0
    assert outages.extension(P, 0, 10_000) == 0
    assert outages.extension(P, 0, 14_000) == 4_000 + RETURN_MS


def test_an_outage_that_still_lasts_counts_up_to_now() -> None:
    outages = listening(*regular(0, 10_000))
    assert outages.extension(P, 5_000, 12_000) == 0, "not long enough to be one"
    assert outages.extension(P, 5_000, 40_000) == 30_000 + RETURN_MS


@pytest.mark.parametrize(
    ("silent_ms", "extension"),
    [(20_000, 20_000 + RETURN_MS), (None, 50_000 + RETURN_MS), (1_500, 1_500)],
    ids=["time without an owner", "unknown who listened: all time before", "a quick hand-over"],
)
def test_time_before_a_take_over_is_added_for_that_partition_alone(silent_ms: int | None, extension: int) -> None:
    outages = listening(*regular(0, 100_000))
    outages.owned(P, 50_000, silent_ms)
    assert outages.extension(P, 0, 60_000) == extension
    assert outages.extension(P + 1, 0, 60_000) == 0


def test_what_overlaps_counts_once() -> None:
    outages = listening(*regular(0, 10_000), *regular(30_000, 60_000))
    outages.owned(P, 35_000, 15_000)
    outages.owned(P, 36_000, 1_000)
    assert outages.extension(P, 0, 60_000) == 26_000 + RETURN_MS


def test_silences_are_remembered_for_as_long_as_the_longest_lease() -> None:
    outages = OutageTracker()
    now = 0
    for _ in range(1000):
        now += 10_000
        outages.acknowledged(now)
        outages.owned(P, now, 5_000)
    assert outages.extension(P, now - MAX_LEASE_MS, now) == MAX_LEASE_MS + RETURN_MS


def test_a_partition_that_takes_checks_at_once_gives_no_time_to_return() -> None:
    outages = OutageTracker()
    for partition, took_ms in ((P, SILENCE_MS), (P + 1, SILENCE_MS + 1)):
        outages.sending(partition, 10_000)
        outages.sent(partition, 10_000 + took_ms)
    assert outages.return_ends_at(P, 13_000) < 10_000
    assert outages.return_ends_at(P + 1, 60_000) == 13_001 + RETURN_MS
    outages.acknowledged(13_001)
    assert outages.is_receiving(P, 13_001) and not outages.is_receiving(P + 1, 13_001)


times = st.integers(0, 200_000)


@given(st.lists(times), st.lists(st.tuples(times, st.none() | times)), times, times)
def test_it_is_never_more_than_the_time_itself_and_the_return(
    acknowledged: list[int], owned: list[tuple[int, int | None]], one: int, other: int
) -> None:
    outages = listening(*sorted(acknowledged))
    for now, silent_ms in sorted(owned, key=lambda o: o[0]):
        outages.owned(P, now, silent_ms)
    since, until = sorted((one, other))
    added = outages.extension(P, since, until)
    assert 0 <= added <= (until - since) + RETURN_MS
    assert added <= SILENCE_MS or added >= RETURN_MS


def test_a_partition_counts_as_received_when_its_silence_matters_to_no_lease() -> None:
    outages = OutageTracker()
    taken_over = 10 * MAX_LEASE_MS
    outages.owned(1, taken_over, None)
    outages.owned(2, taken_over, SILENCE_MS)
    outages.acknowledged(taken_over)
    assert not outages.is_receiving(1, taken_over) and outages.is_receiving(2, taken_over)
    outages.acknowledged(taken_over + MAX_LEASE_MS)
    assert not outages.is_receiving(1, taken_over + MAX_LEASE_MS - 1)
    assert not outages.is_receiving(2, taken_over + MAX_LEASE_MS), "Kafka was away meanwhile"
    outages = OutageTracker()
    outages.owned(1, taken_over, None)
    outages.acknowledged(taken_over + MAX_LEASE_MS)
    assert outages.is_receiving(1, taken_over + MAX_LEASE_MS)
