"""Scaling and retention decided here instead of by retention-spark: by its rules, steps and memory, without Spark.

It is a member of the same group, so that one of them decides: this or a driver on Spark. One that begins reads what is
remembered, and the reports behind the position that was saved; what was sent and is not saved yet is decided again,
under the same ids. A partition of a topic is a bucket: its reports and its memory have the same keys. Of decisions no
table is written. Belongs to the event loop.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress

import msgspec

from sluice.domain.cluster.commands import Heartbeat
from sluice.engine.ports import Following, Message, NotLeaderError, Room, SendError, Terms, TopicUnreadableError
from sluice.exceptions import in_words
from sluice.heartbeats import Heartbeats
from sluice.kafka.sending import RequestSender
from sluice.kafka.topics import RETENTION, RETENTION_MEMORY, SCALE, SCALE_MEMORY, Topic
from sluice.policies.rules import Rule, Rules
from sluice.runtime import Runtime
from sluice.settings import PolicySettings
from sluice.workflows.dead_lettering import count_dead_letters
from sluice.workflows.read_position import ReadPosition
from sluice.workflows.report_buckets import BucketDecider, Outcome, outcome_of
from sluice.workflows.report_decider import SERVICE, OutgoingRecord, ReportDecider, ReportRecord

log = logging.getLogger(__name__)

WITHOUT_SPARK = "without-spark"
"""What the name of such a member of retention-spark ends with."""
SAVE_MS = 600_000
"""As SLUICE_SPARK_SAVE_S has it."""
MAX_RECORDS = 500
"""Of a step: each takes a tenth of a millisecond, in which the loop does nothing else."""
MAX_HELD = 10_000
"""Records that wait for a step; while there are more, no further ones are fetched."""
LOOK_S = 0.5
AGAIN_S = 1.0


class FollowingEndedError(Exception):
    """A topic is not read any more."""


class PolicyDecider:
    """Decides by one rule on the reports of a topic while this instance leads; `source` is it as a member."""

    def __init__(
        self, runtime: Runtime, terms: Terms, source: str, rule: Rule, reports: Topic, memory: Topic, save_ms: int
    ) -> None:
        self.failure: str | None = None
        self._runtime = runtime
        self._terms = terms
        self._decider = BucketDecider(ReportDecider(rule, source), memory.name, save_ms)
        self._reports = reports.name
        self._memory = memory.name

    async def run(self) -> None:
        """Decide for ever. What fails is begun anew, from what is saved."""
        while True:
            if not (term := self._terms.term):
                self.failure = None
                await asyncio.sleep(LOOK_S)
                continue
            try:
                await self._decide(term)
            except (NotLeaderError, FollowingEndedError, TopicUnreadableError, SendError) as error:
                self.failure = in_words(error)
                log.warning("decisions begin anew", extra={"topic": self._reports, "error": self.failure})
                await asyncio.sleep(AGAIN_S)

    async def _decide(self, term: int) -> None:
        """Decide as long as the term lasts."""
        partitions, connections = self._runtime.settings.partitions, self._runtime.connections
        saved = await self._terms.read_positions(self._reports, partitions)
        begin = {partition: saved.get(partition, 0) for partition in range(partitions)}
        await self._terms.save_positions(term, self._reports, begin)
        remembered = await connections.read_all(self._memory)
        inbox = _Inbox(remembered)
        memory_begin = dict.fromkeys(range(partitions), 0)
        memory_begin |= {record.partition(): record.offset() + 1 for record in remembered}
        position, buckets = ReadPosition(begin), _Buckets(self._decider, self._reports)
        async with AsyncExitStack() as stack:
            followings = []
            # What others write into the memory, who woke late, is saved anew.
            for topic, first in ((self._memory, memory_begin), (self._reports, begin)):
                followings.append(connections.follow(f"policies-{topic}", topic, first, inbox.receive))
                stack.push_async_callback(followings[-1].stop)
            while self._terms.term == term:
                _check(followings)
                now = self._runtime.clock.now_ms()
                outcomes = buckets.step(inbox.take(), now)
                await self._carry_out(term, outcomes, position)
                self.failure = None
                await inbox.wait(min(LOOK_S, max(0.0, (buckets.wake_at - now) / 1000)))

    async def _carry_out(self, term: int, outcomes: Sequence[Outcome], position: ReadPosition) -> None:
        """What is remembered is saved behind what was decided: between the two it is decided twice, never left out."""
        sendings = [sending for outcome in outcomes for sending in outcome.sendings]
        saved = [record for outcome in outcomes for record in outcome.saved]
        if sendings or saved:
            # Kafka refuses it where another instance decides by now.
            await self._terms.save_positions(term, self._reports, position.saved())
        await self._send(sendings)
        count_dead_letters(sendings)
        await self._send(saved)
        position.observe(outcomes)

    async def _send(self, records: Iterable[OutgoingRecord]) -> None:
        send = self._runtime.producer.send
        await asyncio.gather(*(send(one.topic, one.key, one.value or None, [*one.headers]) for one in records))


def _check(followings: Iterable[Following]) -> None:
    for following in followings:
        if following.failure is not None:
            raise FollowingEndedError(in_words(following.failure)) from following.failure


class _Buckets:
    """What is remembered, by partition."""

    def __init__(self, decider: BucketDecider, reports: str) -> None:
        self._decider = decider
        self._reports = reports
        self._memory: dict[int, bytes | None] = {}
        self._wakes: dict[int, int] = {}

    @property
    def wake_at(self) -> int:
        """When something is to be decided or saved without a report, epoch ms."""
        return min(self._wakes.values(), default=2**62)

    def step(self, records: Iterable[ReportRecord], now: int) -> list[Outcome]:
        """Take a step for each partition with records, or whose time has come."""
        arrived: dict[int, list[ReportRecord]] = defaultdict(list)
        for record in records:
            arrived[record.partition].append(record)
        due = {partition for partition, at in self._wakes.items() if at <= now}
        return [self._step(partition, arrived[partition], now) for partition in sorted(arrived.keys() | due)]

    def _step(self, partition: int, records: list[ReportRecord], now: int) -> Outcome:
        step = self._decider.step(self._memory.get(partition), records, now)
        self._memory[partition] = step.memory
        self._wakes.pop(partition, None)
        if step.wake_at is not None:
            self._wakes[partition] = step.wake_at
        return outcome_of(step, partition, records, self._reports, now)


class _Inbox:
    """Records that no step has taken yet; those that were remembered come first, all at once."""

    def __init__(self, remembered: Sequence[Message]) -> None:
        self._remembered = [_record(message) for message in remembered]
        self._received: deque[ReportRecord] = deque()
        self._arrived = asyncio.Event()
        self._room: Room = None

    def receive(self, batch: Sequence[Message]) -> Room:
        self._received.extend(_record(message) for message in batch if message.error() is None)
        self._arrived.set()
        if self._room is None and len(self._received) > MAX_HELD:
            self._room = asyncio.get_running_loop().create_future()
        return self._room

    def take(self) -> list[ReportRecord]:
        taken, self._remembered = self._remembered, []
        taken += [self._received.popleft() for _ in range(min(MAX_RECORDS, len(self._received)))]
        if not self._received:
            self._arrived.clear()
        if self._room is not None and len(self._received) <= MAX_HELD:
            self._room.set_result(None)
            self._room = None
        return taken

    async def wait(self, seconds: float) -> None:
        """Return when there is something, or after that time; all else on the loop has had a turn by then."""
        await asyncio.sleep(0)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._arrived.wait()


class _Header(msgspec.Struct):
    key: str
    value: bytes | None


def _record(message: Message) -> ReportRecord:
    headers = [
        _Header(name, text.encode() if isinstance(text, str) else text) for name, text in message.headers() or ()
    ]
    return ReportRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        (message.key() or b"").decode(errors="replace"),
        message.value() or b"",
        msgspec.json.encode(headers).decode() if headers else "",
    )


def decide_policies(runtime: Runtime, settings: PolicySettings, save_ms: int = SAVE_MS) -> None:
    """Decide as long as the service lives, as a member of retention-spark with a heartbeat of its own."""
    instance = f"{settings.instance}-{WITHOUT_SPARK}"
    source = f"{SERVICE}/{instance}"
    terms = runtime.connections.policy_terms()
    terms.start()
    runtime.stack.push_async_callback(terms.stop)
    rules = Rules.of(settings.scale_cooldown_s, settings.retention_tick_s, settings.retention_pause_s)
    deciders = [
        PolicyDecider(runtime, terms, source, rule, reports, memory, save_ms)
        for rule, reports, memory in (
            (rules.scale, SCALE, SCALE_MEMORY),
            (rules.retention, RETENTION, RETENTION_MEMORY),
        )
    ]
    for decider, name in zip(deciders, ("scaling", "retention"), strict=True):
        runtime.spawn(decider.run(), f"decisions on {name}")

    def problem() -> str | None:
        return terms.problem() or next((decider.failure for decider in deciders if decider.failure), None)

    def describe() -> Heartbeat:
        found = problem()
        return Heartbeat(
            service=SERVICE,
            instance=instance,
            endpoints={},
            started_at=runtime.started_at,
            problems={"policies": found} if found else {},
        )

    runtime.degraded["policies"] = problem
    runtime.facts["policies"] = lambda: "decided here, without Spark" if terms.term else "decided elsewhere"
    sender = RequestSender(runtime.producer, runtime.clock, source)
    heartbeats = Heartbeats(describe, sender, runtime.clock, runtime.connections.log.ends)
    runtime.stack.push_async_callback(heartbeats.leave)
    runtime.spawn(heartbeats.run(), "heartbeat of policies")
