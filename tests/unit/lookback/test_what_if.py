"""What another policy would have done, as the gateway's helper answers it: the same as retention-spark's batch job."""

import msgspec
import pandas as pd
import pytest
from support.decisions import halves, hot, sampled
from unit.lookback.recorded import RecordedTopics

from retention_spark.what_if_job import replayer
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import DecisionRecorded
from sluice.domain.stream.traffic import Direction
from sluice.kafka.topics import RETENTION, SCALE
from sluice.lookback.errors import InvalidTextError
from sluice.lookback.jobs import run_job
from sluice.lookback.reported import MAX_SPAN_MS
from sluice.lookback.source import KafkaRecord, Source
from sluice.lookback.what_if import ON_ITS_WAY_MS, WHAT_IF, WhatIfQuestion
from sluice.policies.replay import OtherScaling, Policy
from sluice.policies.reported import HistoryRow
from sluice.policies.rules import RetentionRule, Rules
from sluice.policies.what_if import WhatIf

NOW = 1_700_000_000_000
MINUTE = 60_000
SINCE = NOW - 60 * MINUTE
X = StreamId("s", "x")
RULES = Rules(retention=RetentionRule(tick_ms=30_000, pause_ms=5 * MINUTE))


@pytest.fixture
def topics() -> RecordedTopics:
    """Reports on a stream from before the span on, with those of others and what cannot be read between them."""
    found = RecordedTopics()
    found.create(X, NOW - 90 * MINUTE)
    for minutes in range(80, 0, -1):
        at = NOW - minutes * MINUTE
        found.report(sampled("x", at, 1000 * (80 - minutes)), sampled("_MARKx", at, 5))
        found.add(RETENTION.name, X.key, b"broken", at)
    for minutes in (70, 40, 39, 12):
        at = NOW - minutes * MINUTE
        found.report(hot("x", at, splits=6, epoch_since=NOW - 90 * MINUTE), hot("other", at))
    for segment in (0, 1):
        cold = halves("x", NOW - 5 * MINUTE, segment, Direction.DOWN, epoch=1, epoch_since=NOW - 11 * MINUTE)
        found.report(cold)
    return found


def ask(topics: Source, policy: Policy, since: int = SINCE) -> WhatIf:
    retention = policy if isinstance(policy, RetentionPolicy) else None
    scaling = policy if isinstance(policy, OtherScaling) else None
    return run_job(WHAT_IF, WhatIfQuestion(X, since, RULES, retention, scaling), topics, NOW)


def batch_job(topics: Source, policy: Policy) -> list[HistoryRow]:
    """What Spark's workers make of the topic, key by key."""
    name = RETENTION.name if isinstance(policy, RetentionPolicy) else SCALE.name
    records = [one for one in topics.read(topics.spans([name])) if isinstance(one, KafkaRecord) and one.key == X.key]
    frame = pd.DataFrame([{"offset": one.offset, "at": one.at, "value": one.value} for one in records])
    rows = replayer(RULES, X.name, policy, NOW)(frame.sample(frac=1, random_state=7))
    found = [HistoryRow(**dict(row)) for row in rows.to_dict("records")]
    return [row for row in sorted(found, key=lambda row: row.at) if row.at >= SINCE]


@pytest.mark.parametrize(
    "policy",
    [
        OtherScaling(),
        OtherScaling(min_segments=2, scale_factor=4),
        OtherScaling(cooldown_ms=20 * MINUTE),
        RetentionPolicy(RetentionType.SIZE, 20_000, 30_000),
        RetentionPolicy(RetentionType.TIME, 10 * MINUTE, 1 << 62),
    ],
)
def test_it_is_what_the_batch_job_says_of_the_same_reports(topics: RecordedTopics, policy: Policy) -> None:
    rows = batch_job(topics, policy)
    assert rows and any(row.request for row in rows)
    assert [(one.at, one.code, one.reason, one.acts) for one in ask(topics, policy).would] == [
        (row.at, row.code, row.reason, bool(row.request)) for row in rows
    ]


def test_what_happened_stands_beside_it_as_the_journal_has_it(topics: RecordedTopics) -> None:
    numbers = {"segments": 1, "segmentsAfter": 2}
    for at, code, kind in (
        (NOW - 80 * MINUTE, "before", DecisionKind.SCALE),
        (NOW - 40 * MINUTE, "split", DecisionKind.SCALE),
        (NOW - 30 * MINUTE, "no-cut", DecisionKind.RETENTION),
        (NOW - 20 * MINUTE, "steady", DecisionKind.SCALE),
    ):
        acts = code == "split"
        event = DecisionRecorded(*X, kind, code, "because", at, acts, numbers=numbers)
        topics.decide(X.key, at, event)
    found = ask(topics, OtherScaling(scale_factor=4))
    assert [(one.code, one.segments, one.acts) for one in found.happened] == [("split", 2, True), ("steady", 2, False)]
    assert (found.since, found.until, found.kind) == (SINCE, NOW, DecisionKind.SCALE)
    assert any("3 actions, and 1 are recorded" in note for note in found.notes)


def test_it_looks_back_seven_days_at_most(topics: RecordedTopics) -> None:
    with pytest.raises(InvalidTextError):
        ask(topics, OtherScaling(), NOW - MAX_SPAN_MS - ON_ITS_WAY_MS - 1)
    assert ask(topics, OtherScaling(), NOW - MAX_SPAN_MS - 1000).would
    travelled = msgspec.msgpack.decode(msgspec.msgpack.encode(ask(topics, OtherScaling())), type=WhatIf)
    assert travelled == ask(topics, OtherScaling())
