"""The service: takes requests off the topic, decides them, runs what they begin, takes over what others left.

Requests of one key run one after the other, those of different keys side by side. A partition that is taken over is
first brought up to the end of the journal; then its unfinished workflows go on, before its requests are read, and
reservations whose things are not there are passed on again.
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from confluent_kafka import Message

from sluice.domain.aggregates import DECIDE, decide
from sluice.domain.commands import (
    CancelWorkflow,
    Command,
    CreateReserved,
    CreateScope,
    CreateStream,
    DeleteStream,
    KickWorkflow,
    ReleaseName,
)
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision
from sluice.domain.emptying import is_alive
from sluice.domain.errors import BusyError
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE, key_of, scope_aggregate
from sluice.domain.scope import Scope
from sluice.domain.workflow import running
from sluice.journal.journal import Executed, JournalError, now_ms
from sluice.journal.partition_view import GuardedReader
from sluice.journal.record import Place
from sluice.messaging.dead_letters import source_of
from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer, Rest
from sluice.messaging.producer import ProduceError, RecordTooLargeError
from sluice.messaging.requests import Request, decode_request
from sluice.messaging.topics import REQUESTS_STREAMS
from sluice.runtime import Runtime
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.backoff import delays
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.giving_up import give_up
from sluice.workflows.runner import Runner
from sluice.workflows.sending import Sender
from stream_workflows.places import come_again, place_of
from stream_workflows.settings import WorkflowSettings
from stream_workflows.tools import StreamTools
from stream_workflows.turns import TakesTurns, Turns
from stream_workflows.workflows import WORKFLOWS

log = logging.getLogger(__name__)

GROUP = "stream-workflows"
_REQUEST_STREAM_CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=2))


_URGENT = (b'"type":"KickWorkflow"', b'"type":"CancelWorkflow"')


def _is_urgent(message: Message) -> bool:
    """Commands on a running workflow must not wait in the queue that it holds up."""
    value = message.value() or b""
    return any(urgent in value for urgent in _URGENT)


class WorkflowService:
    def __init__(self, runtime: Runtime, settings: WorkflowSettings, store: SegmentStore) -> None:
        self._runtime = runtime
        self._journal = runtime.journal
        self._sender = Sender(runtime)
        self._crash_points = CrashPoints(settings.crash_at)
        self._turns = Turns(runtime.journal)
        tools = StreamTools(store, self._journal, self._sender)
        self._runner = Runner(self._journal, WORKFLOWS, tools, self._crash_points, self._sender.ask)
        self.consumer = KeyedConsumer(
            settings.kafka_client(),
            REQUESTS_STREAMS.name,
            GROUP,
            self._handle,
            self._take_over,
            self._give_up,
            settings.max_handlers,
            settings.max_open,
            _is_urgent,
        )

    # Requests.

    async def _handle(self, delivery: Delivery) -> Rest | None:
        request = decode_request(delivery.value or b"")
        command = request.command
        self._crash_points.passed(f"{type(command).__name__}/before-decision")
        if isinstance(command, TakesTurns):
            await self._turns.commits_first(command, delivery)
        executed = await self._execute(request, delivery)
        self._crash_points.passed(f"{type(command).__name__}/after-decision")
        if executed.decision is not None and executed.decision.sends:
            return partial(self._pass_on, request.id, executed.decision.sends)
        if isinstance(command, CreateReserved) and self._comes_no_more(command):
            create, incarnation = command.create, command.incarnation
            release = ReleaseName(create.scope, create.kind, create.name, incarnation)
            return partial(self._pass_on, f"{incarnation}-release", (release,))
        delivery.accept()
        if not isinstance(command, KickWorkflow | CancelWorkflow):
            await self._see_through(command.aggregate, delivery)
        if isinstance(command, TakesTurns):
            self._turns.ended(command)
        return None

    async def _see_through(self, aggregate: str, delivery: Delivery) -> None:
        """Run the aggregate's workflow, if it has one, before the next request of its key.

        That of a scope waits for requests of the scope's own key, and so runs beside them.
        """
        if not aggregate.startswith("scope:"):
            await self._runner.run(aggregate, delivery)
        elif self._runner.workflow_of(self._journal.reader(delivery.key).get(aggregate)) is not None:
            self._resume(delivery.partition, aggregate)

    async def _execute(self, request: Request, delivery: Delivery) -> Executed:
        """Decide and append, through any outage of Kafka.

        Raises KeyError for a command that is not ours, JournalError for a record that is too large for the journal.
        """
        command = request.command
        if type(command) not in DECIDE:
            raise KeyError(type(command).__name__)
        place = self._place_of(delivery, command)

        def decided(reader: GuardedReader, context: Context) -> Decision:
            return decide(reader, command, come_again(reader, command, context, place))

        for wait in delays():
            try:
                return await self._journal.execute(command.key, request.id, decided, place)
            except (JournalError, BusyError) as error:
                if isinstance(error.__cause__, RecordTooLargeError):
                    raise
                if self._has_begun(request):
                    return Executed(None, None)
                log.info("request waits", extra={"request": request.id, "error": str(error)})
                async with delivery.waiting():
                    await self._wait_for(error, command, wait)
        raise AssertionError("delays never end")

    def _has_begun(self, request: Request) -> bool:
        """Whether what runs is what this request has begun: its record counted, though Kafka did not say so in time."""
        command = request.command
        workflow = running(self._journal.reader(command.key).get(command.aggregate))
        return workflow is not None and workflow.request == request.id

    async def _wait_for(self, error: Exception, command: Command, wait: float) -> None:
        """Return when it may be worth another attempt."""
        if isinstance(error, BusyError) and isinstance(command, TakesTurns | DeleteStream):
            try:
                await self._turns.wait(command)
                return
            except JournalError as problem:
                log.warning("journal away", extra={"stream": command.key, "error": str(problem)})
        await asyncio.sleep(wait)

    async def _pass_on(self, request: str, commands: Iterable[Command]) -> None:
        """Send commands to other keys, through any outage of Kafka. Raises RecordTooLargeError."""
        for wait in delays():
            try:
                await self._sender.send_all(request, commands)
                break
            except RecordTooLargeError:
                raise
            except ProduceError as error:
                log.warning("command not passed on", extra={"request": request, "error": str(error)})
                await asyncio.sleep(wait)

    async def _give_up(self, delivery: Delivery, error: Exception) -> None:
        if delivery.message is None:
            log.error("work failed that came from no record", extra={"key": delivery.key}, exc_info=error)
        else:
            await give_up(self._runtime, source_of(delivery.message), error, partial(self._place_of, delivery))

    def _place_of(self, delivery: Delivery, command: Command) -> Place | None:
        return place_of(command, delivery, self._journal.partition_of(command.key))

    # Taking over.

    async def _take_over(self, partition: int) -> None:
        await self._catch_up(partition)
        for aggregate, state in list(self._journal.views()[partition].aggregates()):
            if self._runner.workflow_of(state) is not None:
                log.info("workflow taken over", extra={"aggregate": aggregate})
                self._resume(partition, aggregate)
            if isinstance(state, Scope):
                self._pass_on_reserved(partition, state)
        if partition == self._journal.partition_of(SYSTEM_SCOPE):
            self.consumer.run(partition, SYSTEM_SCOPE, self._bootstrap)

    def _resume(self, partition: int, aggregate: str) -> None:
        async def go_on(delivery: Delivery) -> None:
            await self._runner.run(aggregate, delivery)

        lane = aggregate if aggregate.startswith("scope:") else key_of(aggregate)
        self.consumer.run(partition, lane, go_on)

    async def _catch_up(self, partition: int) -> None:
        for wait in delays(most_s=1.0):
            try:
                await self._journal.barrier([partition])
                break
            except JournalError as error:
                log.warning("partition waits for the journal", extra={"partition": partition, "error": str(error)})
                await asyncio.sleep(wait)

    def _pass_on_reserved(self, partition: int, scope: Scope) -> None:
        """Send on the names whose things are not there: whoever reserved them may have died before."""
        reserved = [command for command in scope.reserved() if not self._is_there(command)]

        async def pass_on(_delivery: Delivery) -> None:
            for command in reserved:
                await self._catch_up(self._journal.partition_of(command.key))
                if not self._is_there(command):
                    await self._pass_on(command.incarnation, (command,))

        if reserved:
            self.consumer.run(partition, f"{scope.name} reserved", pass_on)

    def _is_there(self, command: CreateReserved) -> bool:
        state = self._journal.reader(command.key).get(command.aggregate)
        return state is not None and is_alive(state) and state.incarnation == command.incarnation

    def _comes_no_more(self, command: CreateReserved) -> bool:
        """Whether the thing has gone, or its creation was answered without it: its name was reserved once too often.

        A creation that comes back to its scope may stand there twice, if Kafka did not say in time that it has it.
        """
        view = self._journal.reader(command.key)
        state = view.get(command.aggregate)
        if is_alive(state):
            return False
        has_gone = state is not None and state.incarnation == command.incarnation
        return has_gone or view.answer(command.incarnation) is not None

    async def _bootstrap(self, delivery: Delivery) -> None:
        """The scope that Pravega keeps its own streams in, and the stream segment stores report their traffic to."""
        request = f"{self._runtime.source}-bootstrap-{now_ms()}"
        scope = self._journal.reader(SYSTEM_SCOPE).get(scope_aggregate(SYSTEM_SCOPE))
        if not isinstance(scope, Scope):
            create = self._runtime.request(f"{request}-scope", CreateScope(scope=SYSTEM_SCOPE))
            await self._execute(create, delivery)
        scope = self._journal.reader(SYSTEM_SCOPE).get(scope_aggregate(SYSTEM_SCOPE))
        if not isinstance(scope, Scope) or REQUEST_STREAM not in scope.streams:
            stream = CreateStream(scope=SYSTEM_SCOPE, stream=REQUEST_STREAM, config=_REQUEST_STREAM_CONFIG)
            await self._pass_on(f"{request}-stream", (stream,))
