"""The whole of a simulated system: broker, Redis, segment stores, processes, auditor; and what can be done to it."""

import re
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from simulation.txn.auditor import Auditor
from simulation.txn.broker import PARTITIONS, Broker, Message
from simulation.txn.groups import Group
from simulation.txn.instances import (
    TXN_SETTINGS,
    WORKFLOW_SETTINGS,
    Instance,
    TxnInstance,
    WorkflowInstance,
)
from simulation.txn.lives import LIFE, Life, Living, SimulationLoop
from simulation.txn.model import Violation
from simulation.txn.redis import MemoryRedis
from simulation.txn.store import Stores

from sluice.domain.aggregates import evolve, index
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.journal.partition_view import PartitionView
from sluice.journal.record import decode_record
from sluice.messaging.partition import partition_of
from sluice.messaging.requests import Request, encode_request
from sluice.messaging.topics import ABORT, COMMIT, JOURNAL, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, topic_of

GROUPS = (REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, COMMIT, ABORT)


_CLIENT = re.compile(r"request-\d+")
"""The ids of clients' requests. What workflows ask for has ids made from these."""


class Plant:
    """`txn` and `workflow` are the settings of the processes."""

    def __init__(self, loop: SimulationLoop, random: Random, txn: dict[str, Any]) -> None:
        self.loop = loop
        self.random = random
        self.violation: Violation | None = None
        self.auditor = Auditor(self._answered)
        self.views = [PartitionView(evolve, index) for _ in range(PARTITIONS)]
        self.broker = Broker(loop, random, self._landed)
        self.redis = MemoryRedis(loop, random)
        self.store = Stores(random, self.now_ms, self._touch_store)
        self.deaf: list[list[tuple[float, float]]] = [[(0.0, loop.now)], [(0.0, loop.now)]]
        self.groups = {
            topic.name: Group(
                self.broker,
                topic.name,
                eager=topic is ABORT,
                on_owned=self._owned if topic is REQUESTS_TRANSACTIONS else lambda _partition, _life: None,
            )
            for topic in GROUPS
        }
        self.instances: list[Instance] = []
        self.txn_settings = TXN_SETTINGS.model_copy(update=txn)
        self.known_since = [loop.now] * PARTITIONS
        """From when on whoever owns a partition of the requests knows in which time nobody was heard."""
        self.fell_s = loop.now
        """When the last process died, froze, woke or began."""
        self._numbers = count(1)
        self._waiting: dict[str, list[Callable[[Reply], None]]] = {}
        self._unheard: dict[int, float] = dict.fromkeys(range(len(self.deaf)), loop.now)

    @staticmethod
    def partition_of(key: str) -> int:
        return partition_of(key, PARTITIONS)

    def now_ms(self) -> int:
        return int(self.loop.now * 1e9) // 1_000_000

    # Processes.

    def start_txn(self) -> TxnInstance:
        number = next(self._numbers)
        instance = TxnInstance(self, number, self.txn_settings)
        self.instances.append(instance)
        self.fell_s = self.loop.now
        return instance

    def start_workflows(self) -> WorkflowInstance:
        instance = WorkflowInstance(self, next(self._numbers), WORKFLOW_SETTINGS)
        self.instances.append(instance)
        self.fell_s = self.loop.now
        return instance

    def living(self, kind: type[Instance]) -> list[Instance]:
        """Those that are not frozen either."""
        return [i for i in self.instances if isinstance(i, kind) and i.life.living is Living.RUNNING]

    def frozen(self) -> Iterator[Instance]:
        return (i for i in self.instances if i.life.living is Living.FROZEN)

    def kill(self, instance: Instance) -> None:
        self.fell_s = self.loop.now
        self.loop.kill(instance.life)
        self.instances.remove(instance)
        if hasattr(instance, "following"):
            instance.following.end()
        for group in self.groups.values():
            group.lose(instance.life)

    def freeze(self, instance: Instance) -> None:
        self.fell_s = self.loop.now
        self.loop.freeze(instance.life)
        for group in self.groups.values():
            group.lose(instance.life)

    def thaw(self, instance: Instance, stale_s: float) -> None:
        """It goes on with what it knew; what was appended since it learns a little later."""
        if instance.life.living is not Living.FROZEN:
            return
        self.fell_s = self.loop.now
        instance.following.stale_until = self.loop.now + stale_s
        self.loop.thaw(instance.life)
        for group in self.groups.values():
            group.wake(instance.life)

    @staticmethod
    def _touch_store(what: str) -> None:
        life = LIFE.get()
        if life is not None:
            life.touch(what)

    # Listening.

    def _owned(self, partition: int, life: Life | None) -> None:
        now = self.loop.now
        if life is None:
            self._unheard.setdefault(partition, now)
            return
        since = self._unheard.pop(partition, now)
        if since < now:
            self.deaf[partition].append((since, now))
        alone = sum(isinstance(each, TxnInstance) for each in self.instances) == 1
        self.known_since[partition] = since if alone else now

    # What clients do.

    def _landed(self, message: Message) -> None:
        if self.violation is not None:
            return
        try:
            if message.topic() == JOURNAL.name:
                record, at = decode_record(message.value()), message.timestamp()[1]
                self.views[message.partition()].fold(record, message.offset(), at)
                self.auditor.record(record, at)
            else:
                self.auditor.request(message)
        except Violation as violation:
            self.violation = violation

    def _answered(self, request: str, reply: Reply) -> None:
        for listener in self._waiting.pop(request, ()):
            listener(reply)

    def post(self, command: Command, id: str = "") -> str:
        """Put a request into its topic; it lands at once, or when Kafka is back."""
        id = id or f"request-{next(self._numbers)}"
        self.auditor.commands[id] = command
        value = encode_request(Request(id=id, at=self.now_ms(), by="gateway/0", command=command))
        back_s = self.broker.back_s
        if back_s is None:
            self.broker.land(topic_of(command).name, command.key, value)
        else:
            self.loop.call_at(
                back_s, self.broker.land, topic_of(command).name, command.key, value, context=self.loop.outside
            )
        return id

    def ask(self, command: Command) -> Awaitable[Reply]:
        """The reply, when there is one."""
        asked = self.loop.create_future()

        def answered(reply: Reply) -> None:
            if not asked.done():
                asked.set_result(reply)

        id = self.post(command)
        self._waiting.setdefault(id, []).append(answered)
        return asked

    def unanswered(self) -> list[str]:
        """The requests of clients that were not answered yet."""
        answers = self.auditor.answers
        return [id for id in self.auditor.commands if _CLIENT.fullmatch(id) and id not in answers]
