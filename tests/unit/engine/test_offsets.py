"""Which requests are acknowledged: the position, the floor, and what is open."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.engine.offsets import Offsets


def taken(*offsets: int, epoch: int = 0) -> Offsets:
    made = Offsets()
    for offset in offsets:
        made.took((epoch, offset), 1000 + offset)
    return made


def test_nothing_is_known_before_the_first_request() -> None:
    made = Offsets()
    assert (made.position, made.floor, made.behind_first) == (None, (-1, 0), 0)
    assert not made.runs_backwards(0) and not made.acknowledge(0)


def test_the_position_stays_before_the_first_that_is_open() -> None:
    made = taken(5, 6, 7)
    assert made.acknowledge(6) and made.acknowledge(7)
    assert (made.position, made.behind_first, list(made.appended)) == (5, 3, [1005, 1006, 1007])
    assert made.acknowledge(5)
    assert (made.position, made.behind_first, list(made.appended)) == (8, 0, [])


def test_offsets_that_the_topic_does_not_have_are_passed() -> None:
    made = taken(5, 9)
    assert not made.acknowledge(7) or made.position == 5
    made.acknowledge(5)
    assert made.position == 6
    made.acknowledge(9)
    assert made.position == 10


def test_only_an_open_request_can_be_acknowledged_and_only_once() -> None:
    made = taken(5, 6, 7)
    assert [made.acknowledge(n) for n in (4, 8, 6, 6, 5, 5)] == [False, False, True, False, True, False]
    assert made.behind_first == 1


def test_offsets_run_backwards_at_or_below_the_last_one_taken() -> None:
    made = taken(5, 6)
    assert [made.runs_backwards(n) for n in (5, 6, 7)] == [True, True, False]
    made.acknowledge(5)
    made.acknowledge(6)
    assert [made.runs_backwards(n) for n in (5, 6, 7)] == [True, True, False]


def test_the_floor_has_the_leader_epoch_of_what_was_acknowledged_last() -> None:
    made = taken(5, 6, epoch=1)
    made.took((3, 7), 0)
    assert made.floor == (1, 5)
    made.acknowledge(5)
    made.acknowledge(6)
    assert made.floor == (1, 7) and made.floor < (3, 7), "the next one is not below it"
    made.acknowledge(7)
    assert made.floor == (3, 8)


@given(st.data())
def test_all_below_the_position_are_acknowledged_and_it_only_grows(data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=30))
    offsets = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    made, acknowledged, positions = taken(*offsets), set[int](), list[int]()
    for offset in data.draw(st.permutations(offsets)):
        assert made.acknowledge(offset)
        acknowledged.add(offset)
        assert made.position is not None
        positions.append(made.position)
        assert all((n in acknowledged) for n in offsets if n < made.position)
        assert made.behind_first == sum(n >= made.position for n in offsets)
    assert positions == sorted(positions) and made.position == offsets[-1] + 1 and made.behind_first == 0
