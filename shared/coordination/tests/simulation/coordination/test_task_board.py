"""The board in virtual time: nodes die, freeze and are cut off, the network loses and delays; every task is done.

A run begins with faults and ends without. Whatever happens, no two processes run a task under live locks at the same
true moment; after the faults every task that was submitted is done and every source goes on.
"""

import asyncio
from random import Random
from typing import Any

import pytest
from simulation.coordination.world import Process, World, simulation

from sluice_coordination import (
    Functions,
    HeldLock,
    LeaseSettings,
    Node,
    NodeSettings,
    PartitionedSource,
    SingleSource,
    Source,
    Task,
    TaskContext,
    Window,
    WindowSource,
)
from sluice_coordination.functions import Json

LEASE = LeaseSettings(lease_s=10, margin_s=2, drift=0.01, retry_s=0.3)
STORE_TIMEOUT_S = 1.0
NODES = 4
WINDOWS = 30
FAULTY_S = 60.0
CALM_S = 240.0
SEEDS = 12


class TwoRuns(AssertionError):
    """A task runs in two processes under live locks at the same true moment."""


class Plant:
    """Nodes, what they run, and who watches."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(world.random.random())
        self.runs: dict[str, list[tuple[Process, HeldLock]]] = {}
        self.ends: dict[str, int] = {}
        self.windows: list[int] = []
        self.cuts: list[tuple[str, int, int]] = []
        self.single_runs = 0
        self.nodes: dict[str, tuple[Process, Node]] = {}
        self.born = 0
        self.doubled: list[str] = []

    def give_birth(self) -> str:
        """Start a node."""
        name = f"n{self.born}"
        self.born += 1
        process = self.world.process(name)
        workers = self.random.randint(1, 3)
        settings = NodeSettings(workers=workers, look_s=1.0, keep_done_s=20, lease=LEASE)
        node = Node(
            process.store,
            "plant",
            self._functions(process),
            settings=settings,
            sources=self._sources(),
            token=name,
            clock=process.clock,
            random=Random(self.random.random()),
        )
        self.nodes[name] = (process, node)
        process.begin(self._live(node))
        return name

    async def _live(self, node: Node) -> None:
        async with node:
            await asyncio.Event().wait()

    def _sources(self) -> list[Source]:
        def partition(nodes: Any) -> list[Task]:
            count = sum(node.workers for node in nodes)
            return [Task("part", {"part": part, "parts": count}) for part in range(count // 2)]

        async def next_window(position: Json) -> Window | None:
            number = position or 0
            return None if number >= WINDOWS else Window(Task("window", {"number": number}), number + 1)

        return [
            SingleSource("single", Task("single")),
            PartitionedSource("parts", partition, settle_s=3.0),
            WindowSource("windows", next_window, ahead=5),
        ]

    def _functions(self, process: Process) -> Functions:
        functions = Functions()

        @functions.register("work")
        async def work(context: TaskContext, seconds: float) -> str:
            async with self._watched(process, context):
                await asyncio.sleep(seconds)
            context.check()
            self.ends[context.task] = self.ends.get(context.task, 0) + 1
            return process.name

        @functions.register("fail")
        async def fail(context: TaskContext) -> None:
            raise RuntimeError("as it should")

        @functions.register("window")
        async def window(context: TaskContext, number: int) -> None:
            async with self._watched(process, context):
                await asyncio.sleep(self.random.uniform(0, 3))
            context.check()
            self.windows.append(number)

        @functions.register("part")
        async def part(context: TaskContext, part: int, parts: int) -> None:
            async with self._watched(process, context):
                await asyncio.Event().wait()

        @functions.register("single")
        async def single(context: TaskContext) -> None:
            self.single_runs += 1
            async with self._watched(process, context):
                await asyncio.sleep(self.random.uniform(5, 20))
            raise RuntimeError("to be begun anew")

        return functions

    def _watched(self, process: Process, context: TaskContext) -> "Watched":
        return Watched(self, process, context)

    def look(self) -> None:
        """Note tasks that run twice."""
        for task, runs in self.runs.items():
            live = [process.name for process, held_lock in runs if held_lock.left_s > 0]
            if len(live) > 1:
                self.doubled.append(f"{task}: {live} at {self.world.loop.time()}")

    def running(self, source: str) -> list[str]:
        """Parts of a source that run now, by living processes."""
        return [
            task
            for task, runs in self.runs.items()
            if f"/{source}/" in task and any(held_lock.left_s > 0 and process.is_running for process, held_lock in runs)
        ]


class Watched:
    """A run of a task, from begin to end."""

    def __init__(self, plant: Plant, process: Process, context: TaskContext) -> None:
        self._runs = plant.runs.setdefault(context.task, [])
        self._run = (process, context.held_lock)
        self._plant = plant

    async def __aenter__(self) -> None:
        self._runs.append(self._run)
        self._plant.look()

    async def __aexit__(self, *_: object) -> None:
        self._runs.remove(self._run)


async def disturb(plant: Plant) -> None:
    """For a while, do things to nodes and to the network."""
    random, network = plant.random, plant.world.network
    network.lost, network.answer_lost = random.choice((0.0, 0.02, 0.1)), random.choice((0.0, 0.02, 0.1))
    network.slow, network.slow_s = random.choice((0.0, 0.02)), 5.0
    end_s = plant.world.loop.time() + FAULTY_S
    while plant.world.loop.time() < end_s:
        await asyncio.sleep(random.uniform(0, 10))
        name = random.choice(list(plant.nodes))
        process, _ = plant.nodes[name]
        match random.choice(("kill", "freeze", "cut", "step", "away")):
            case "kill":
                process.kill()
                del plant.nodes[name]
                plant.give_birth()
            case "freeze":
                process.freeze()
                plant.world.loop.call_later(random.uniform(0, 30), process.thaw)
            case "cut":
                process.store.cut = True
                plant.world.loop.call_later(random.uniform(0, 30), setattr, process.store, "cut", False)
            case "step":
                process.clock.wall_offset_ms += random.randint(-(10**8), 10**8)
            case _:
                network.away = True
                plant.world.loop.call_later(random.uniform(0, 20), setattr, network, "away", False)
    network.heal()


async def watch(plant: Plant) -> None:
    while True:
        plant.look()
        await asyncio.sleep(0.5)


async def play(plant: Plant, *, faults: bool) -> None:
    for _ in range(NODES):
        plant.give_birth()
    watching = asyncio.ensure_future(watch(plant))
    submitter = plant.world.process("submitter")
    settings = NodeSettings(workers=0, leads=False, look_s=0.5, keep_done_s=20, lease=LEASE)
    node = Node(
        submitter.store,
        "plant",
        Functions(),
        settings=settings,
        token="submitter",
        clock=submitter.clock,
        random=Random(plant.random.random()),
    )
    async with node:
        calls = [
            await node.submit("work", {"seconds": plant.random.uniform(0, 6)}, key=f"k{number:03}")
            for number in range(30)
        ]
        failing = await node.submit("fail", key="failing")
        endless = await node.submit("work", {"seconds": 1e6}, key="endless", timeout_s=20)
        if faults:
            await disturb(plant)
        async with asyncio.timeout(CALM_S):
            names = await asyncio.gather(*calls)
            assert all(name.startswith("n") for name in names)
            await asyncio.wait({asyncio.ensure_future(wait(each)) for each in (failing, endless)})
        assert failing.failed() and endless.failed()
        assert all(plant.ends.get(call.id, 0) >= 1 for call in calls)
        await sources_go_on(plant)
    watching.cancel()
    await asyncio.wait((watching,))
    if plant.doubled:
        raise TwoRuns(plant.doubled[:3])
    assert not plant.world.loop.failures, plant.world.loop.failures


async def wait(future: Any) -> None:
    await asyncio.gather(future, return_exceptions=True)


async def sources_go_on(plant: Plant) -> None:
    """Every window has been run; as many parts run as the living nodes' workers ask for; the single one runs again."""
    parts = sum(node.me.workers for _, node in plant.nodes.values()) // 2
    singles, end_s = plant.single_runs, plant.world.loop.time() + CALM_S
    while not (
        set(plant.windows) == set(range(WINDOWS))
        and len(plant.running("parts")) == parts
        and plant.single_runs > singles
    ):
        assert plant.world.loop.time() < end_s, (plant.windows, plant.running("parts"), parts, plant.single_runs)
        await asyncio.sleep(1.0)


def run(seed: int, *, faults: bool = True) -> Plant:
    with simulation(seed) as loop:
        plant = Plant(World(loop, seed, LEASE.drift, STORE_TIMEOUT_S))
        loop.run_until_complete(play(plant, faults=faults))
        return plant


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_every_task_is_done(seed: int) -> None:
    run(seed)


def test_without_faults_everything_is_done_once() -> None:
    plant = run(0, faults=False)
    assert set(plant.ends.values()) == {1} and len(plant.ends) == 30
    assert sorted(plant.windows) == list(range(WINDOWS))


def test_two_runs_at_once_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseSettings, "usable_s", property(lambda self: self.lease_s + 8))

    def noticed(seed: int) -> bool:
        try:
            run(seed)
        except TwoRuns:
            return True
        return False

    assert any(noticed(seed) for seed in range(20))
