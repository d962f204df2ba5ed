"""One run: services work, snapshots are made and the journal is trimmed behind them, while anything may fail.

At its end a follower that begins from the snapshots, and every process that lives, has the state that folding the whole
journal from its first record gives, part by part and byte by byte; and so has every snapshot that was confirmed.
"""

import asyncio
import gc
from random import Random

from simulation.processes import LOOK_S, Process, System, touch_store
from simulation.scopes.callers import SCOPES, Callers
from simulation.seeds import run_one
from simulation.snapshots.faults import Faults
from simulation.snapshots.processes import Follower, KeeperProcess, LoadingWorkflowProcess
from simulation.stores import Stores
from simulation.violation import Violation

from sluice.domain.model import JournalRecord
from sluice.domain.scope.commands import CreateScope
from sluice.domain.workflow import running
from sluice.engine.capture import Part
from sluice.engine.fold import Outcome
from sluice.engine.snapshots import joined, slices_of, snapshots_of
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryMessage
from sluice.memory.snapshots import MemorySnapshotStore
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 3
DELAYS_S = (0.0, 0.0, 0.001, 0.003, 0.02)
SETTINGS = WorkflowSettings(instance="0", partitions=PARTITIONS)
QUIET_S = 240.0
"""How long after the last fault everything may take to end."""


class Run(System):
    """`seed` decides on everything."""

    workflow_kind: type[LoadingWorkflowProcess] = LoadingWorkflowProcess
    keeper_kind: type[KeeperProcess] = KeeperProcess

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        super().__init__(Random(random.random()), PARTITIONS, DELAYS_S)
        self.store = self.stores = Stores(Random(random.random()), self.now_ms, touch_store)
        self.snapshots = MemorySnapshotStore(self.broker)
        self.captured: dict[tuple[int, int], list[Part]] = {}
        """The whole state behind each marker, by partition and offset, as the journal says."""
        self.truth.on_record.append(self._record)
        self._chance = random
        pause_s = random.choice((0.1, 0.5, 2.0))
        self._callers = Callers(self, Random(random.random()), pause_s)
        self.faults = Faults(self, self.stores, Random(random.random()), SETTINGS, pause_s)
        for kind, number in ((self.workflow_kind, random.choice((1, 2))), (self.keeper_kind, random.choice((1, 2, 3)))):
            for _ in range(number):
                self.start(kind, SETTINGS)

    async def go(self) -> None:
        """Raises Violation."""
        random = self._chance
        for scope in SCOPES:
            self.post(CreateScope(scope))
        doing = [self._callers.run(random.randint(15, 40)) for _ in range(2)]
        doing.append(self.faults.run(random.randint(2, 10)))
        await self.run_all(doing)
        self.faults.end()
        await self._rest()
        self.start(Follower, SETTINGS)
        await self._follow()
        self.look()
        for process in self.running(KeeperProcess):
            self.kill(process)
        await self._check_snapshots()

    def _record(self, message: MemoryMessage, record: JournalRecord, _outcomes: list[Outcome]) -> None:
        if record.marker is not None:
            partition = message.partition()
            self.captured[partition, message.offset()] = list(self.truth.views[partition].capture())

    async def _rest(self) -> None:
        """Return when everything that was begun is done."""
        until_s = self.loop.now + QUIET_S
        while working := [name for name, state in self.truth.states().items() if running(state) is not None]:
            await asyncio.sleep(LOOK_S)
            self.look()
            if self.loop.now > until_s:
                raise Violation(f"never ended: {working}")

    async def _follow(self) -> None:
        """Return when every process has the state that the journal says."""
        until_s = self.loop.now + QUIET_S
        while (problem := next(filter(None, map(self._unlike, self.processes)), None)) is not None:
            await asyncio.sleep(LOOK_S)
            self.look()
            if self.loop.now > until_s:
                raise Violation(problem)

    def _is_trimmed_before(self, process: Process) -> bool:
        """Whether the journal begins behind what the process knows of each partition that it cannot follow."""
        views = process.journal.views()
        return all(self.broker.begin(JOURNAL.name, p) > views[p].next_offset for p in process.journal.failed)

    def _unlike(self, process: Process) -> str | None:
        for partition, (mine, theirs) in enumerate(zip(self.truth.views, process.journal.views(), strict=True)):
            if mine.next_offset != theirs.next_offset:
                return f"{process.source} is at {theirs.next_offset} of {mine.next_offset} in partition {partition}"
            if list(mine.capture()) != list(theirs.capture()):
                return f"{process.source} knows something else than the journal says in partition {partition}"
        return None

    async def _check_snapshots(self) -> None:
        """What was confirmed is what the journal says, and is followed by what is left of the journal."""
        self.confirmed = 0
        begins = [self.broker.begin(JOURNAL.name, partition) for partition in range(PARTITIONS)]
        for partition, notes in (await self.snapshots.notes(range(PARTITIONS))).items():
            found = [s for s in snapshots_of(notes)[0] if s.is_confirmed]
            self.confirmed += len(found)
            for snapshot in found:
                offset = snapshot.manifest.offset
                parts = list(joined(await slices_of(self.snapshots, snapshot.manifest)))
                if parts != self.captured[partition, offset]:
                    raise Violation(f"the snapshot of {partition} at {offset} is not what the journal says")
            begin = begins[partition]
            if begin and len({s.manifest.offset for s in found if s.manifest.offset >= begin}) < 2:
                raise Violation(f"partition {partition} begins at {begin}, behind a snapshot that is still needed")

    def look(self) -> None:
        """Raises Violation as System does, and if a process was judged differently or two runs came to other states.

        A process that stood still while what it has yet to fold was trimmed ends, as the runtime does, and one begins
        anew.
        """
        for process in list(self.processes):
            if process.journal.overtaken.is_set() and self._is_trimmed_before(process):
                self.kill(process)
                self.start(type(process), SETTINGS)
        super().look()
        for process in self.processes:
            if (difference := process.journal.difference) is not None:
                raise Violation(f"{process.source}: {difference}")
            for keeper in getattr(process, "keepers", ()):
                if keeper.difference is not None:
                    raise Violation(f"{process.source}: {keeper.difference}")


def run_seed(seed: int, make: type[Run] = Run) -> Run:
    """Raises Violation."""
    try:
        return run_one(make, seed, "tests/simulation/test_snapshots.py")
    finally:
        # A journal that loads has the collector leave what it knows alone.
        gc.unfreeze()
