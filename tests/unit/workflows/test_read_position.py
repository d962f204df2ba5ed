"""From where the next driver reads reports: nothing that is not saved lies before it."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.workflows.read_position import ReadPosition
from sluice.workflows.report_buckets import Outcome


def outcome(at: int, end: int, unsaved_since: int | None, bucket: int = 0) -> Outcome:
    return Outcome([], [], bucket, None, unsaved_since=unsaved_since, ends={0: end}, at=at)


def test_it_is_that_before_the_oldest_change_that_is_not_saved() -> None:
    position = ReadPosition({0: 5, 1: 9})
    for at in (10, 20_000, 40_000):
        position.observe([outcome(at, 5 + at, 10)])
    assert position.saved() == {0: 5, 1: 9}
    position.observe([outcome(60_000, 60_005, 40_000)])
    assert position.saved() == {0: 20_005, 1: 9}
    position.observe([outcome(60_000, 60_005, None)])
    assert position.saved() == {0: 60_005, 1: 9}


def test_a_bucket_that_took_no_step_still_has_what_is_not_saved() -> None:
    position = ReadPosition({0: 0})
    position.observe([outcome(10, 7, 10, bucket=1), outcome(10, 8, None, bucket=2)])
    position.observe([outcome(90_000, 9, None, bucket=2)])
    assert position.saved() == {0: 0}


@given(st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 9), st.integers(0, 2), st.booleans()), max_size=30))
def test_no_report_behind_a_change_that_is_not_saved_is_left_out(steps: list[tuple[int, int, int, bool]]) -> None:
    position, at, end = ReadPosition({0: 0}), 0, 0
    dirty: dict[int, tuple[int, int]] = {}
    """By bucket the time and the offset of its first change that is not saved."""
    for pause, reports, bucket, saves in steps:
        at += pause + 1
        if saves:
            dirty.pop(bucket, None)
        else:
            dirty.setdefault(bucket, (at, end))
        end += reports
        position.observe([outcome(at, end, dirty[bucket][0] if bucket in dirty else None, bucket)])
        assert position.saved()[0] <= min((offset for _, offset in dirty.values()), default=end)
        if not dirty:
            assert position.saved() == {0: end}
