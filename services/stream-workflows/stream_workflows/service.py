"""The service: takes requests off the topic, decides them, and runs the workflows of the partitions it owns.

Requests of one key run one after the other, those of different keys side by side. A partition that is taken over is
first brought up to the end of the journal; then its unfinished workflows go on, before its requests are read. From
then on every workflow that the view shows is run, whichever instance recorded its beginning.
"""

import asyncio
import itertools
import logging
from functools import partial
from typing import get_args

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE, key_of
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.state import find_scope
from sluice.domain.stream.commands import CreateStream, Report
from sluice.domain.stream.state import find_stream
from sluice.engine.consumer import Delivery, RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import SendError
from sluice.engine.retry import delays
from sluice.engine.runner import Runner
from sluice.kafka.topics import REQUESTS_STREAMS, is_control
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from sluice.workflows.blockers import KeyQueues
from sluice.workflows.dead_lettering import dead_letter, request_of
from stream_workflows.decider import Decider
from stream_workflows.fairness import ExclusiveCommand, Fairness
from stream_workflows.settings import WorkflowSettings
from stream_workflows.step_context import StreamStepContext
from stream_workflows.workflows import WORKFLOWS

log = logging.getLogger(__name__)

_REQUEST_STREAM_CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=2))


class WorkflowService:
    def __init__(self, runtime: Runtime, settings: WorkflowSettings, store: SegmentStore) -> None:
        self._runtime = runtime
        self._journal = runtime.journal
        self._sender = runtime.sender
        self._crash_points = CrashPoints(settings.crash_at)
        self._fairness = Fairness(runtime.journal)
        self._decider = Decider(runtime.journal, self._fairness, store)
        self._runner = Runner(
            self._journal,
            runtime.model,
            WORKFLOWS,
            StreamStepContext(store, self._journal, self._sender),
            self._crash_points,
            self._sender.send,
            KeyQueues(runtime.clock),
            SegmentStoreError,
        )
        self._steps = asyncio.Semaphore(settings.max_steps)
        self.consumer = RequestConsumer(
            runtime.request_source(REQUESTS_STREAMS),
            self._journal,
            self._handle,
            self._take_over,
            partial(dead_letter, runtime),
            settings.max_open,
            beside=[kind.__name__ for kind in get_args(Report)],
        )
        ids = f"{runtime.source}-bootstrap-{self._journal.chance.token()}-{{:x}}"
        self._bootstrap_ids = map(ids.format, itertools.count(1))
        self._journal.on_entry.append(self._observe)

    # Requests.

    async def _handle(self, delivery: Delivery) -> None:
        request = request_of(delivery, REQUESTS_STREAMS)
        command = request.command
        self._crash_points.passed(f"{type(command).__name__}/before-decision")
        if isinstance(command, ExclusiveCommand):
            await self._fairness.commits_first(command)
        await self._decider.decide(command, delivery.facts(request.id, request.principal))
        self._crash_points.passed(f"{type(command).__name__}/after-decision")
        delivery.acknowledge()
        if not is_control(command) and not isinstance(command, Report):
            await self._runner.run_to_completion(command.aggregate, self._steps)
        if isinstance(command, ExclusiveCommand):
            self._fairness.ended(command)

    # Workflows.

    async def _take_over(self, partition: int) -> None:
        view = self._journal.views()[partition]
        for aggregate in list(view.under_way()):
            self._resume(partition, aggregate)
        if partition == self._journal.partition_of(SYSTEM_SCOPE):
            self.consumer.executor.run(partition, SYSTEM_SCOPE, self._bootstrap)

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        """An entry of an owner before may begin a workflow here, behind the take-over."""
        if partition in self.consumer.partitions:
            for event in entry.events:
                if not self.consumer.executor.has_work(key_of(event.aggregate)):
                    self._resume(partition, event.aggregate)

    def _resume(self, partition: int, aggregate: str) -> None:
        if self._runner.workflow_of(self._journal.views()[partition].get(aggregate)) is None:
            return
        log.info("workflow taken over", extra={"aggregate": aggregate})
        run = partial(self._runner.run_to_completion, aggregate, self._steps)
        self.consumer.executor.run(partition, key_of(aggregate), run)

    async def _bootstrap(self) -> None:
        """The scope that Pravega keeps its own streams in, and the stream segment stores report their traffic to.

        The stream is requested: its key may be another instance's. Each attempt is a request of its own, because
        one that failed may have come through.
        """
        if find_scope(self._journal.reader(SYSTEM_SCOPE), SYSTEM_SCOPE) is None:
            await self._decider.decide(CreateScope(SYSTEM_SCOPE), RequestFacts(next(self._bootstrap_ids)))
        create = CreateStream(scope=SYSTEM_SCOPE, stream=REQUEST_STREAM, config=_REQUEST_STREAM_CONFIG)
        for wait in delays(chance=self._journal.chance):
            if find_stream(self._journal.reader(create.key), StreamId(SYSTEM_SCOPE, REQUEST_STREAM)) is not None:
                return
            id = next(self._bootstrap_ids)
            try:
                await self._sender.send(id, create)
                return
            except SendError as error:
                log.warning("command not sent", extra={"request": id, "error": str(error)})
                await asyncio.sleep(wait)
