"""The rules of a reader group, under random joins, deaths, freezes and scalings."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.effort import effort
from unit.at_least_once.stream_model import Reader, World

from at_least_once.group_state import (
    GroupState,
    Held,
    NotOnline,
    NotTheReader,
    begin,
    complete,
    evolve,
    rebalance,
    record,
)
from sluice_client import ControllerApi, find_start

_CHOICE = st.integers(0, 1000)
_ROUNDS = 200


class Group(RuleBasedStateMachine):
    """Readers come, work, stop at any point, stand still and wake up, while the stream is written and scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen: dict[str, Reader] = {}
        self.forced = False

    @initialize(segments=st.integers(1, 4))
    def start(self, segments: int) -> None:
        self.world = World(segments)

    def one_of(self, readers: dict[str, Reader], choice: int) -> Reader:
        return readers[sorted(readers)[choice % len(readers)]]

    @rule(events=st.integers(1, 5), choice=_CHOICE)
    def write(self, events: int, choice: int) -> None:
        active = self.world.stream.active
        self.world.stream.segments[active[choice % len(active)]].length += events

    @rule(choice=_CHOICE, parts=st.integers(2, 3))
    def split(self, choice: int, parts: int) -> None:
        self.world.stream.replace(choice % len(self.world.stream.active), 1, parts)

    @precondition(lambda self: len(self.world.stream.active) > 1)
    @rule(choice=_CHOICE, new=st.integers(1, 2))
    def merge(self, choice: int, new: int) -> None:
        self.world.stream.replace(choice % (len(self.world.stream.active) - 1), 2, new)

    @precondition(lambda self: len(self.world.readers) < 5)
    @rule()
    def join(self) -> None:
        self.world.join()

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE)
    def balance(self, choice: int) -> None:
        self.world.rebalance(self.one_of(self.world.readers, choice))

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE, events=st.integers(1, 4))
    def process(self, choice: int, events: int) -> None:
        self.world.process(self.one_of(self.world.readers, choice), events)

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE)
    def record(self, choice: int) -> None:
        self.world.record(self.one_of(self.world.readers, choice))

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE)
    def finish(self, choice: int) -> None:
        self.world.complete(self.one_of(self.world.readers, choice))

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE)
    def leave(self, choice: int) -> None:
        reader = self.one_of(self.world.readers, choice)
        self.world.record(reader)
        self.world.depart(reader.name)
        del self.world.readers[reader.name]

    @precondition(lambda self: self.world.readers)
    @rule(choice=_CHOICE)
    def freeze(self, choice: int) -> None:
        """Dead or standing still: no other process can see which."""
        reader = self.one_of(self.world.readers, choice)
        self.frozen[reader.name] = self.world.readers.pop(reader.name)
        self.forced = True

    @precondition(lambda self: self.frozen)
    @rule()
    def prune(self) -> None:
        self.world.depart(*self.frozen)

    @precondition(lambda self: self.frozen)
    @rule(choice=_CHOICE, events=st.integers(1, 4))
    def thaw(self, choice: int, events: int) -> None:
        """It goes on in the middle of what it did, and finds out before it moves anything."""
        reader = self.one_of(self.frozen, choice)
        del self.frozen[reader.name]
        if reader.name in self.world.state.readers:
            self.world.readers[reader.name] = reader
            return
        before = self.world.state
        for step in (self.world.record, self.world.complete, self.world.rebalance):
            with pytest.raises(NotOnline):
                step(reader)
        assert self.world.state == before

    @invariant()
    def nothing_is_amiss(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        """Whatever happened: those who are left, or one who comes, read everything to the end."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.stream.seal()
        world.depart(*self.frozen)
        if not world.readers:
            world.join()
        for _ in range(_ROUNDS):
            for reader in world.readers.values():
                world.rebalance(reader)
                world.process(reader, 1000)
                world.complete(reader)
            world.check()
            if not world.state.assigned and not world.state.unassigned:
                break
        assert not world.state.assigned and not world.state.unassigned and not world.state.waiting
        for name, segment in world.stream.segments.items():
            times = world.processed.get(name, [])
            assert len(times) == segment.length and all(times), f"{name}: {times} of {segment.length}"
            assert self.forced or set(times) <= {1}, f"{name} was processed again, and no reader had died: {times}"


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=effort(100, 40), deadline=None)


def shares(readers: int, segments: int) -> list[int]:
    """How many segments each reader has when all have looked often enough."""
    world = World(segments)
    for _ in range(readers):
        world.join()
    for _ in range(segments + 2):
        for reader in world.readers.values():
            world.rebalance(reader)
    before = world.state
    for reader in world.readers.values():
        world.rebalance(reader)
    assert world.state == before, "it does not come to rest"
    return sorted(len(reader.held) for reader in world.readers.values())


@pytest.mark.parametrize(
    ("readers", "segments", "expected"),
    [(1, 8, [8]), (4, 8, [2, 2, 2, 2]), (3, 8, [2, 3, 3]), (3, 4, [1, 1, 2]), (4, 2, [0, 0, 1, 1])],
)
def test_segments_are_shared_fairly(readers: int, segments: int, expected: list[int]) -> None:
    assert shares(readers, segments) == expected


def test_a_reader_moves_no_position_of_another_one() -> None:
    state = GroupState(True, frozenset({"a", "b"}), {"s": Held("a", 5)})
    for decision in (record("b", {"s": 9}), complete("b", "s", {})):
        with pytest.raises(NotTheReader):
            decision(state)
    for decision in (record("c", {"s": 9}), complete("c", "s", {}), rebalance("c")):
        with pytest.raises(NotOnline):
            decision(state)


def test_positions_only_move_forward() -> None:
    state = GroupState(True, frozenset({"a"}), {"s": Held("a", 5), "t": Held("a", 5)})
    (update,) = record("a", {"s": 4, "t": 6})(state)
    assert evolve(state, update).held_by("a") == {"s": 5, "t": 6}
    assert record("a", {"s": 4, "t": 5})(state) == []


def test_a_group_begins_once() -> None:
    state = GroupState()
    for update in begin({"s": 7}, {})(state):
        state = evolve(state, update)
    assert state.unassigned == {"s": 7}
    assert begin({"s": 0, "t": 0}, {})(state) == []


class Truncated:
    """A stream whose head is behind segment b and in segment a, which c replaces; d follows."""

    async def head(self, _scope: str, _stream: str) -> dict[str, int]:
        return {"a": 12, "d": 0}

    async def successors(self, segment: str) -> dict[str, list[str]]:
        return {"a": {"c": ["a", "b"]}, "c": {"e": ["c", "d"]}, "d": {"e": ["c", "d"]}}.get(segment, {})


async def test_what_lies_before_the_head_is_not_waited_for() -> None:
    controller: ControllerApi = Truncated()  # type: ignore[assignment]
    start = await find_start(controller, "scope", "stream")
    assert start.segments == {"a": 12, "d": 0}
    assert start.waiting == {"c": frozenset({"a"}), "e": frozenset({"c", "d"})}
    state = GroupState(True, frozenset({"r"}), {"a": Held("r", 20)}, {}, start.waiting)
    (update,) = complete("r", "a", {"c": ["a", "b"]})(state)
    assert evolve(state, update).unassigned == {"c": 0}
