"""Where the story happens: stream-workflows and txn-manager in virtual time, over one journal in memory."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from simulation.processes import Process, System, WorkflowProcess, touch_store
from simulation.txn.instances import TXN_SETTINGS, WORKFLOW_SETTINGS, TxnProcess
from support.backups import back_up

from sluice.backup import restoring
from sluice.backup.files import read_manifest
from sluice.backup.restoring import RestoredRecord, restoration
from sluice.backup.states import read_states
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.model import encode_record
from sluice.domain.names import key_of
from sluice.domain.workflow import CancelWorkflow, Workflow, running
from sluice.kafka.topics import JOURNAL
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from txn_manager.wheel.memory_redis import MemoryRedis

PARTITIONS = 2
DELAYS_S = (0.02,)
MAX_WAIT_S = 600.0


class Stage(System):
    """One process of each service, and segment stores that can refuse kinds of requests.

    `restored` is what the journal begins with; `store` are segment stores that have served another journal before.
    """

    store: InMemorySegmentStore

    def __init__(self, restored: Iterable[RestoredRecord] = (), store: InMemorySegmentStore | None = None) -> None:
        super().__init__(Random(1), PARTITIONS, DELAYS_S)
        self.store = store or InMemorySegmentStore(clock_ms=self.now_ms)
        self.store.fault = self._touch_store
        self.redis = MemoryRedis(Random(2))
        self.failing: frozenset[str] = frozenset()
        for one in restored:
            self.broker.land_in(JOURNAL.name, one.partition, one.key, encode_record(one.record))
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

    async def append_marker(self) -> None:
        """Have every process append a marker to each partition."""
        for by in self.processes:
            for partition in range(PARTITIONS):
                await by.life.context.run(self.loop.create_task, by.journal.append_marker(partition))

    def back_up(self) -> Callable[[], Iterable[RestoredRecord]]:
        """Capture the whole state as it is now; what is returned makes a journal of it, whenever that is.

        Its records are small, so that each partition has some, and states come in pieces.
        """
        with TemporaryDirectory() as folder:
            target = back_up(Path(folder), self.truth.views)
            backed_up = read_states(target, read_manifest(target))

        def records() -> list[RestoredRecord]:
            with patch.object(restoring, "RECORD_BYTES", 256):
                return list(restoration(backed_up, PARTITIONS, self.now_ms(), "sluice/golden").records)

        return records

    def end(self) -> None:
        """All processes end, as kill -9 ends them."""
        for process in list(self.processes):
            self.kill(process)

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
