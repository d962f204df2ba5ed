"""Readers of a group that come, leave, die, are reported and checkpoint, over connections that break, while it scales.

Whatever happens: every event is read, and twice only after a reader died or was reported; of one key each event after
those before it; every checkpoint completes or is given up, and who goes on from a complete one misses nothing, though
what lies before it is truncated. In the end each segment has a reader, and the readers have fair shares. What happens
is drawn from the seed, in virtual time.
"""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import effort
from support.virtual_time import run
from unit.client.late_store import LateStore

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.names import group_stream
from sluice.pravega.event_frames import split_events
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment, Writers
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.reader_group_state import GroupState
from sluice.pravega.wire.command import Command, Numbered
from sluice_client import (
    CheckpointGivenUp,
    Client,
    Event,
    EventReader,
    Patience,
    ReaderGroup,
    ReaderOffline,
    ScalingPolicy,
    StreamConfig,
    TooManyCheckpoints,
    create_reader_group,
    open_reader,
    open_reader_group,
)
from sluice_client.groups import decisions
from sluice_client.groups.state import stored_positions
from sluice_client.groups.synchronizer import GroupSynchronizer
from sluice_client.memory import InMemoryController

KEYS = [f"key-{number}" for number in range(6)]
PATIENT = Patience(1000.0)
SETTLED_S = 120.0


class MortalStore(LateStore):
    """What one process sees of the store. From its death on the process sends nothing; what it sent may arrive."""

    def __init__(self, random: Random, broken: float, segments: dict[str, MemorySegment]) -> None:
        super().__init__(random, broken)
        self.segments = segments
        self.is_dead = False

    async def call(self, request: Numbered, timeout_s: float | None, writers: Writers | None = None) -> Command:
        if self.is_dead:
            await asyncio.Future()
        return await super().call(request, timeout_s, writers)


