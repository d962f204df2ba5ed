"""A stream whose transactions are opened in memory, by processes that do this part of what txn-manager does."""

import asyncio
from typing import Any

from sluice.domain.decision import Reply
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, OpenTransaction
from sluice.domain.transaction.decide import Limits, decide_abort
from sluice.domain.transaction_ids import transaction_id
from sluice.engine.consumer import Continuation, Delivery, RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.kafka.topics import REQUESTS_TRANSACTIONS
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from sluice.workflows.dead_lettering import request_of
from support.memory_world import Process, settle, until
from support.transaction_world import KEY, STREAM, TransactionWorld
from txn_manager.demand import PreparedLimits
from txn_manager.opener import TransactionOpener
from txn_manager.preparer import TransactionPreparer

LEASE_MS = 10_000
OPEN = OpenTransaction(*STREAM, lease_ms=LEASE_MS)
NOTHING_PREPARED = PreparedLimits(per_stream=0)


class Opener:
    """As much of txn-manager as opens and prepares transactions, in one process."""

    def __init__(
        self, world: TransactionWorld, process: Process, limits: PreparedLimits, max_opening: int = 256
    ) -> None:
        self.process = process
        self.failures: list[Exception] = []
        source = process.runtime.request_source(REQUESTS_TRANSACTIONS)
        self.consumer = RequestConsumer(
            source, process.journal, self._handle, self._own, self._failed, on_revoked=self._disown
        )
        journal, model, points = process.journal, process.runtime.model, CrashPoints("")
        bounds = Limits(1000, 1000)
        self.opener = TransactionOpener(journal, model, self.consumer, world.store, bounds, points, max_opening)
        self.preparer = TransactionPreparer(journal, model, self.consumer, world.store, limits, points)

    async def _handle(self, delivery: Delivery) -> Continuation | None:
        request = request_of(delivery, REQUESTS_TRANSACTIONS)
        assert isinstance(request.command, OpenTransaction)
        return self.opener.open(request, request.command, delivery)

    async def _own(self, partition: int) -> None:
        self.opener.take_over(partition)
        self.preparer.take_over(partition)

    def _disown(self, partition: int) -> None:
        self.preparer.drop(partition)

    async def _failed(self, _delivery: Delivery, error: Exception) -> None:
        self.failures.append(error)

    async def start(self) -> None:
        """Return when it owns the stream's partition and has taken it over."""
        self.consumer.start()
        partition = self.process.journal.partition_of(KEY)
        await until(lambda: partition in self.consumer.partitions)
        await settle()


class OpenerWorld(TransactionWorld):
    """A stream. While `silent`, segment stores do not create segments; they take `create_s` for it."""

    def __init__(self, limits: PreparedLimits = NOTHING_PREPARED, segments: int = 1, max_opening: int = 256) -> None:
        super().__init__(segments=segments)
        self.limits = limits
        self.silent = False
        self.create_s = 0.0
        self.created_at_s: list[float] = []
        self.created: list[str] = []
        self.store.fault = self._creation
        self.opener = Opener(self, self.first, limits, max_opening)

    def _creation(self, moment: Moment, request: str, segment: str) -> Any:
        if request != "CreateSegment":
            return None
        if moment == "after":
            self.created_at_s.append(self.broker.loop.time())
            self.created.append(segment)
            return None
        if self.silent:
            raise ConnectionFailure(Failure.TIMED_OUT)
        return asyncio.sleep(self.create_s) if self.create_s else None

    def send(self, id: str) -> "asyncio.Future[Reply]":
        """The reply to an open that is requested now, as the first process sees it."""
        reply = self.first.journal.expect_reply(id, (KEY,))
        self.request(id, OPEN)
        return reply

    @property
    def own_segments(self) -> list[str]:
        """Those of transactions."""
        return [name for name in self.store.segments if "#transaction" in name]

    def id_of(self, request: str) -> str:
        return transaction_id(self.stream.active_epoch.reference, request)

    async def until_opened(self, request: str) -> str:
        """The id of one whose decision counts."""
        await until(lambda: self.state(self.id_of(request)) is not None)
        return self.id_of(request)

    async def abort_by_user(self, id: str) -> None:
        command = AbortTransaction(*STREAM, transaction=id, reason=AbortReason.USER)
        await self.do(KEY, lambda reader, context: decide_abort(reader, command, context))
