"""Who is gone: counting, each by a clock of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at_least_once.membership_state import (
    Decision,
    Gone,
    MembershipState,
    Observer,
    beat,
    declare_gone,
    evolve,
    join,
    leave,
)

MISSED = 10


def after(state: MembershipState, *decisions: Decision) -> MembershipState:
    for decision in decisions:
        for update in decision(state):
            state = evolve(state, update)
    return state


def test_a_member_joins_once_beats_and_leaves() -> None:
    state = after(MembershipState(), join("a"), join("a"), beat("a"), beat("a"), join("b"))
    assert state.members == {"a": 2, "b": 0}
    assert after(state, leave("a"), leave("a")).members == {"b": 0}


def test_a_beat_of_a_process_that_is_no_member_fails() -> None:
    with pytest.raises(Gone):
        beat("a")(MembershipState({"b": 1}))


def test_a_silent_member_is_gone_after_ten_looks() -> None:
    observer, silent = Observer(MISSED), {"a": 3}
    assert [bool(observer.look(silent)) for _ in range(MISSED + 1)] == [False] * MISSED + [True]
    assert observer.look(silent) == {"a": 3}


def test_a_member_that_beats_at_the_last_moment_stays() -> None:
    silent = {"a": 3, "b": 4}
    state = after(MembershipState({"a": 3, "b": 5, "c": 0}), declare_gone(silent, "c"))
    assert state.members == {"b": 5, "c": 0}


@given(st.lists(st.integers(0, MISSED), max_size=60))
def test_a_member_that_beats_in_time_is_never_gone(looks_after_beats: list[int]) -> None:
    """The look after a beat sees it; only those behind it count as missed."""
    observer, state = Observer(MISSED), after(MembershipState(), join("a"))
    for looks in looks_after_beats:
        state = after(state, beat("a"))
        for _ in range(looks):
            assert not observer.look(state.members)
