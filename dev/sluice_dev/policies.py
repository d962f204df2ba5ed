"""Scaling and retention by the rules of retention-spark, without Spark: one bucket of all streams for each rule.

What the rules remember goes with the process, so nothing of it is saved. Belongs to the event loop.
"""

import asyncio
from collections.abc import Sequence

from api_gateway.edge.following import follow
from sluice.engine.ports import Clock, Message
from sluice.kafka.topics import RETENTION, RETENTION_MEMORY, SCALE, SCALE_MEMORY, Topic
from sluice.policies.rules import Rule, Rules
from sluice.runtime import Runtime
from sluice.workflows.report_buckets import BucketDecider
from sluice.workflows.report_decider import ReportDecider, ReportRecord

_FROM_THE_BEGINNING = -2


class PolicyDecider:
    """Decides on the reports of a topic, and when the time has come; decisions go where retention-spark sends them."""

    def __init__(self, runtime: Runtime, rule: Rule, reports: Topic, memory: Topic) -> None:
        self._runtime = runtime
        self._clock: Clock = runtime.clock
        self._decider = BucketDecider(ReportDecider(rule, runtime.source), memory.name, 2**62)
        self._memory: bytes | None = None
        self._received: list[ReportRecord] = []
        self._arrived = asyncio.Event()
        begins = dict.fromkeys(range(runtime.settings.partitions), _FROM_THE_BEGINNING)
        follow(runtime, f"reports in {reports.name}", reports.name, begins, self._receive)

    async def run(self) -> None:
        """Decide for ever."""
        while True:
            self._arrived.clear()
            records, self._received = self._received, []
            now = self._clock.now_ms()
            step = self._decider.step(self._memory, records, now)
            self._memory = step.memory
            sent = [
                self._runtime.producer.send(one.topic, one.key, one.value, [(n, v) for n, v in one.headers])
                for one in step.sendings
            ]
            await asyncio.gather(*sent)
            wait_s = None if step.wake_at is None else max(0.0, (step.wake_at - now) / 1000)
            try:
                async with asyncio.timeout(wait_s):
                    await self._arrived.wait()
            except TimeoutError:
                continue

    def _receive(self, batch: Sequence[Message]) -> None:
        for message in batch:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            key, value = (message.key() or b"").decode(), message.value() or b""
            self._received.append(ReportRecord(topic or "", partition or 0, offset or 0, key, value))
        self._arrived.set()


def decide_policies(runtime: Runtime, rules: Rules) -> None:
    """Decide as long as the service lives."""
    for rule, reports, memory in ((rules.scale, SCALE, SCALE_MEMORY), (rules.retention, RETENTION, RETENTION_MEMORY)):
        decider = PolicyDecider(runtime, rule, reports, memory)
        runtime.spawn(decider.run(), f"decisions on {reports.name}")