class World:
    """`read` says how often each event, a key and a number, was read."""

    _group: ReaderGroup

    def __init__(self, seed: int, broken: float) -> None:
        self.random = Random(seed)
        self._broken = broken
        self._store = InMemorySegmentStore()
        self._controller = InMemoryController(self._store)
        self._client = Client(self._controller, self._store)
        self._writer = self._client.event_writer("s", "t")
        self._numbers = dict.fromkeys(KEYS, 0)
        self.written: set[tuple[str, int]] = set()
        self.read: dict[tuple[str, int], int] = {}
        self._stores: dict[str, MortalStore] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[str] = set()
        self._reported: set[str] = set()
        self._has_lost_reader = False

    async def write(self) -> None:
        """A few events; those of a key in the order of their numbers."""
        for _ in range(self.random.randrange(12)):
            key = self.random.choice(KEYS)
            self._writer.add(key, f"{key} {self._numbers[key]}".encode())
            self._numbers[key] += 1
        await self._writer.flush()
        self.written = {(key, number) for key, count in self._numbers.items() for number in range(count)}

    # Readers

    def _process(self, name: str) -> Client:
        store = self._stores[name] = MortalStore(self.random, self._broken, self._store.segments)
        return Client(self._controller, store, PATIENT)

    def start(self) -> None:
        name = f"r{len(self._stores)}"
        self._tasks[name] = asyncio.create_task(self._live(name, self._process(name)))

    async def _live(self, name: str, client: Client) -> None:
        reader = await open_reader(client, "s", "g", name, read_ahead_bytes=self.random.choice([100, 10_000]))
        try:
            while name not in self._leaving:
                await self._read_some(reader)
                await asyncio.sleep(self.random.uniform(0.0, 0.3))
            await reader.close()
        except ReaderOffline:
            assert name in self._reported

    async def _read_some(self, reader: EventReader) -> None:
        found: Any = None
        way = self.random.randrange(3)
        if way == 0:
            found = await reader.next(timeout_s=self.random.uniform(0.0, 2.0))
        elif way == 1:
            found = await reader.next_batch(timeout_s=self.random.uniform(0.0, 2.0))
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.random.uniform(0.0, 2.0)):
                    found = await reader.next()
        for event in found if isinstance(found, list) else [found]:
            if isinstance(event, Event):
                self._record(event)

    def _record(self, event: Event) -> None:
        key, _, number = event.data.decode().partition(" ")
        assert number == "0" or (key, int(number) - 1) in self.read, "what lies before it was read"
        times = self.read[key, int(number)] = self.read.get((key, int(number)), 0) + 1
        assert times == 1 or self._has_lost_reader

    async def leave(self, name: str) -> None:
        self._leaving.add(name)
        await self._tasks.pop(name)

    async def die(self, name: str) -> None:
        """Nothing is closed; after a while it is reported."""
        self._has_lost_reader = self._stores[name].is_dead = True
        self._tasks.pop(name).cancel()
        await asyncio.sleep(self.random.uniform(0.0, 5.0))
        await self._report(name)

    async def report(self, name: str) -> None:
        """Though it is alive; it stays if it was not yet in."""
        self._has_lost_reader = True
        await self._report(name)

    def _collect(self) -> None:
        """Those that were out are no more."""
        for name in [name for name, task in self._tasks.items() if task.done()]:
            self._tasks.pop(name).result()

    async def _report(self, name: str) -> None:
        self._reported.add(name)
        await self._group.reader_offline(name)

    # The rest of the world

    async def scale(self) -> None:
        """Splits a segment, or merges two neighbours."""
        bounds = [(0.0, ""), *await self._controller.key_ranges("s", "t")]
        at = self.random.randrange(1, len(bounds))
        old = bounds[at : at + self.random.choice([1, 2])]
        low, high = bounds[at - 1][0], old[-1][0]
        middle = (low + high) / 2
        ranges = [(low, middle), (middle, high)] if len(old) == 1 else [(low, high)]
        await self._client.streams.scale([segment for _, segment in old], ranges)

    async def truncate(self) -> None:
        """Where the controller knows that the group needs nothing before."""
        cut = self._controller.released.get(("s/g", "s/t"))
        if cut is not None:
            request = pb.StreamCut(streamInfo=pb.StreamInfo(scope="s", stream="t"), cut=cut)
            await self._controller.call(lambda stub: stub.truncateStream, request)

    async def compact(self) -> None:
        compactor = GroupSynchronizer(
            await self._process(f"compactor {len(self._stores)}").revisioned_stream("s", group_stream("g")), 200
        )
        await compactor.refresh()
        await compactor.compact_if_long(0.0)

    async def checkpoint(self, deadline_s: float = 10.0) -> bool:
        """Whether it completed within its time; it is given up otherwise."""
        try:
            checkpoint = await self._group.checkpoint(deadline_s=deadline_s)
        except (CheckpointGivenUp, TooManyCheckpoints):
            return False
        await self._check(dict(checkpoint.cuts["s/t"].offsets))
        return True

    async def _check(self, positions: dict[str, int]) -> None:
        """What was not read by now is read by who goes on from these positions."""
        written, after = set(self.written), await self._after(positions)
        assert written - self.read.keys() <= after

    async def _after(self, positions: dict[str, int]) -> set[tuple[str, int]]:
        """What one reads who goes on from some positions."""
        later = list(positions)
        for segment in later:
            later += [name for name in await self._controller.successors(segment) if name not in later]
        found = set()
        for name in later:
            at, stored = positions.get(name, 0), self._store.segments.get(name)
            if stored is not None and at >= 0:
                events = split_events(stored.data, stored.start_offset).events
                found |= {event.data for event in events if event.start >= at}
        parts = [event.decode().split(" ") for event in found]
        return {(key, int(number)) for key, number in parts}

    async def look(self) -> None:
        """Each segment is in one place, and nothing that was not read lies before where the group is."""
        state = await self._state()
        found = [*state.unassigned, *state.future, *(name for held in state.assigned.values() for name in held)]
        assert len(found) == len(set(found))
        await self._check(dict.fromkeys(state.future, 0) | dict(stored_positions(state)))

    async def _state(self) -> GroupState:
        return await self._group.shared.refresh()

    async def play(self, steps: list[str]) -> None:
        policy = ScalingPolicy(min_segments=self.random.randint(1, 5))
        await self._client.streams.create_scope("s")
        await self._client.streams.create_stream("s", "t", StreamConfig(policy))
        config = GroupConfig(
            starts={"s/t": None}, refresh_ms=500, automatic_checkpoint_ms=1000, retention=Retention.AUTOMATIC
        )
        await create_reader_group(self._client, "s", "g", config)
        self._group = await open_reader_group(self._client, "s", "g")
        others: list[asyncio.Task[Any]] = []
        for step in steps:
            await asyncio.sleep(self.random.uniform(0.0, self.random.choice([0.1, 0.5, 2.0])))
            await self.write()
            if step == "reader":
                self.start()
            elif step == "checkpoint":
                others.append(asyncio.create_task(self.checkpoint()))
            elif step in ("scale", "truncate", "compact"):
                await getattr(self, step)()
            elif self._tasks:
                work = getattr(self, step)(self.random.choice(sorted(self._tasks)))
                others.append(asyncio.create_task(work))
                await asyncio.sleep(0.0)
            await self.look()
        await asyncio.gather(*others)
        await self._settle()

    async def _settle(self) -> None:
        """Faults are over: all is read, and shared out fairly."""
        self._broken = 0.0
        for store in self._stores.values():
            store.broken = 0.0
        # What a reader sent may arrive when it is gone.
        for store in self._stores.values():
            await store.settle()
        async with asyncio.timeout(SETTLED_S):
            while not await self._is_shared_out():
                for ghost in set((await self._state()).assigned) - set(self._tasks):
                    await self._report(ghost)
                while len(self._tasks) < 2:
                    self.start()
                # Who has read no event yet counts as one that has nothing to do.
                await self.write()
                await self.checkpoint(deadline_s=30.0)
                await self.look()
                await asyncio.sleep(1.0)
            while self.written > self.read.keys():
                await self.checkpoint()
        for name in list(self._tasks):
            await self.leave(name)
        state = await self._state()
        assert self.read.keys() == self.written and not state.future and not state.checkpoints.waiting

    async def _is_shared_out(self) -> bool:
        self._collect()
        state, active = await self._state(), await self._controller.segments("s", "t")
        sizes = decisions.reader_sizes(state).values()
        all_held = {name for held in state.assigned.values() for name in held} == set(active)
        all_here = len(self._tasks) > 1 and set(state.assigned) == set(self._tasks)
        return all_held and all_here and max(sizes) - min(sizes) < 1.5


steps = st.lists(
    st.sampled_from(
        ["reader", "reader", "scale", "scale", "checkpoint", "truncate", "compact", "leave", "leave", "die", "report"]
    ),
    max_size=25,
)
calm_steps = st.lists(st.sampled_from(["reader", "reader", "scale", "checkpoint", "truncate", "leave"]), max_size=25)


@settings(max_examples=effort(300, 100), deadline=None)
@given(steps | calm_steps, st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.3]))
def test_nothing_is_lost_owned_twice_or_shared_unfairly(steps: list[str], seed: int, broken: float) -> None:
    run(World(seed, broken).play(steps))
