"""The service: opens, keeps, commits and aborts transactions.

Three topics come in here, each consumed for itself: requests (open, ping), commits, aborts. What they ask is decided
together, many requests of a partition in one record; what follows from a decision is done by whoever owns the partition
it is in. Nothing is kept here that the journal does not have.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Message

from sluice.domain import commands as c
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.errors import NotFoundError
from sluice.domain.transaction import decide
from sluice.domain.transaction.decide import Limits
from sluice.journal.group_commit import GroupCommit
from sluice.journal.journal import now_ms
from sluice.messaging.dead_letters import Source, source_of
from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer, Rest
from sluice.messaging.producer import ProduceError
from sluice.messaging.requests import Request, decode_request
from sluice.messaging.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS, Topic
from sluice.runtime import Runtime
from sluice.segmentstore.store import SegmentStore
from sluice.telemetry import tracing
from sluice.telemetry.scrape import on_scrape
from sluice.workflows.backoff import delays
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.giving_up import give_up
from sluice.workflows.runner import Runner
from txn_manager import metrics
from txn_manager.abort_agent import AbortAgent
from txn_manager.abort_lanes import Aborting
from txn_manager.ending_steps import workflows
from txn_manager.endings import Endings
from txn_manager.hearing import Hearing
from txn_manager.leases import Leases
from txn_manager.opening import Opening
from txn_manager.settings import TxnSettings
from txn_manager.tally import Tally
from txn_manager.tools import TransactionTools
from txn_manager.wheel.wheel import TimerWheel

log = logging.getLogger(__name__)

GROUP = "txn-manager"


Passed = Callable[[str, c.CheckLease, int], Awaitable[None]]
"""What to do with a question about a lease that has passed a topic: its request's id, itself, when it was appended."""


