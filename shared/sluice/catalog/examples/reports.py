"""Examples of reports: what decisions on scaling and retention are made from, and statistics."""

import msgspec

from sluice.catalog.examples import names as n
from sluice.catalog.examples.commands import HEAD, STREAM_CONFIG, WITH_RETENTION
from sluice.catalog.examples.example import Example, example
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.segment import Segment, segment_name
from sluice.domain.stream.commands import Subscription
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport
from sluice.domain.transaction.commands import AbortReason
from sluice.engine.partition import partition_keys
from sluice.insight.statistics import (
    Figures,
    Operation,
    StatisticsProgress,
    StreamStatistics,
    WindowKind,
    WindowStatistics,
    fold_report,
    progress_key,
)
from sluice.kafka.topics import (
    RETENTION,
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
    STATISTICS,
    STATISTICS_WINDOWS,
)
from sluice.policies.memory import StreamMemory

_RANGES = {n.FIRST: (0.0, 0.5), n.SECOND: (0.5, 1.0), n.UPPER_LEFT: (0.5, 0.75), n.UPPER_RIGHT: (0.75, 1.0)}


def scale_reports() -> list[ScaleReport]:
    """A segment that has too much to do, and one on which nothing is written."""
    policy = STREAM_CONFIG.scaling
    in_force = PolicyInForce(policy.scale_type, policy.target_rate, policy.scale_factor, policy.min_segments)
    source = segment_name(SYSTEM_SCOPE, REQUEST_STREAM, 0)
    busy = ScaleReport(
        id=f"{source}@316",
        by=n.WORKFLOWS,
        at=n.at(27),
        scope=n.SCOPE,
        stream=n.STREAM,
        creation_id=n.CREATION,
        segment=n.SECOND,
        direction=Direction.UP,
        splits=2,
        silent=False,
        range=_RANGES[n.SECOND],
        active=True,
        epoch=0,
        epoch_since=n.at(2),
        epoch_segments=2,
        neighbours=(Segment(n.FIRST, 0.0, 0.5),),
        policy=in_force,
    )
    idle = msgspec.structs.replace(
        busy,
        id=f"{source}@412",
        at=n.at(39),
        segment=n.UPPER_RIGHT,
        direction=Direction.DOWN,
        splits=0,
        silent=True,
        range=_RANGES[n.UPPER_RIGHT],
        epoch=1,
        epoch_since=n.at(32.1),
        epoch_segments=3,
        neighbours=(Segment(n.UPPER_LEFT, 0.5, 0.75),),
    )
    return [busy, idle]


def retention_reports() -> list[RetentionReport]:
    """A sample of the tail with a subscriber on the way, and the last word on a stream that was deleted."""
    tail = {n.FIRST: 1500, n.UPPER_LEFT: 220, n.UPPER_RIGHT: 180}
    position = SizedCut({n.FIRST: 1400, n.UPPER_LEFT: 100, n.UPPER_RIGHT: 80}, 54_010)
    sample = RetentionReport(
        id="1d0f5a7c9e2b4a6880f4c1d2e3b4a596",
        by=n.WORKFLOWS,
        at=n.at(58),
        scope=n.SCOPE,
        stream=n.STREAM,
        creation_id=n.CREATION,
        policy=WITH_RETENTION.retention,
        head=SizedCut(HEAD, 53_630),
        sample=SizedCut(tail, 54_330),
        subscribers={n.SUBSCRIBER: position},
        subscriptions={n.SUBSCRIBER: Subscription(n.GROUP_ID, generation=0, has_reported=True)},
        bound=position,
        ranges={segment: _RANGES[segment] for segment in HEAD},
        version=24,
    )
    gone = RetentionReport(
        id="7e6d5c4b3a29180716f5e4d3c2b1a09f",
        by=n.WORKFLOWS,
        at=n.at(86),
        scope=n.SCOPE,
        stream=n.STREAM,
        creation_id="",
        policy=None,
        head=SizedCut({}, 0),
        version=31,
    )
    return [sample, gone]


def statistics_reports() -> list[StreamStatistics]:
    """What txn-manager and stream-workflows counted of a stream in the same minute."""
    minute = WindowKind.MINUTE.begin(n.at(30))
    figures = Figures(
        opened=3, committed=2, aborted={AbortReason.LEASE: 1}, timed=3, total_ms=10_950, longest_ms=10_700
    )
    transactions = StreamStatistics(
        id=f"{n.TRANSACTIONS}-{n.at(35)}-0",
        by=n.TRANSACTIONS,
        at=n.at(35),
        scope=n.SCOPE,
        stream=n.STREAM,
        minute=minute,
        figures=figures,
    )
    operations = msgspec.structs.replace(
        transactions,
        id=f"{n.WORKFLOWS}-{n.at(36)}-0",
        by=n.WORKFLOWS,
        at=n.at(36),
        figures=Figures(operations={Operation.SCALE: 1}),
    )
    return [transactions, operations]


def statistics_progress() -> StatisticsProgress:
    """All that was counted of a partition before a time stands before it."""
    return StatisticsProgress(id=f"{n.TRANSACTIONS}-{n.at(35)}-progress-5", by=n.TRANSACTIONS, at=n.at(35), partition=5)


def statistics_windows() -> list[WindowStatistics]:
    """What the reports come to, by minute, hour and day."""
    first, second = statistics_reports()
    by = n.TRANSACTIONS
    return [fold_report(fold_report(None, kind, first, 7, by), kind, second, 9, by) for kind in WindowKind]


def statistics_examples() -> list[Example]:
    """Reports, their windows, and the progress in both topics."""
    progress = statistics_progress()
    reports: list[tuple[str, str, StreamStatistics | WindowStatistics | StatisticsProgress]] = [
        *((STATISTICS.name, r.stream_id.key, r) for r in statistics_reports()),
        (STATISTICS.name, partition_keys(16)[progress.partition], progress),
        *((STATISTICS_WINDOWS.name, window.key, window) for window in statistics_windows()),
        (STATISTICS_WINDOWS.name, progress_key(progress.partition), progress),
    ]
    return [
        example(topic, key, type(fact).__name__, fact.id, fact.by, fact.at, msgspec.json.encode(fact))
        for topic, key, fact in reports
    ]


def memory_examples() -> list[Example]:
    """What is remembered of a stream, in a form of retention-spark's own, here cut short."""
    key, by = f"{n.SCOPE}/{n.STREAM}", n.SPARK
    streams = {n.STREAM: msgspec.Raw(b'{"state":{},"last_reported":null,"recorded":null}')}
    memory = StreamMemory(f"{n.SPARK}-{n.at(40)}", by, n.at(40), n.at(150), streams)
    return [
        example(topic.name, key, type(memory).__name__, memory.id, by, memory.at, msgspec.json.encode(memory))
        for topic in (SCALE_MEMORY, RETENTION_MEMORY)
    ]


def report_examples() -> list[Example]:
    """Both kinds of what is decided from, as they stand in their topics."""
    reports = [(SCALE, report) for report in scale_reports()] + [(RETENTION, report) for report in retention_reports()]
    return [
        example(
            topic.name,
            report.stream_id.key,
            type(report).__name__,
            report.id,
            report.by,
            report.at,
            msgspec.json.encode(report),
        )
        for topic, report in reports
    ]
