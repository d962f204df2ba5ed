"""What goes wrong in a run, drawn from its seed; and views that lag, partition by partition, all the time."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from simulation.processes import Process, System, WorkflowProcess
from simulation.stores import Stores

from sluice.domain.model import JournalEntry
from sluice.domain.scope.events import ScopeDeletionStarted
from sluice.kafka.topics import REQUESTS_STREAMS
from stream_workflows.settings import WorkflowSettings

MAX_PROCESSES = 4


class Faults:
    """`run` lets things fail now and then, `lag` holds views back, `end` has everything healthy again."""

    def __init__(
        self, system: System, store: Stores, random: Random, settings: WorkflowSettings, pause_s: float
    ) -> None:
        self.log: list[str] = []
        self._system = system
        self._store = store
        self._random = random
        self._settings = settings
        self._pause_s = pause_s
        self._is_over = False
        self._kinds: tuple[Callable[[], None], ...] = (
            self._kill,
            self._kill,
            self._freeze,
            self._freeze,
            self._another,
            self._rebalance,
            self._lose_offsets,
            self._lose_offsets,
            self._stores_fail,
            self._kafka_away,
        )

    async def run(self, number: int) -> None:
        for _ in range(number):
            await asyncio.sleep(self._random.choice((0.0, 0.05, 0.5, 2.0)) * self._pause_s)
            self._random.choice(self._kinds)()

    async def lag(self, times: int) -> None:
        """So many times a process stops following a partition for a while."""
        random = self._random
        for _ in range(times):
            await asyncio.sleep(random.choice((0.0, 0.0, 0.005, 0.05)) * self._pause_s)
            process = self._some()
            if process is not None:
                self._hold(process, random.randrange(self._system.partitions))

    def _hold(self, process: Process, partition: int) -> None:
        process.connections.log.freeze(partition)
        self._later(self._random.choice((0.002, 0.03, 0.3, 2.0, 12.0)), process.connections.log.thaw, partition)

    def lag_behind_deletions(self, share: float) -> None:
        """This share of processes stops following a partition for a while when a scope's deletion begins there."""

        def observe(partition: int, entry: JournalEntry) -> None:
            if self._is_over or not any(isinstance(event, ScopeDeletionStarted) for event in entry.events):
                return
            for process in self._system.running(WorkflowProcess):
                if self._random.random() < share:
                    self._hold(process, partition)

        self._system.truth.on_entry.append(observe)

    def end(self) -> None:
        """No more faults; whatever is down comes back."""
        system = self._system
        self._is_over = True
        self._store.failing = self._store.slow_s = 0.0
        system.broker.come_back()
        for process in system.processes:
            process.fuse = None
            process.connections.log.thaw()
        for process in list(system.frozen()):
            system.thaw(process, 0.0)
        if not system.running(WorkflowProcess):
            self._start()

    def _note(self, what: str) -> None:
        self.log.append(f"{self._system.now_ms()} {what}")

    def _later(self, seconds: float, action: Callable[..., object], *args: Any) -> None:
        def unless_over() -> None:
            if not self._is_over:
                action(*args)

        self._system.loop.call_later(seconds, unless_over, context=self._system.loop.outside)

    def _some(self) -> WorkflowProcess | None:
        running = self._system.running(WorkflowProcess)
        return self._random.choice(running) if running else None

    def _start(self) -> None:
        process = self._system.start(WorkflowProcess, self._settings)
        self._note(f"{process.source} begins")

    def _light(self, action: Callable[[Process], None]) -> None:
        """Something happens to a process a few touches from now, in the middle of whatever it does."""
        process = self._some()
        if process is not None:
            process.fuse = (self._random.randint(0, 12), action)

    def _kill(self) -> None:
        self._light(self._kill_now)

    def _kill_now(self, process: Process) -> None:
        self._note(f"{process.source} killed")
        self._system.kill(process)
        self._later(self._random.choice((0.0, 0.05, 0.3, 1.0, 3.0)), self._start)

    def _freeze(self) -> None:
        self._light(self._freeze_now)

    def _freeze_now(self, process: Process) -> None:
        seconds = self._random.choice((0.2, 1.0, 3.0, 12.0, 30.0))
        self._note(f"{process.source} frozen for {seconds} s")
        self._system.freeze(process)
        self._later(seconds, self._thaw, process)
        if self._random.random() < 0.7:
            self._later(self._random.choice((0.0, 0.3, 1.0)), self._another)

    def _thaw(self, process: Process) -> None:
        self._note(f"{process.source} thawed")
        self._system.thaw(process, self._random.choice((0.0, 0.005, 0.2, 1.0)))

    def _another(self) -> None:
        if len(self._system.running(WorkflowProcess)) < MAX_PROCESSES:
            self._start()

    def _rebalance(self) -> None:
        self._note("rebalance")
        self._system.groups.group(REQUESTS_STREAMS.name).balance(bounce=self._random.random() < 0.5)

    def _lose_offsets(self) -> None:
        """Whoever owns a partition next gets all its requests a second time."""
        self._note("offsets lost")
        group = self._system.groups.group(REQUESTS_STREAMS.name)
        group.lose_offsets()
        # Nobody commits what it was to give up: all is delivered anew.
        group.balance(bounce=True)

    def _stores_fail(self) -> None:
        self._store.failing = self._random.choice((0.1, 0.4, 0.8))
        self._store.slow_s = self._random.choice((0.0, 0.0, 1.0))
        self._note(f"stores fail: {self._store.failing}, slow: {self._store.slow_s}")
        self._later(self._random.choice((0.2, 1.0, 5.0)), self._heal_stores)

    def _heal_stores(self) -> None:
        self._store.failing = self._store.slow_s = 0.0

    def _kafka_away(self) -> None:
        seconds = self._random.choice((0.05, 0.5, 2.0, 6.0, 14.0))
        self._note(f"kafka away for {seconds} s")
        self._system.broker.go_away(seconds)
