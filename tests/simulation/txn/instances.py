"""The processes of the simulation: the production services on a runtime that reaches only what is in memory."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from simulation.txn.broker import PARTITIONS, EndOffsets, Fetching, Message, Producer
from simulation.txn.groups import AbortSource, KeyedSource
from simulation.txn.lives import Killed, Life, Living
from simulation.txn.redis import MemoryWheel

from sluice.domain.commands import Command
from sluice.journal.journal import Journal, now_ms
from sluice.messaging.requests import Request, encode_request
from sluice.messaging.topics import ABORT, COMMIT, JOURNAL, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, Topic
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings

if TYPE_CHECKING:
    from simulation.txn.plant import Plant

HEARTBEAT_S = 1.0

_INSTANCE: ContextVar["Instance"] = ContextVar("instance")


def _wheel(_url: str, _prefix: str, claim_ms: int) -> MemoryWheel:
    instance = _INSTANCE.get()
    return MemoryWheel(instance.plant.redis, claim_ms, instance.touch)


@contextmanager
def memory_parts() -> Iterator[None]:
    """Within it services reach Redis and the topic of aborts in memory."""
    with (
        patch("txn_manager.service.TimerWheel", _wheel),
        patch("txn_manager.service.AbortAgent", AbortSource),
    ):
        yield


class Instance:
    """One process, and as much of its Runtime as services use."""

    name = ""

    def __init__(self, plant: "Plant", number: int, settings: Any) -> None:
        self.plant = plant
        self.settings = settings
        self.source = f"{self.name}/{number}"
        self.life = Life(self.source, self.touch)
        self.life.context.run(_INSTANCE.set, self)
        self.stack = AsyncExitStack()
        self.on_heartbeat: list[Callable[[], None]] = []
        self.producer = Producer(plant.broker, self.touch)
        self.fuse: tuple[int, Callable[[Instance], None]] | None = None
        plant.loop.call_soon(self._begin, context=self.life.context)

    def _begin(self) -> None:
        broker = self.plant.broker
        self.journal = Journal({}, self.producer, self.source, PARTITIONS)  # type: ignore[arg-type]
        self.journal._ends = EndOffsets(broker)  # type: ignore[assignment]
        self.journal.loaded.set()
        self.following = Fetching(broker, JOURNAL.name, self.life.context, self._follow)
        for log in broker.logs(JOURNAL.name):
            if log:
                self.journal._on_batch(log)  # type: ignore[arg-type]
        self.following.start({p: len(log) for p, log in enumerate(broker.logs(JOURNAL.name))})
        self.serve()

    def serve(self) -> None:
        """Put the service together and have it join its groups."""
        raise NotImplementedError

    def _follow(self, batch: list[Message]) -> None:
        self.journal._on_batch(batch)  # type: ignore[arg-type]

    def touch(self, _what: str) -> None:
        """Every call that reaches the outside comes by here, before and after; it may be the last."""
        if self.fuse is not None:
            left, action = self.fuse
            if left > 0:
                self.fuse = (left - 1, action)
            else:
                self.fuse = None
                action(self)
        if self.life.living is Living.DEAD:
            raise Killed

    def request(self, id: str, command: Command) -> Request:
        """See Runtime."""
        return Request(id=id, at=now_ms(), by=self.source, command=command)

    def send(self, topic: Topic, request: Request) -> asyncio.Future[None]:
        """See Runtime."""
        return self.producer.send(topic.name, request.command.key, encode_request(request), ())

    def beat(self) -> None:
        """The sign of life that every service sends; as far as it matters, its acknowledgement."""
        if self.plant.broker.back_s is None:
            for listener in self.on_heartbeat:
                listener()
        loop = self.plant.loop
        loop.call_later(HEARTBEAT_S, self.beat, context=self.life.context)


class TxnInstance(Instance):
    name = "txn-manager"

    def serve(self) -> None:
        """See Instance."""
        self.service = TxnService(self, self.settings, self.plant.store)  # type: ignore[arg-type]
        self.service.leases.start()
        groups = self.plant.groups
        groups[REQUESTS_TRANSACTIONS.name].join(self.life, KeyedSource(self.service.requests))
        groups[COMMIT.name].join(self.life, KeyedSource(self.service.commits))
        assert isinstance(self.service.aborts, AbortSource)
        groups[ABORT.name].join(self.life, self.service.aborts)
        self.beat()


class WorkflowInstance(Instance):
    name = "stream-workflows"

    def serve(self) -> None:
        """See Instance."""
        self.service = WorkflowService(self, self.settings, self.plant.store)  # type: ignore[arg-type]
        self.plant.groups[REQUESTS_STREAMS.name].join(self.life, KeyedSource(self.service.consumer))


TXN_SETTINGS = TxnSettings(instance="0", partitions=PARTITIONS)
WORKFLOW_SETTINGS = WorkflowSettings(instance="0", partitions=PARTITIONS)
