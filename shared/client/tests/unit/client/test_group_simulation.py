"""Readers of a group that come, stop, die and checkpoint, over connections that break, while the stream is scaled.

Whatever happens: each segment has one reader, or waits for one, or for its predecessors; every checkpoint completes or
is given up; what lies before a complete one was read, and nothing was read before all that it follows; and in the end
everything was read, by readers with fair shares. All is drawn from the seed and runs in virtual time.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import effort
from support.virtual_time import run
from unit.client.late_store import LateStore
from unit.client.scaled_stream import ScaledStream

from sluice.pravega.memory import MemorySegment
from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.reader_group_state import (
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    Update,
)
from sluice_client import Patience, RevisionedStream
from sluice_client.groups import decisions
from sluice_client.groups.decisions import ReaderOffline
from sluice_client.groups.state import is_complete, is_silent, pending, stored_positions
from sluice_client.groups.synchronizer import GroupSynchronizer

SEGMENT = "s/_RGg/0.#epoch.0"


class Reader:
    """What a reader does, reduced to its part in the group: an event takes no time."""

    def __init__(self, world: "World", name: str) -> None:
        self.name = name
        self._world = world
        self._random, self._stream = world.random, world.stream
        self._group = world.group()
        self._at: dict[str, int] = {}
        self._acquire_at = self._release_at = self._lag_at = 0.0

    async def live(self) -> None:
        self._take(await self._group.update(lambda state: decisions.join(state, self.name)))
        while True:
            await asyncio.sleep(self._random.uniform(0.0, 0.4))
            state = self._take(await self._group.refresh())
            self._read()
            checkpoint = pending(state, self.name)
            if checkpoint is not None:
                await self._checkpoint(checkpoint)
            elif asyncio.get_running_loop().time() >= self._acquire_at:
                lag = self._lag()
                self._put_off(await self._decide(decisions.acquire, lag))
            elif asyncio.get_running_loop().time() >= self._lag_at:
                await self._group.append([self._lag()])
                self._lag_at = asyncio.get_running_loop().time() + decisions.lag_after_s(state)

    async def leave(self) -> None:
        await self._group.update(lambda state: decisions.leave(state, self.name, self._position()))

    async def _checkpoint(self, id: str) -> None:
        position = self._position()
        await self._decide(decisions.checkpoint, id, position)
        if is_silent(id):
            return
        for segment in [name for name, offset in position.items() if offset < 0]:
            await self._decide(decisions.complete, segment, *self._stream.successors(segment))
        if asyncio.get_running_loop().time() >= self._release_at:
            self._put_off(await self._decide(decisions.release, self._position(), self._lag()))

    async def _decide(self, decision: Callable[..., Sequence[Update]], *arguments: object) -> GroupState:
        return self._take(await self._group.update(lambda state: decision(state, self.name, *arguments)))

    def _read(self) -> None:
        for segment, at in self._at.items():
            self._world.check_predecessors(segment)
            end = self._random.randint(at, self._stream.segments[segment].length)
            self._world.read |= {(segment, event) for event in range(at, end)}
            self._at[segment] = end

    def _position(self) -> dict[str, int]:
        return {name: -1 if self._stream.is_finished(name, at) else at for name, at in self._at.items()}

    def _lag(self) -> Update:
        position = self._position()
        return decisions.lag_of(self.name, 2 * 10**12, next(iter(position), None), position, {})

    def _take(self, state: GroupState) -> GroupState:
        held = decisions.held_by(state, self.name)
        lengths = {name: self._stream.segments[name].length for name in held}
        self._at = {name: self._at.get(name, at if at >= 0 else lengths[name]) for name, at in held.items()}
        return state

    def _put_off(self, state: GroupState) -> None:
        now = asyncio.get_running_loop().time()
        self._acquire_at = now + decisions.acquire_after_s(state, self.name)
        self._release_at = now + decisions.release_after_s(state, self.name)


class World:
    def __init__(self, seed: int, broken: float) -> None:
        self.random = Random(seed)
        self.store = LateStore(self.random, broken)
        self.stream = ScaledStream(self.random, self.random.randint(1, 5))
        self.read: set[tuple[str, int]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._readers: dict[str, Reader] = {}
        self._names = iter(range(10**6))

    def group(self) -> GroupSynchronizer:
        return GroupSynchronizer(RevisionedStream(self.store, SEGMENT, Patience(1000.0)), compact_bytes=200)

    def check_predecessors(self, segment: str) -> None:
        """Nothing is read before all that it follows."""
        for before in self.stream.segments[segment].predecessors:
            assert {(before, event) for event in range(self.stream.segments[before].length)} <= self.read

    def start(self) -> None:
        name = f"r{next(self._names)}"
        self._readers[name] = Reader(self, name)
        self._tasks[name] = asyncio.create_task(self._live(name))

    async def stop(self, name: str, *, dies: bool) -> None:
        task, reader = self._tasks.pop(name), self._readers.pop(name)
        task.cancel()
        await asyncio.wait([task])
        if dies:
            await asyncio.sleep(self.random.uniform(0.0, 5.0))
            await self.group().update(lambda state: decisions.leave(state, name, {}))
        else:
            await reader.leave()

    async def _live(self, name: str) -> None:
        reader = self._readers[name]
        try:
            await reader.live()
        except ReaderOffline as error:
            raise AssertionError("no one has reported it offline") from error

    async def checkpoint(self, silent: bool) -> bool:
        """Whether it completed within its time; it is given up otherwise."""
        group, id = self.group(), f"{next(self._names)}{'_SILENT_' if silent else ''}"
        state = await group.update(lambda _: [CreateCheckpoint(id)])
        end = asyncio.get_running_loop().time() + 10.0
        while not is_complete(state, id):
            if asyncio.get_running_loop().time() > end and not silent:
                await group.append([RemoveOutstandingCheckpoints()])
            await asyncio.sleep(0.5)
            state = await group.refresh()
        positions = state.checkpoints.positions.get(id)
        if positions is None:
            return False
        assert self.stream.before(positions) <= self.read, "what lies before a checkpoint was read"
        await group.append([ClearCheckpointsBefore(id)])
        return True

    def look(self, state: GroupState) -> None:
        """Each segment is in one place."""
        found = [*state.unassigned, *state.future, *(name for held in state.assigned.values() for name in held)]
        assert len(found) == len(set(found))
        assert self.stream.before(stored_positions(state)) <= self.read

    async def play(self, steps: list[str]) -> None:
        self.store.segments[SEGMENT] = MemorySegment()
        first = dict.fromkeys(self.stream.active, 0)
        group = self.group()
        others: list[asyncio.Task[Any]] = []
        await group.begin(GroupState(GroupConfig(starts={"s/t": None}), first, last_read=first))
        for step in steps:
            await asyncio.sleep(self.random.uniform(0.0, self.random.choice([0.1, 0.5, 2.0])))
            self.stream.write()
            if step == "reader":
                self.start()
            elif step == "scale":
                self.stream.scale()
            elif step == "checkpoint":
                others.append(asyncio.create_task(self.checkpoint(silent=self.random.random() < 0.3)))
            elif step == "compact":
                compactor = self.group()
                await compactor.refresh()
                await compactor.compact_if_long(0.0)
            elif self._tasks:
                name = self.random.choice(sorted(self._tasks))
                others.append(asyncio.create_task(self.stop(name, dies=step == "death")))
                await asyncio.sleep(0.0)
            self.look(await group.refresh())
        await asyncio.gather(*others)
        await self._settle(group)

    async def _settle(self, group: GroupSynchronizer) -> None:
        """Faults are over: all is read, and shared out fairly."""
        self.store.broken = 0.0
        while len(self._tasks) < 2:
            self.start()
        # What a reader sent may arrive when it is gone.
        await self.store.settle()
        for ghost in set((await group.refresh()).assigned) - set(self._tasks):
            await group.append([RemoveReader(ghost, {})])
        for _ in range(60):
            assert await self.checkpoint(silent=False)
            self.look(state := await group.refresh())
            if self._is_shared_out(state):
                break
        else:
            raise AssertionError(f"not shared out: {state.assigned}, {state.distance}")
        assert not state.future
        for name in list(self._tasks):
            await self.stop(name, dies=False)
        state = await group.refresh()
        assert self.stream.before(state.unassigned) <= self.read
        assert not state.checkpoints.waiting

    def _is_shared_out(self, state: GroupState) -> bool:
        numbers = [len(held) for held in state.assigned.values()]
        all_held = set(stored_positions(state)) == set(self.stream.active) and not state.unassigned
        return all_held and set(state.assigned) == set(self._tasks) and max(numbers) - min(numbers) <= 1


steps = st.lists(
    st.sampled_from(["reader", "reader", "scale", "scale", "checkpoint", "checkpoint", "leave", "death", "compact"]),
    max_size=25,
)


@settings(max_examples=effort(150, 40), deadline=None)
@given(steps, st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.3]))
def test_nothing_is_lost_owned_twice_or_shared_unfairly(steps: list[str], seed: int, broken: float) -> None:
    run(World(seed, broken).play(steps))
