"""What a system writes while nobody calls: services in memory, in virtual time."""

import asyncio
from collections import Counter

import pytest
from support.wait import eventually_async

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import Stream, StreamState
from sluice.insight.statistics import OperationCounter, TransactionCounter
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.memory import InMemorySegmentStore
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from sluice.workflows.statistics import StatisticsReporter
from stream_workflows.periodic_jobs import periodic_work
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

SERVICES = ("api-gateway", "cluster-manager", "txn-manager")
STREAMS, MINUTES, PER_MINUTE = 100, 10, 4


class IdleSystem:
    """One instance of each service with all that it does by itself; of txn-manager that is statistics."""

    def __init__(self) -> None:
        self.settings = WorkflowSettings(instance="stream-workflows-0")
        self.broker = MemoryBroker(self.settings.partitions, began_ms=1_000_000)
        self.groups = MemoryGroups(self.broker)
        self.store = InMemorySegmentStore(clock_ms=self.broker.now_ms)
        self.written: Counter[str] = Counter()
        self.broker.on_landed.append(self._landed)
        self.others = [self._begin(name, ServiceSettings(instance=f"{name}-0")) for name in SERVICES]
        self.workflows = self._begin("stream-workflows", self.settings)

    def _landed(self, message: MemoryMessage) -> None:
        self.written[message.topic()] += 1

    def _begin(self, name: str, settings: ServiceSettings) -> Runtime:
        runtime = Runtime(name, settings, MemoryConnections(self.groups))
        runtime.journal.start()
        runtime.spawn(runtime.heartbeats.run(), "heartbeat")
        return runtime

    async def start(self) -> None:
        service = WorkflowService(self.workflows, self.settings, self.store)
        service.consumer.start()
        work = periodic_work(self.workflows, self.settings, self.store, lambda: service.consumer.partitions)
        self.workflows.spawn(work.run(), "periodic")
        every = range(self.settings.partitions)
        for runtime, reporter in (
            (
                self.workflows,
                StatisticsReporter(self.workflows, OperationCounter(), lambda: service.consumer.partitions),
            ),
            (self.others[-1], StatisticsReporter(self.others[-1], TransactionCounter(), lambda: every, progress=True)),
        ):
            runtime.spawn(reporter.run(self.settings.statistics_s), "statistics reports")

    async def create(self, streams: int) -> None:
        self._request("scope", CreateScope("sc"))
        await asyncio.sleep(1)
        config = StreamConfig(scaling=ScalingPolicy())
        for number in range(streams):
            self._request(f"stream-{number}", CreateStream("sc", f"s{number}", config))
        await eventually_async(lambda: self._active() == streams, 60, "all streams are there")

    def _request(self, id: str, command: Command) -> None:
        self.workflows.sender.send(id, command)

    def _active(self) -> int:
        states = [state for view in self.workflows.journal.views() for _, state in view.aggregates()]
        return sum(isinstance(s, Stream) and s.state is StreamState.ACTIVE and s.id.name[0] == "s" for s in states)


@pytest.mark.timeout(120)
async def test_an_idle_system_writes_at_most_four_records_a_minute_to_a_topic() -> None:
    system = IdleSystem()
    await system.start()
    await system.create(STREAMS)
    # What was done is reported and sampled until then.
    await asyncio.sleep(300)
    system.written.clear()
    await asyncio.sleep(60 * MINUTES)
    assert system.written[REQUESTS_CLUSTER.name] > 0, "members are missed that send nothing at all"
    too_many = {topic: count for topic, count in system.written.items() if count > PER_MINUTE * MINUTES}
    assert too_many == {}


async def test_heartbeats_with_news_are_sent_at_once_and_those_of_open_leases_each_second() -> None:
    system = IdleSystem()
    gateway, txn_manager = system.others[0], system.others[-1]
    await asyncio.sleep(30)
    gateway.degraded["spool"] = lambda: "full"
    await asyncio.sleep(2)
    txn_manager.heartbeats.needs_appends = lambda: True
    await asyncio.sleep(10)
    logs = system.broker.logs(REQUESTS_CLUSTER.name)
    beats = [decode_request(message.value()).command for log in logs for message in log]
    sent = [beat for beat in beats if isinstance(beat, Heartbeat)]
    assert [beat.problems.get("spool") for beat in sent if beat.service == gateway.name] == [None, "full"]
    assert 10 <= sum(beat.service == txn_manager.name for beat in sent) <= 13
