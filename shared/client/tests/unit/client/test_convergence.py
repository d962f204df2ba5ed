"""Synchronizers that update and compact at random, over connections that break, some of them killed half-way.

Whatever happens: all copies agree in the end, every acknowledged update is there, none is there twice, and each was
applied to the very state it was decided on. All is drawn from the seed and runs in virtual time.
"""

import asyncio
from random import Random
from typing import Literal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import effort
from support.virtual_time import run
from unit.client.late_store import LateStore

from sluice.pravega.memory import MemorySegment
from sluice_client import JsonCodec, RevisionedStream, StateSynchronizer

SEGMENT = "s/t/0.#epoch.0"
Step = Literal["update", "compact", "fetch", "be killed"]
Plan = list[list[Step]]


class Put(msgspec.Struct, frozen=True):
    """An update that says what it was decided on."""

    name: str
    after: int


class State(msgspec.Struct, frozen=True):
    names: tuple[str, ...] = ()

    def put(self, update: Put) -> "State":
        assert update.after == len(self.names), f"{update} on {len(self.names)} names"
        return State((*self.names, update.name))


class World:
    """Actors on one stream; `sure` are the updates that were acknowledged, `tried` all of them."""

    def __init__(self, seed: int, broken: float) -> None:
        self.random = Random(seed)
        self.store = LateStore(self.random, broken)
        self.tried: set[str] = set()
        self.sure: set[str] = set()

    def synchronizer(self) -> StateSynchronizer[State, Put]:
        return StateSynchronizer(
            RevisionedStream(self.store, SEGMENT),
            initial=State,
            apply=State.put,
            state_codec=JsonCodec(State),
            update_codec=JsonCodec(Put),
        )

    async def live(self, actor: int, steps: list[Step]) -> State:
        """Takes the steps of one actor; the state it sees at last."""
        synchronizer = self.synchronizer()
        for number, step in enumerate(steps):
            if step == "update":
                await self.update(synchronizer, f"{actor}.{number}")
            elif step == "compact":
                await synchronizer.compact()
            elif step == "fetch":
                await synchronizer.fetch()
            else:
                await self.be_killed(synchronizer, f"{actor}.{number}")
                synchronizer = self.synchronizer()
        return await synchronizer.fetch()

    async def update(self, synchronizer: StateSynchronizer[State, Put], name: str) -> None:
        self.tried.add(name)
        await synchronizer.update(lambda state: [Put(name, len(state.names))])
        self.sure.add(name)

    async def be_killed(self, synchronizer: StateSynchronizer[State, Put], name: str) -> None:
        """Ends somewhere in an update or a compaction; what was sent may still arrive."""
        kind = self.random.choice(["update", "compact"])
        work = asyncio.create_task(self.update(synchronizer, name) if kind == "update" else synchronizer.compact())
        await asyncio.wait([work], timeout=self.random.uniform(0.0, 0.1))
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async def play(self, plan: Plan) -> None:
        self.store.segments[SEGMENT] = MemorySegment()
        await asyncio.gather(*(self.live(actor, steps) for actor, steps in enumerate(plan)))
        await self.store.settle()
        one, two = self.synchronizer(), self.synchronizer()
        names = (await one.fetch()).names
        assert len(names) == len(set(names))
        assert self.sure <= set(names) <= self.tried
        await one.compact()
        await two.update(lambda state: [Put("last", len(state.names))])
        assert (await one.fetch()).names == (*names, "last") == two.state.names == (await self.fresh()).names

    async def fresh(self) -> State:
        return await self.synchronizer().fetch()


steps = st.lists(st.sampled_from(["update", "update", "update", "compact", "fetch", "be killed"]), max_size=8)


@settings(max_examples=effort(400, 60), deadline=None)
@given(st.lists(steps, min_size=1, max_size=5), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.4]))
def test_copies_converge_and_no_update_is_lost_or_applied_twice(plan: Plan, seed: int, broken: float) -> None:
    run(World(seed, broken).play(plan))
