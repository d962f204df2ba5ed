"""Topics with given records at given times, as jobs about the past read them, and a limit of how many they read."""

import msgspec
from unit.cli.memory import MemorySource

from sluice.domain.config import StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.model import encode_record
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.record import Entry, Record
from sluice.kafka.topics import JOURNAL, RETENTION, SCALE
from sluice.lookback.jobs import JobLimit


class Steps:
    """A clock that goes on by one with each look: so a limit is a number of records."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def limit(looks: int) -> JobLimit:
    return JobLimit(max_s=looks, clock=Steps())


class RecordedTopics(MemorySource):
    """Records of a partition are added in the order of their times, epoch ms."""

    def add(self, topic: str, key: str, value: bytes, at: int) -> None:
        self.now = at - 1
        self.append(topic, key, value)

    def create(self, id: StreamId, at: int) -> None:
        """A stream of one segment."""
        whole = (Segment(0, 0.0, 1.0),)
        begun = StreamCreationStarted(*id, creation_id="i", config=StreamConfig(), created_at=at, segments=whole, at=at)
        self.decide(id.key, at, begun, StreamCreated(*id))

    def decide(
        self,
        key: str,
        at: int,
        *events: Event,
        request: str | None = None,
        reply: Reply | None = None,
        expect: dict[str, int] | None = None,
    ) -> None:
        """A record of the journal with one entry."""
        entry = Entry(expect=expect or {}, events=events, request=request, reply=reply)
        self.add(JOURNAL.name, key, encode_record(Record(f"r{at}", at, "test/0", (entry,))), at)

    def report(self, *reports: ScaleReport | RetentionReport) -> None:
        """Reports, each as soon as it is made."""
        for report in reports:
            topic = SCALE if isinstance(report, ScaleReport) else RETENTION
            self.add(topic.name, report.stream_id.key, msgspec.json.encode(report), report.at)
