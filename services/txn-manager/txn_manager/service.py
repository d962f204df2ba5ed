"""The service: opens, keeps, commits and aborts transactions.

Three topics come in here, each consumed for itself: requests (open, ping), commits, aborts. They are decided
together, many requests of a partition in one record; the owner of the partition carries out what follows. Nothing is
stored here that the journal does not have.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction import commands as c
from sluice.domain.transaction.decide import decisions
from sluice.domain.transaction.state import open_transaction, segment_names
from sluice.engine.consumer import Continuation, Delivery, RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.engine.ports import SendError
from sluice.engine.retry import delays
from sluice.engine.runner import Runner
from sluice.kafka.requests import Request
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS, Topic
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from sluice.telemetry.scrape import on_scrape
from sluice.workflows.dead_lettering import dead_letter, request_of
from txn_manager import metrics
from txn_manager.commit_steps import workflows
from txn_manager.leases import Leases
from txn_manager.opener import TransactionOpener
from txn_manager.outage_tracker import OutageTracker
from txn_manager.preparer import TransactionPreparer
from txn_manager.settings import TxnSettings
from txn_manager.skipped_segments import SkippedSegments
from txn_manager.step_context import TransactionStepContext
from txn_manager.transaction_completion import TransactionCompletion
from txn_manager.transaction_metrics import TransactionMetrics
from txn_manager.wheel.timer_redis import TimerClients, TimerRedis

log = logging.getLogger(__name__)

Passed = Callable[[str, c.CheckLease, int], Awaitable[None]]
"""What to do with a question about a lease that has passed a topic: its request's id, itself, when it was appended."""


class TxnService:
    """Takes requests off the topics and decides them."""

    def __init__(self, runtime: Runtime, settings: TxnSettings, store: SegmentStore, redis: TimerClients) -> None:
        self._runtime = runtime
        self._settings = settings
        journal = self._journal = runtime.journal
        limits = settings.limits
        self._decisions = decisions(limits)
        crash_points = CrashPoints(settings.crash_at)
        self.outages = OutageTracker()
        timer_redis = TimerRedis(redis.client)
        runtime.stack.push_async_callback(timer_redis.close)
        grace_ms = int(settings.grace_s * 1000)
        self.leases = Leases(runtime, timer_redis, self.outages, settings.cluster_name, settings.tick_s, grace_ms)
        runtime.heartbeats.on_answered.append(lambda: self.outages.acknowledged(runtime.clock.now_ms()))
        runtime.heartbeats.needs_appends = self.leases.awaits_pings
        self.requests = self._consumer(REQUESTS_TRANSACTIONS, self._own_requests, self._disown_requests)
        self.commits = self._consumer(COMMIT, self._own_commits, self._disown_commits)
        self.aborts = self._consumer(ABORT)
        self._opener = TransactionOpener(
            journal, runtime.model, self.requests, store, limits, crash_points, settings.max_steps
        )
        self._preparer = TransactionPreparer(
            journal, runtime.model, self.requests, store, settings.prepared_limits, crash_points
        )
        context = self._context = TransactionStepContext(store, journal)
        runner = Runner(
            journal, runtime.model, workflows(settings.batch), context, crash_points, foreseen=SegmentStoreError
        )
        self._skipped = SkippedSegments(journal, self.commits, context)
        self._completion = TransactionCompletion(journal, self.commits, runner, settings.batch, settings.max_steps)
        self._metrics = TransactionMetrics(
            journal, lambda: self.requests.partitions, lambda: self.commits.partitions, self.leases.ends_at
        )
        on_scrape("undecided", lambda: metrics.UNDECIDED.set(journal.undecided))

    def checks(self) -> Mapping[str, Callable[[], str | None]]:
        """What the readiness of the service consists of, beside what all services have."""
        return {
            REQUESTS_TRANSACTIONS.name: self.requests.problem,
            COMMIT.name: self.commits.problem,
            ABORT.name: self.aborts.problem,
            "redis": self.leases.timers.unreached,
        }

    def degraded(self) -> Mapping[str, Callable[[], str | None]]:
        """What does not keep the service from serving: without Redis no lease runs out, and all else goes on."""
        return {"timers": self.leases.timers.problem}

    async def start(self) -> None:
        self.requests.start()
        self.commits.start()
        self.aborts.start()

    async def stop(self) -> None:
        await asyncio.gather(self.requests.stop(), self.commits.stop(), self.aborts.stop())
        await self._preparer.stop()
        await self.leases.stop()

    # Requests.

    async def _handle(self, topic: Topic, delivery: Delivery) -> Continuation:
        request = request_of(delivery, topic)
        command = request.command
        match command:
            case c.OpenTransaction():
                return self._opener.open(request, command, delivery)
            case c.CheckLease():
                passed = self.leases.passed_commits if topic is COMMIT else self.leases.passed_pings
                return self._check(passed, request, command, delivery.appended_at)
            case c.CommitTransaction():
                # The record first: it goes out before the requests to the segment stores do.
                proposed = self._propose(delivery, request)
                self._request_facts(command)
                return proposed
            case _:
                return self._propose(delivery, request)

    def _propose(self, delivery: Delivery, request: Request) -> Continuation:
        """Have the command decided in request order; the continuation ends when that counts."""
        command = request.command

        def decided(reader: Reader, context: Context) -> Decision:
            return self._decisions[type(command)](reader, command, context)

        counted = self._journal.propose(command.key, decided, delivery.facts(request.id, request.principal))
        return lambda: counted

    def _request_facts(self, command: c.CommitTransaction) -> None:
        """Of the segments that will be merged if the command is accepted; and their ages, if their load is reported."""
        reader = self._journal.reader(command.key)
        stream, found = find_stream(reader, command.stream_id), open_transaction(reader, command.transaction_id)
        if stream is not None and found is not None and found.ready:
            names = segment_names(stream, found.uuid).values()
            self._context.lengths.request(names)
            if stream.config.scaling.is_by_load:
                self._context.creation_times.request(names)

    def _check(self, passed: Passed, request: Request, command: c.CheckLease, at: int) -> Continuation:
        """Have the question judged behind everything that came before it."""
        before = self._journal.everything_before(command.key)

        async def judge() -> None:
            await before
            for wait in delays(chance=self._journal.chance):
                try:
                    await passed(request.id, command, at)
                    break
                except SendError as error:
                    log.warning("question not passed on", extra={"request": request.id, "error": str(error)})
                    await asyncio.sleep(wait)

        return judge

    # Partitions.

    def _consumer(
        self,
        topic: Topic,
        on_assigned: Callable[[int], Awaitable[None]] | None = None,
        on_revoked: Callable[[int], None] = lambda _partition: None,
    ) -> RequestConsumer:
        settings = self._settings
        return RequestConsumer(
            self._runtime.request_source(topic),
            self._journal,
            partial(self._handle, topic),
            on_assigned,
            partial(dead_letter, self._runtime),
            settings.max_open,
            on_revoked,
        )

    async def _own_requests(self, partition: int) -> None:
        self.leases.own(partition)
        self._opener.take_over(partition)
        self._preparer.take_over(partition)

    def _disown_requests(self, partition: int) -> None:
        self.leases.disown(partition)
        self._preparer.drop(partition)

    async def _own_commits(self, partition: int) -> None:
        self.leases.listen(partition)
        self._completion.take_over(partition)
        self._skipped.take_over(partition)

    def _disown_commits(self, partition: int) -> None:
        self._completion.drop(partition)
        self._skipped.drop(partition)
