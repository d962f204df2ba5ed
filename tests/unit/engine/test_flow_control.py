"""How many requests may be open: what is paused, and that nothing stays paused for ever."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from sluice.engine.flow_control import BEHIND_PER_OPEN, FlowControl
from sluice.engine.offsets import Offsets

MAX_OPEN = 12
MAX_BEHIND = MAX_OPEN * BEHIND_PER_OPEN


class Pauses:
    """What is paused now. The open requests of a partition stand one behind the other."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self.now: Collection[int] = frozenset()
        self.flow = FlowControl("requests", max_open, self._pause)
        self.open: dict[int, int] = {}

    def _pause(self, partitions: Collection[int]) -> None:
        self.now = partitions

    def take(self, **counts: int) -> None:
        """A batch with so many of each partition, `p0` and so on."""
        for name, count in counts.items():
            partition = int(name[1:])
            for _ in range(count):
                self.open[partition] = self.open.get(partition, 0) + 1
                self.flow.took(partition, self.open[partition])
        self.flow.batch_ended()

    def acknowledge(self, partition: int, count: int) -> None:
        for _ in range(count):
            self.open[partition] -= 1
            self.flow.acknowledged(partition, self.open[partition])


def test_the_partitions_with_most_are_paused_until_the_rest_has_half() -> None:
    pauses = Pauses()
    pauses.take(p0=4, p1=5, p2=3)
    assert pauses.now == frozenset()
    pauses.take(p0=1, p3=2)
    assert pauses.now == {0, 1}, "5 of 15 are left"


def test_all_go_on_when_no_more_than_half_are_open() -> None:
    pauses = Pauses()
    pauses.take(p0=7, p1=6)
    assert pauses.now == {0}
    pauses.acknowledge(1, 6)
    assert pauses.now == {0}
    pauses.acknowledge(0, 1)
    assert pauses.now == set()


def test_a_partition_goes_on_with_its_share_however_many_the_others_have() -> None:
    pauses = Pauses()
    pauses.take(p0=9, p1=4)
    assert pauses.now == {0}
    pauses.acknowledge(0, 5)
    assert pauses.now == {0}
    pauses.acknowledge(0, 1)
    assert pauses.now == set(), "3 are half of a half"


def test_what_a_paused_partition_still_delivers_pauses_no_other() -> None:
    pauses = Pauses()
    pauses.take(p0=12, p1=12)
    pauses.take(p2=1)
    pauses.acknowledge(2, 1)
    pauses.take(p0=1)
    assert pauses.now == {0, 1}
    pauses.take(p2=3)
    assert pauses.now == {0, 1}, "nor does what goes on within its share"


def test_stuck_requests_of_some_partitions_hold_up_no_other() -> None:
    pauses = Pauses()
    pauses.take(p0=MAX_OPEN, p1=MAX_OPEN)
    for _ in range(100):
        pauses.take(p2=5)
        pauses.acknowledge(2, 5)
        assert pauses.now == {0, 1}


def test_a_partition_behind_a_stuck_request_is_paused_alone() -> None:
    pauses = Pauses()
    pauses.flow.took(2, 1)
    pauses.flow.took(3, MAX_BEHIND + 1)
    pauses.flow.batch_ended()
    assert pauses.now == {3}, "two are open, the others are acknowledged"
    pauses.flow.acknowledged(3, MAX_BEHIND + 1)
    assert pauses.now == {3}
    pauses.flow.took(3, MAX_BEHIND // 2 + 1)
    pauses.flow.acknowledged(3, MAX_BEHIND // 2)
    assert pauses.now == set()


def test_a_partition_that_is_gone_is_not_paused_any_more_and_makes_room() -> None:
    pauses = Pauses()
    pauses.take(p0=MAX_OPEN, p1=5, p2=4)
    assert pauses.now == {0, 1}
    pauses.flow.gone(0)
    assert pauses.now == {1}
    pauses.flow.gone(2)
    assert pauses.now == set() and pauses.flow.open == 5


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
            pauses.flow.gone(partition)
            offsets[partition], opened[partition] = Offsets(), set()
        assert pauses.flow.open == sum(map(len, opened)) <= max_open + max_open // 2 + len(offsets)
    for partition in (0, 1):
        for offset in sorted(opened[partition]):
            acknowledge(partition, offset)
    assert pauses.now == set() and pauses.flow.open == 0
