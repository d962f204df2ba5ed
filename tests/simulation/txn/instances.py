"""The processes of txn-manager, on a Redis in memory; they and those of stream-workflows share a journal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

from simulation.processes import PROCESS, Process
from support.memory_redis import MemoryRedisAccess

from stream_workflows.settings import WorkflowSettings
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings

if TYPE_CHECKING:
    from simulation.txn.plant import Plant

HEARTBEAT_S = 1.0
TXN_SETTINGS = TxnSettings(instance="0", partitions=2)
WORKFLOW_SETTINGS = WorkflowSettings(instance="0", partitions=2)


def _redis_access(*_settings: Any) -> MemoryRedisAccess:
    process = PROCESS.get()
    return MemoryRedisAccess(cast("Plant", process.system).redis, process.touch)


@contextmanager
def memory_parts() -> Iterator[None]:
    """Within it services reach Redis in memory."""
    with patch("txn_manager.service.redis_access", _redis_access):
        yield


class TxnProcess(Process):
    name = "txn-manager"

    def serve(self) -> None:
        assert isinstance(self.settings, TxnSettings)
        self.service = TxnService(self.runtime, self.settings, self.system.store)
        self.system.loop.create_task(self.service.start())
        self._beat()

    def _beat(self) -> None:
        """The sign of life that every service sends; as far as it matters, its acknowledgement."""
        if self.system.broker.back_s is None:
            for listener in self.runtime.heartbeats.on_answered:
                listener()
        self.system.loop.call_later(HEARTBEAT_S, self._beat, context=self.life.context)
