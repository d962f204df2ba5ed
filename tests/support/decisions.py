"""Reports as stream-workflows publishes them, and what retention-spark requests because of them."""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import StreamCommand
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_STREAMS, RETENTION, SCALE
from support.kafka import produce, read

POLICY = PolicyInForce(ScaleType.EVENTS, 10, 2, 1)
WHOLE = {0: (0.0, 1.0)}
BY_SIZE = RetentionPolicy(RetentionType.SIZE, 100, 1 << 62)

C = TypeVar("C", bound=StreamCommand)


class SentRequest(msgspec.Struct, Generic[C], frozen=True):
    """A request for something to be done with a stream `by` a driver, appended at `at` (epoch ms, the broker's)."""

    id: str
    by: str
    command: C
    at: int


def hot(stream: str, at: int, **changes: Any) -> ScaleReport:
    """A report that the one segment of a stream is hot."""
    report = ScaleReport(
        id=f"{stream}@{at}",
        by="test",
        at=at,
        scope="s",
        stream=stream,
        creation_id="i",
        segment=0,
        direction=Direction.UP,
        splits=2,
        silent=False,
        range=(0.0, 1.0),
        active=True,
        epoch=0,
        epoch_since=1,
        epoch_segments=1,
        neighbours=(),
        policy=POLICY,
    )
    return msgspec.structs.replace(report, **changes)


def halves(stream: str, at: int, segment: int, direction: Direction, **changes: Any) -> ScaleReport:
    """A report on one of the two segments of a stream."""
    both = (Segment(0, 0.0, 0.5), Segment(1, 0.5, 1.0))
    here, there = both[segment], both[1 - segment]
    more = {"range": (here.low, here.high), "neighbours": (there,), "epoch_segments": 2, **changes}
    return hot(stream, at, segment=segment, direction=direction, id=f"{stream}/{segment}@{at}", **more)


def sampled(
    stream: str, at: int, size: int, policy: RetentionPolicy | None = BY_SIZE, **changes: Any
) -> RetentionReport:
    """A sample of a stream with one segment that was never truncated."""
    report = RetentionReport(
        id=f"{stream}@{at}",
        by="test",
        at=at,
        scope="s",
        stream=stream,
        creation_id="i",
        policy=policy,
        head=SizedCut({0: 0}, 0),
        sample=SizedCut({0: size}, size),
        ranges=WHOLE,
    )
    return msgspec.structs.replace(report, **changes)


def tell(bootstrap: str, *reports: ScaleReport | RetentionReport) -> None:
    """Put reports into their topics."""
    for report in reports:
        topic = SCALE if isinstance(report, ScaleReport) else RETENTION
        produce(bootstrap, topic.name, report.stream_id.key, msgspec.json.encode(report))


def requests_of(bootstrap: str, kind: type[C], streams: Iterable[str] | None = None) -> list[SentRequest[C]]:
    """All requests with a command of a kind, in the order of each key; of some streams only, if they are named."""
    messages = read(bootstrap, REQUESTS_STREAMS.name)
    requests = [(decode_request(message.value() or b""), message.timestamp()[1]) for message in messages]
    wanted = None if streams is None else set(streams)
    return [
        SentRequest(request.id, request.by, request.command, at)
        for request, at in requests
        if isinstance(request.command, kind) and (wanted is None or request.command.stream in wanted)
    ]
