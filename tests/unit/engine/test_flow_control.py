"""How many requests may be open: what is paused, and that nothing stays paused for ever."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from sluice.engine.flow_control import FlowControl
from sluice.engine.offsets import Offsets

MAX_OPEN = 10
EVERYTHING = frozenset(range(10))


class Pauses:
    """What is paused now."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self.now: Collection[int] = frozenset()
        self.flow = FlowControl("requests", max_open, self._pause)

    def _pause(self, partitions: Collection[int] | None) -> None:
        self.now = EVERYTHING if partitions is None else frozenset(partitions)


def test_all_is_paused_once_too_many_are_open_and_resumed_at_half() -> None:
    pauses = Pauses()
    for _ in range(MAX_OPEN + 1):
        pauses.flow.took(0, 1)
    assert pauses.now == frozenset(), "a batch is taken whole"
    pauses.flow.batch_ended()
    assert pauses.now == EVERYTHING
    for _ in range(MAX_OPEN - MAX_OPEN // 2):
        pauses.flow.acknowledged(0, 1)
    assert pauses.now == EVERYTHING
    pauses.flow.acknowledged(0, 1)
    assert pauses.now == set()


def test_a_partition_behind_a_stuck_request_is_paused_alone() -> None:
    pauses = Pauses()
    pauses.flow.took(3, MAX_OPEN + 1)
    assert pauses.now == {3}
    pauses.flow.acknowledged(3, MAX_OPEN + 1)
    assert pauses.now == {3}
    pauses.flow.acknowledged(3, MAX_OPEN // 2)
    assert pauses.now == set()


def test_a_partition_that_is_gone_is_not_paused_any_more() -> None:
    pauses = Pauses()
    pauses.flow.took(3, MAX_OPEN + 1)
    pauses.flow.gone([2])
    assert pauses.now == {3}
    pauses.flow.gone([3])
    assert pauses.now == set()


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from(("take", "ack", "revoke")), st.integers(0, 40))))
def test_nothing_is_paused_once_nothing_is_open(max_open: int, script: list[tuple[str, int]]) -> None:
    pauses = Pauses(max_open)
    offsets = [Offsets(), Offsets()]
    opened: list[set[int]] = [set(), set()]
    next_offset = 0

    def acknowledge(partition: int, offset: int) -> None:
        assert offsets[partition].acknowledge(offset)
        opened[partition].discard(offset)
        pauses.flow.acknowledged(partition, offsets[partition].behind_first)

    for step, number in script:
        partition = number % 2
        if step == "take" and partition not in pauses.now:
            offsets[partition].took((0, next_offset), 0)
            opened[partition].add(next_offset)
            next_offset += 1
            pauses.flow.took(partition, offsets[partition].behind_first)
            pauses.flow.batch_ended()
        elif step == "ack" and opened[partition]:
            acknowledge(partition, sorted(opened[partition])[number % len(opened[partition])])
        elif step == "revoke":
            pauses.flow.dropped(offsets[partition].open)
            pauses.flow.gone([partition])
            offsets[partition], opened[partition] = Offsets(), set()
        assert pauses.flow.open == sum(o.open for o in offsets) <= max_open + 1
    for partition in (0, 1):
        for offset in sorted(opened[partition]):
            acknowledge(partition, offset)
    assert pauses.now == set() and pauses.flow.open == 0
