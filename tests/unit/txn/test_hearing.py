"""What counts as time in which clients could not be heard."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.transaction.state import MAX_LEASE_MS
from txn_manager.hearing import RETURN_MS, SILENCE_MS, Hearing

P = 3


def listening(*acknowledged: int) -> Hearing:
    """An instance that has always owned the partition, and was acknowledged at these times."""
    hearing = Hearing()
    for now in acknowledged:
        hearing.acknowledged(now)
    return hearing


def regular(begin: int, end: int) -> list[int]:
    return list(range(begin, end + 1, 1000))


def test_whoever_was_never_acknowledged_does_not_hear() -> None:
    assert not Hearing().hears(0, 0)


def test_it_hears_as_long_as_it_was_acknowledged_lately() -> None:
    hearing = listening(10_000)
    assert hearing.hears(0, 10_000 + SILENCE_MS)
    assert not hearing.hears(0, 10_000 + SILENCE_MS + 1)


def test_time_in_which_it_heard_is_not_added() -> None:
    assert listening(*regular(0, 60_000)).extension(P, 10_000, 60_000) == 0


def test_an_outage_is_added_with_the_time_that_clients_need_to_return() -> None:
    hearing = listening(*regular(0, 10_000), *regular(25_000, 60_000))
    assert hearing.extension(P, 0, 60_000) == 15_000 + RETURN_MS


def test_only_what_lies_between_the_sign_of_life_and_the_question_counts() -> None:
    hearing = listening(10_000, 30_000)
    assert hearing.extension(P, 20_000, 60_000 - 30_000) == 10_000 + RETURN_MS
    assert hearing.extension(P, 30_000, 31_000) == 0
    assert hearing.extension(P, 0, 10_000) == 0
    assert hearing.extension(P, 0, 14_000) == 4_000 + RETURN_MS


def test_an_outage_that_still_lasts_counts_up_to_now() -> None:
    hearing = listening(*regular(0, 10_000))
    assert hearing.extension(P, 5_000, 12_000) == 0, "not long enough to be one"
    assert hearing.extension(P, 5_000, 40_000) == 30_000 + RETURN_MS


def test_a_partition_that_nobody_owned_is_added_for_that_partition_alone() -> None:
    hearing = listening(*regular(0, 100_000))
    hearing.owned(P, 50_000, 20_000)
    assert hearing.extension(P, 0, 60_000) == 20_000 + RETURN_MS
    assert hearing.extension(P + 1, 0, 60_000) == 0


def test_if_nobody_knows_who_listened_all_time_before_counts() -> None:
    hearing = listening(*regular(0, 100_000))
    hearing.owned(P, 50_000, None)
    assert hearing.extension(P, 10_000, 60_000) == 40_000 + RETURN_MS


def test_a_hand_over_that_was_quick_extends_by_no_more_than_it_took() -> None:
    hearing = listening(*regular(0, 100_000))
    hearing.owned(P, 50_000, 1_500)
    assert hearing.extension(P, 0, 60_000) == 1_500


def test_what_overlaps_counts_once() -> None:
    hearing = listening(*regular(0, 10_000), *regular(30_000, 60_000))
    hearing.owned(P, 35_000, 15_000)
    hearing.owned(P, 36_000, 1_000)
    assert hearing.extension(P, 0, 60_000) == 26_000 + RETURN_MS


def test_what_is_too_old_to_matter_is_forgotten() -> None:
    hearing = Hearing()
    now = 0
    for _ in range(1000):
        now += 10_000
        hearing.acknowledged(now)
        hearing.owned(P, now, 5_000)
    assert len(hearing._outages) <= 2 * MAX_LEASE_MS // 10_000 + 1
    assert len(hearing._unowned[P]) <= 2 * MAX_LEASE_MS // 10_000 + 1
    assert hearing.extension(P, now - MAX_LEASE_MS, now) == MAX_LEASE_MS + RETURN_MS


times = st.integers(0, 200_000)


@given(st.lists(times), st.lists(st.tuples(times, st.none() | times)), times, times)
def test_it_is_never_more_than_the_time_itself_and_the_return(
    acknowledged: list[int], owned: list[tuple[int, int | None]], one: int, other: int
) -> None:
    hearing = listening(*sorted(acknowledged))
    for now, silent_ms in sorted(owned, key=lambda o: o[0]):
        hearing.owned(P, now, silent_ms)
    since, until = sorted((one, other))
    added = hearing.extension(P, since, until)
    assert 0 <= added <= (until - since) + RETURN_MS
    assert added <= SILENCE_MS or added >= RETURN_MS


def test_a_partition_counts_as_heard_again_when_its_silence_matters_to_no_lease() -> None:
    hearing = Hearing()
    taken_over = 10 * MAX_LEASE_MS
    hearing.owned(1, taken_over, None)
    hearing.owned(2, taken_over, SILENCE_MS)
    hearing.acknowledged(taken_over)
    assert not hearing.hears(1, taken_over) and hearing.hears(2, taken_over)
    hearing.acknowledged(taken_over + MAX_LEASE_MS)
    assert not hearing.hears(1, taken_over + MAX_LEASE_MS - 1)
    assert not hearing.hears(2, taken_over + MAX_LEASE_MS), "Kafka was away meanwhile"
    hearing = Hearing()
    hearing.owned(1, taken_over, None)
    hearing.acknowledged(taken_over + MAX_LEASE_MS)
    assert hearing.hears(1, taken_over + MAX_LEASE_MS)
