"""What goes wrong in a run, drawn from its seed; and views that lag, partition by partition, all the time."""

import asyncio
from random import Random

from simulation import faults
from simulation.processes import Process, System, WorkflowProcess
from simulation.stores import Stores

from sluice.domain.model import JournalEntry
from sluice.domain.scope.events import ScopeDeletionStarted
from sluice.kafka.topics import REQUESTS_STREAMS
from stream_workflows.settings import WorkflowSettings

MAX_PROCESSES = 4


class Faults(faults.Faults):
    """`run` lets things fail now and then, `lag` holds views back, `end` has everything healthy again."""

    def __init__(
        self, system: System, store: Stores, random: Random, settings: WorkflowSettings, pause_s: float
    ) -> None:
        super().__init__(system, store, random, pause_s)
        self._settings = settings
        self.kinds = (
            *(self._kill,) * 2,
            *(self._freeze,) * 2,
            self._another,
            self._rebalance,
            *(self._lose_offsets,) * 2,
            self._stores_fail,
            self._kafka_away,
        )

    async def lag(self, times: int) -> None:
        """So many times a process stops following a partition for a while."""
        random = self.random
        for _ in range(times):
            await asyncio.sleep(random.choice((0.0, 0.0, 0.005, 0.05)) * self.pause_s)
            process = self.some(WorkflowProcess)
            if process is not None:
                self._hold(process, random.randrange(self.system.partitions))

    def _hold(self, process: Process, partition: int) -> None:
        process.connections.log.freeze(partition)
        self.later(self.random.choice((0.002, 0.03, 0.3, 2.0, 12.0)), process.connections.log.thaw, partition)

    def lag_behind_deletions(self, share: float) -> None:
        """This share of processes stops following a partition for a while when a scope's deletion begins there."""

        def observe(partition: int, entry: JournalEntry) -> None:
            if self.is_over or not any(isinstance(event, ScopeDeletionStarted) for event in entry.events):
                return
            for process in self.system.running(WorkflowProcess):
                if self.random.random() < share:
                    self._hold(process, partition)

        self.system.truth.on_entry.append(observe)

    def end(self) -> None:
        """See Faults; views follow again, and if no process is left another one comes."""
        for process in self.system.processes:
            process.connections.log.thaw()
        super().end()
        if not self.system.running(WorkflowProcess):
            self._start()

    def _start(self) -> None:
        process = self.system.start(WorkflowProcess, self._settings)
        self.note(f"{process.source} begins")

    def _kill(self) -> None:
        self.light(self.some(WorkflowProcess), self._kill_now)

    def _kill_now(self, process: Process) -> None:
        self.kill(process)
        self.later(self.random.choice((0.0, 0.05, 0.3, 1.0, 3.0)), self._start)

    def _freeze(self) -> None:
        self.light(self.some(WorkflowProcess), self._freeze_now)

    def _freeze_now(self, process: Process) -> None:
        seconds = self.random.choice((0.2, 1.0, 3.0, 12.0, 30.0))
        self.freeze(process, seconds)
        if self.random.random() < 0.7:
            self.later(self.random.choice((0.0, 0.3, 1.0)), self._another)

    def _another(self) -> None:
        if len(self.system.running(WorkflowProcess)) < MAX_PROCESSES:
            self._start()

    def _rebalance(self) -> None:
        self.note("rebalance")
        self.system.groups.group(REQUESTS_STREAMS.name).balance(bounce=self.random.random() < 0.5)

    def _lose_offsets(self) -> None:
        """The next owner of a partition gets all its requests a second time."""
        self.note("offsets lost")
        group = self.system.groups.group(REQUESTS_STREAMS.name)
        group.lose_offsets()
        # No process commits what it was to give up: all is delivered anew.
        group.balance(bounce=True)

    def _stores_fail(self) -> None:
        self.store.failing = self.random.choice((0.1, 0.4, 0.8))
        self.store.slow_s = self.random.choice((0.0, 0.0, 1.0))
        self.note(f"stores fail: {self.store.failing}, slow: {self.store.slow_s}")
        self.later(self.random.choice((0.2, 1.0, 5.0)), self._heal_stores)

    def _heal_stores(self) -> None:
        self.store.failing = self.store.slow_s = 0.0

    def _kafka_away(self) -> None:
        self.kafka_away()