class TxnService:
    """Takes requests off the topics and decides them."""

    def __init__(self, runtime: Runtime, settings: TxnSettings, store: SegmentStore) -> None:
        self._runtime = runtime
        self._journal = runtime.journal
        self._settings = settings
        self._limits = Limits(settings.max_open_transactions, settings.max_waiting_commits)
        self._crash_points = CrashPoints(settings.crash_at)
        self._group = GroupCommit(runtime.journal)
        self._opening = Opening(runtime.journal, self._group, store, self._limits, self._crash_points)
        self.hearing = Hearing()
        wheel = TimerWheel(settings.redis_url, settings.cluster_name, int(settings.claim_s * 1000))
        runtime.stack.push_async_callback(wheel.close)
        self.leases = Leases(runtime, wheel, self.hearing, settings.tick_s, int(settings.grace_s * 1000))
        runtime.on_heartbeat.append(lambda: self.hearing.acknowledged(now_ms()))
        self.aborts = AbortAgent(settings, f"{GROUP}-{ABORT.name}", self._handle_abort, self._give_up_abort)
        self.requests = self._consumer(
            REQUESTS_TRANSACTIONS, self._handle_request, self._own_requests, self.leases.disown
        )
        self.commits = self._consumer(COMMIT, self._handle_commit, self._own_commits, self._disown_commits)
        runner = Runner(
            runtime.journal,
            workflows(settings.batch),
            TransactionTools(store, runtime.journal),
            self._crash_points,
        )
        self._endings = Endings(runtime.journal, self.commits, runner, settings.batch, settings.max_handlers)
        self._tally = Tally(
            runtime.journal, lambda: self.requests.partitions, lambda: self.commits.partitions, self.leases.ends_at
        )
        on_scrape("undecided", lambda: metrics.UNDECIDED.set(self._group.waiting))

    def checks(self) -> Mapping[str, Callable[[], str | None]]:
        """What the readiness of the service consists of, beside what all services have."""
        return {
            REQUESTS_TRANSACTIONS.name: partial(_problem, self.requests),
            COMMIT.name: partial(_problem, self.commits),
            ABORT.name: partial(_problem, self.aborts),
            "redis": self.leases.timers.unreached,
        }

    def degraded(self) -> Mapping[str, Callable[[], str | None]]:
        """What does not keep the service from serving: without Redis no lease runs out, and all else goes on."""
        return {"timers": self.leases.timers.problem}

    async def start(self) -> None:
        self.leases.start()
        self.requests.start()
        self.commits.start()
        await self.aborts.start()

    async def stop(self) -> None:
        await self.aborts.stop()
        await self.requests.stop()
        await self.commits.stop()
        await self._group.stop()
        await self.leases.stop()

    # Requests.

    async def _handle_request(self, delivery: Delivery) -> Rest | None:
        request, at = decode_request(delivery.value or b""), _appended_at(delivery.message)
        command = request.command
        match command:
            case c.OpenTransaction():
                return self._seen_through(delivery, self._opening.open(request, command, at))
            case c.PingTransaction():
                return self._seen_through(delivery, self._submit(request, at, decide.decide_ping))
            case c.CheckLease():
                return self._seen_through(delivery, self._check(self.leases.passed_pings, request, command, at))
        raise UnknownCommandError(f"{type(command).__name__} does not belong here")

    async def _handle_commit(self, delivery: Delivery) -> Rest | None:
        request, at = decode_request(delivery.value or b""), _appended_at(delivery.message)
        command = request.command
        match command:
            case c.CommitTransaction():
                committing = partial(decide.decide_commit, limits=self._limits)
                return self._seen_through(delivery, self._submit(request, at, committing))
            case c.CheckLease():
                return self._seen_through(delivery, self._check(self.leases.passed_commits, request, command, at))
        raise UnknownCommandError(f"{type(command).__name__} does not belong here")

    async def _handle_abort(self, record: Aborting) -> None:
        request = decode_request(record.value)
        if not isinstance(request.command, c.AbortTransaction):
            raise UnknownCommandError(f"{type(request.command).__name__} does not belong here")
        with tracing.within(tracing.handling(ABORT.name, record.headers)):
            await self._submit(request, record.timestamp_ms, decide.decide_abort)

    def _submit(
        self, request: Request, at: int, choose: Callable[[Reader, Any, Context], Decision]
    ) -> asyncio.Future[Decision]:
        command = request.command

        def decided(reader: Reader, context: Context) -> Decision:
            return choose(reader, command, context)

        return self._group.submit(command.key, request.id, at, decided)

    def _check(self, passed: Passed, request: Request, command: c.CheckLease, at: int) -> Awaitable[None]:
        return self._passed(self._group.everything_before(command.key), passed, request, command, at)

    async def _passed(
        self, before: Awaitable[object], passed: Passed, request: Request, command: c.CheckLease, at: int
    ) -> None:
        """Have the question judged behind everything that came before it."""
        await before
        for wait in delays():
            try:
                await passed(request.id, command, at)
                break
            except ProduceError as error:
                log.warning("question not passed on", extra={"request": request.id, "error": str(error)})
                await asyncio.sleep(wait)

    def _seen_through(self, delivery: Delivery, work: Awaitable[object]) -> Rest:
        """Do the work beside the records that follow, and keep the record if that fails."""

        async def rest() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - the record is kept
                await self._give_up(delivery, error)

        return rest

    async def _give_up(self, delivery: Delivery, error: Exception) -> None:
        if delivery.message is None:
            log.error("work failed that came from no record", extra={"key": delivery.key}, exc_info=error)
        else:
            await give_up(self._runtime, source_of(delivery.message), error)

    async def _give_up_abort(self, record: Aborting, error: Exception) -> None:
        source = Source(ABORT.name, record.partition, record.offset, record.key, record.value)
        await give_up(self._runtime, source, error)

    # Partitions.

    def _consumer(
        self,
        topic: Topic,
        handler: Callable[[Delivery], Awaitable[Rest | None]],
        on_assigned: Callable[[int], Awaitable[None]],
        on_revoked: Callable[[int], None],
    ) -> KeyedConsumer:
        settings = self._settings
        return KeyedConsumer(
            settings.kafka_client(),
            topic.name,
            f"{GROUP}-{topic.name}",
            handler,
            on_assigned,
            self._give_up,
            settings.max_handlers,
            settings.max_open,
            on_revoked=on_revoked,
        )

    async def _own_requests(self, partition: int) -> None:
        await self._journal.barrier([partition])
        await self.leases.own(partition)

    async def _own_commits(self, partition: int) -> None:
        await self._journal.barrier([partition])
        await self.leases.listen(partition)
        self._endings.take_over(partition)

    def _disown_commits(self, partition: int) -> None:
        self._endings.drop(partition)


class UnknownCommandError(NotFoundError):
    """The command came in a topic whose readers do not know it."""


def _appended_at(message: Message | None) -> int:
    """When the broker appended the record, epoch ms."""
    return message.timestamp()[1] if message is not None else now_ms()


def _problem(consumer: KeyedConsumer | AbortAgent) -> str | None:
    if consumer.failure is not None:
        return repr(consumer.failure)
    return None if consumer.joined else "joining its group"
