"""The processes of txn-manager, on a Redis in memory; they and those of stream-workflows share a journal."""

from typing import TYPE_CHECKING, cast

from simulation.processes import Process

from stream_workflows.settings import WorkflowSettings
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings
from txn_manager.wheel.memory_redis import MemoryRedisAccess

if TYPE_CHECKING:
    from simulation.txn.plant import Plant

HEARTBEAT_S = 1.0
TXN_SETTINGS = TxnSettings(instance="0", partitions=2)
WORKFLOW_SETTINGS = WorkflowSettings(instance="0", partitions=2)


class TxnProcess(Process):
    name = "txn-manager"

    def serve(self) -> None:
        assert isinstance(self.settings, TxnSettings)
        redis = MemoryRedisAccess(cast("Plant", self.system).redis, self.touch)
        self.service = TxnService(self.runtime, self.settings, self.system.store, redis)
        self.system.loop.create_task(self.service.start())
        self._beat()

    def _beat(self) -> None:
        """The sign of life that every service sends; as far as it matters, its acknowledgement."""
        if self.system.broker.back_s is None:
            for listener in self.runtime.heartbeats.on_answered:
                listener()
        self.system.loop.call_later(HEARTBEAT_S, self._beat, context=self.life.context)
