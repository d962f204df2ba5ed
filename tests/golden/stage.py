"""Where the story happens: stream-workflows and txn-manager in virtual time, over one journal in memory."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from simulation.processes import Process, System, WorkflowProcess, touch_store
from simulation.txn.instances import TXN_SETTINGS, WORKFLOW_SETTINGS, TxnProcess
from simulation.txn.redis import MemoryRedis

from sluice.backup.restoring import RestoredRecord
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.model import encode_record
from sluice.domain.names import key_of
from sluice.domain.workflow import CancelWorkflow, Workflow, running
from sluice.kafka.topics import JOURNAL
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment

PARTITIONS = 2
DELAYS_S = (0.02,)
MAX_WAIT_S = 600.0


class Stage(System):
    """One process of each service, and segment stores that can refuse kinds of requests.

    It may begin with a journal that a restore has written, and with the stores of the stage before.
    """

    store: InMemorySegmentStore

    def __init__(self, restored: Iterable[RestoredRecord] = (), store: InMemorySegmentStore | None = None) -> None:
        super().__init__(Random(1), PARTITIONS, DELAYS_S)
        self.store = store or InMemorySegmentStore(self._touch_store, self.now_ms)
        for found in restored:
            self.broker.land_in(JOURNAL.name, found.partition, found.key, encode_record(found.record))
        self.redis = MemoryRedis(self.loop, Random(2))
        self.failing: frozenset[str] = frozenset()
        self.workflows = self.start(WorkflowProcess, WORKFLOW_SETTINGS)
        self.transactions = self.start(TxnProcess, TXN_SETTINGS.model_copy(update={"prepared_idle_s": 20.0}))

    def _touch_store(self, moment: Moment, request: str, _segment: str) -> None:
        if request in self.failing:
            raise ConnectionFailure(Failure.TIMED_OUT)
        touch_store(f"{moment} {request}")

    @contextmanager
    def refusing(self, *requests: str) -> Iterator[None]:
        """Meanwhile segment stores do not reply to these requests."""
        self.failing = frozenset(requests)
        try:
            yield
        finally:
            self.failing = frozenset()

    async def do(self, command: Command, status: str = "SUCCESS") -> Reply:
        """Send the request; its reply, which has this status, once what it began has ended."""
        reply = await self.replied(self.post(command))
        assert reply.status == status, (command, reply)
        await self.until(lambda: self.workflow(command.aggregate) is None)
        return reply

    async def replied(self, request: str) -> Reply:
        await self.until(lambda: self.reply(request) is not None)
        reply = self.reply(request)
        assert reply is not None
        return reply

    async def decide(
        self, aggregate: str, rule: Callable[[Reader, Context], Decision], process: Process | None = None
    ) -> None:
        """Have a process propose what one of its own jobs proposes. There must be something to record."""
        by = process or self.workflows
        decision = await by.life.context.run(by.journal.propose, key_of(aggregate), rule)
        assert decision is not None and decision.events

    async def until(self, holds: Callable[[], object]) -> None:
        """Let time pass until the condition holds."""
        async with asyncio.timeout(MAX_WAIT_S):
            while not holds():  # noqa: ASYNC110 - looking is cheap, time is virtual
                await asyncio.sleep(0.01)
        self.look()

    def state(self, aggregate: str) -> Any:
        return self.truth.view(key_of(aggregate)).get(aggregate)

    def workflow(self, aggregate: str) -> Workflow | None:
        return running(self.state(aggregate))

    async def stuck(self, aggregate: str) -> None:
        """Return when the aggregate's workflow shows that it cannot get on."""
        await self.until(lambda: (found := self.workflow(aggregate)) is not None and found.attempts >= 2)

    async def cancel(self, aggregate: str) -> None:
        workflow = self.workflow(aggregate)
        assert workflow is not None
        await self.do(CancelWorkflow(aggregate, workflow.id))
