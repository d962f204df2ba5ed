"""The processes of these runs: services that begin from snapshots, and those that make them."""

from simulation.processes import Process, System, WorkflowProcess

from sluice.domain.model import DomainModel
from sluice.engine.errors import MissingRecordsError
from sluice.engine.ports import EndsUnknownError, SnapshotStoreError
from sluice.engine.snapshot_keeper import HelperFailedError, SnapshotKeeper, SnapshotRules
from sluice.engine.snapshotting import NoMarkerError, Snapshotter
from sluice.memory.connections import MemoryConnections
from sluice.settings import ServiceSettings

LOOK_S = 1.0
RULES = SnapshotRules(records=25, min_records=4, interval_ms=3_000, keep_ms=2_000)


class LoadingWorkflowProcess(WorkflowProcess):
    """stream-workflows as it runs in production: from snapshots."""

    loads_snapshots = True


class Follower(Process):
    """Follows the journal from its snapshots, and nothing else."""

    name = "api-gateway"
    loads_snapshots = True

    def serve(self) -> None:
        pass


class KeeperProcess(Process):
    """Makes snapshots."""

    name = "cluster-manager"
    loads_snapshots = True

    def __init__(self, system: System, number: int, settings: ServiceSettings) -> None:
        self.keepers: list[SnapshotKeeper] = []
        super().__init__(system, number, settings)

    def helper_model(self) -> DomainModel:
        """What its helper folds with."""
        return DomainModel()

    def serve(self) -> None:
        store = self.connections.snapshots
        assert store is not None
        keeper = SnapshotKeeper(self.journal, store, RULES, self._is_active, self._members, self._help)
        self.keepers.append(keeper)
        self.runtime.spawn(keeper.run(LOOK_S), "snapshots")

    def _is_active(self) -> bool:
        """Kafka's group takes a while to notice who is gone, so two may be active for a moment."""
        first = next(iter(self.system.running(KeeperProcess)), None)
        return first is self or self.system.random.random() < 0.05

    def _members(self) -> list[str]:
        return [process.source for process in self.system.running(KeeperProcess)]

    async def _help(self, partition: int, offset: int) -> None:
        connections = MemoryConnections(self.system.groups, self, self.touch, loads_snapshots=True)
        assert connections.snapshots is not None
        snapshotter = Snapshotter(
            connections.log,
            connections.snapshots,
            self.helper_model(),
            self.source,
            connections.clock,
            connections.chance,
        )
        try:
            await snapshotter.run(partition, offset)
        except (NoMarkerError, MissingRecordsError, EndsUnknownError, SnapshotStoreError, TimeoutError) as error:
            raise HelperFailedError(repr(error)) from error
        finally:
            connections.log.close()
