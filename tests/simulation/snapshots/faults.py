"""What goes wrong in these runs, drawn from the seed."""

from random import Random

from simulation import faults
from simulation.processes import Process, System
from simulation.snapshots.processes import Follower, KeeperProcess, LoadingWorkflowProcess
from simulation.stores import Stores

from sluice.settings import ServiceSettings

MAX_PROCESSES = 3


class Faults(faults.Faults):
    """Processes are killed and frozen, Kafka is away, followers begin at any time."""

    def __init__(
        self, system: System, store: Stores, random: Random, settings: ServiceSettings, pause_s: float
    ) -> None:
        super().__init__(system, store, random, pause_s)
        self._settings = settings
        self.kinds = (
            *(lambda: self._kill(KeeperProcess),) * 4,
            *(lambda: self._kill(LoadingWorkflowProcess),) * 2,
            lambda: self._freeze(KeeperProcess),
            lambda: self._freeze(LoadingWorkflowProcess),
            *(lambda: self._start(Follower),) * 2,
            lambda: self._start(KeeperProcess),
            self._kafka_away,
        )

    def end(self) -> None:
        """See Faults; of each kind at least one is left."""
        super().end()
        for kind in (KeeperProcess, LoadingWorkflowProcess):
            if not self.system.running(kind):
                self._start(kind)

    def _start(self, kind: type[Process]) -> None:
        actual = next((type(p) for p in self.system.processes if isinstance(p, kind)), kind)
        if len(self.system.running(kind)) < MAX_PROCESSES:
            process = self.system.start(actual, self._settings)
            self.note(f"{process.source} begins")

    def _kill(self, kind: type[Process]) -> None:
        self.light(self.some(kind), lambda process: self._kill_now(process, kind))

    def _kill_now(self, process: Process, kind: type[Process]) -> None:
        self.kill(process)
        self.later(self.random.choice((0.0, 0.3, 1.0, 3.0)), self._start, kind)

    def _freeze(self, kind: type[Process]) -> None:
        self.light(self.some(kind), self._freeze_now)

    def _freeze_now(self, process: Process) -> None:
        self.freeze(process, self.random.choice((0.2, 1.0, 3.0)))

    def _kafka_away(self) -> None:
        self.kafka_away()
