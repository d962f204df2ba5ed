"""The whole of a simulated system: broker, Redis, segment stores, processes, auditor; and what can be done to it."""

from collections.abc import Awaitable
from random import Random
from typing import Any

from simulation.lives import Living
from simulation.processes import Process, System, WorkflowProcess, touch_store
from simulation.stores import Stores
from simulation.txn.auditor import Auditor
from simulation.txn.instances import TXN_SETTINGS, WORKFLOW_SETTINGS, TxnProcess

from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.model import JournalEntry
from sluice.engine.partition import partition_of
from sluice.kafka.topics import REQUESTS_TRANSACTIONS
from sluice.memory.requests import MemoryGroup
from txn_manager.wheel.memory_redis import MemoryRedis

PARTITIONS = 2
DELAYS_S = (0.0, 0.0, 0.0, 0.0005, 0.001, 0.003, 0.02)


class Plant(System):
    """`txn` are settings of the processes of txn-manager."""

    def __init__(self, random: Random, txn: dict[str, Any]) -> None:
        super().__init__(random, PARTITIONS, DELAYS_S)
        loop = self.loop
        self.auditor = Auditor()
        self.truth.on_request.append(self.auditor.request)
        self.truth.on_record.append(self.auditor.record)
        self.truth.on_entry.append(self._entry)
        self.redis = MemoryRedis(random)
        self.store = self.stores = Stores(random, self.now_ms, touch_store)
        topic = REQUESTS_TRANSACTIONS.name
        self.groups.all[topic] = MemoryGroup(self.broker, topic, self._owned)
        self.txn_settings = TXN_SETTINGS.model_copy(update=txn)
        self.owned_s = [loop.now] * PARTITIONS
        self.owned_alone = [True] * PARTITIONS
        """When each partition of the requests got its owner, and whether no other process was there: one that was
        the owner before may still judge leases, as it has known them."""
        self.fell_s = loop.now
        """When the last process died, froze, woke or began."""
        self._waiting: dict[str, Any] = {}

    @staticmethod
    def partition_of(key: str) -> int:
        return partition_of(key, PARTITIONS)

    # Processes.

    def start_txn(self) -> TxnProcess:
        self.fell_s = self.loop.now
        return self.start(TxnProcess, self.txn_settings)

    def start_workflows(self) -> WorkflowProcess:
        self.fell_s = self.loop.now
        return self.start(WorkflowProcess, WORKFLOW_SETTINGS)

    def kill(self, process: Process) -> None:
        self.fell_s = self.loop.now
        super().kill(process)

    def freeze(self, process: Process) -> None:
        self.fell_s = self.loop.now
        super().freeze(process)

    def thaw(self, process: Process, stale_s: float) -> None:
        if process.life.living is Living.FROZEN:
            self.fell_s = self.loop.now
        super().thaw(process, stale_s)

    def _owned(self, partition: int, process: object | None) -> None:
        if process is not None:
            self.owned_s[partition] = self.loop.now
            self.owned_alone[partition] = sum(isinstance(each, TxnProcess) for each in self.processes) == 1

    # What clients do.

    def _entry(self, _partition: int, entry: JournalEntry) -> None:
        if entry.request is not None and entry.reply is not None:
            replied = self._waiting.pop(entry.request, None)
            if replied is not None and not replied.done():
                replied.set_result(entry.reply)

    def ask(self, command: Command) -> Awaitable[Reply]:
        """The reply, when there is one."""
        replied = self.loop.create_future()
        self._waiting[self.post(command)] = replied
        return replied
