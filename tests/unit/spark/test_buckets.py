"""A bucket decides for each of its keys as if the key were alone, whatever else is in it."""

from collections import defaultdict

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.decisions import halves, hot

from retention_spark.buckets import BucketDecider
from retention_spark.report_decider import Decided, OutgoingRecord, ReportDecider, ReportRecord
from retention_spark.stateful_operator import Outcome
from sluice.domain.policy.scaling import VALID_MS
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.kafka.requests import decode_request
from sluice.policies.rules import ScaleRule

NOW = 1_700_000_000_000
COOLDOWN_MS = 120_000
DECIDER = ReportDecider(ScaleRule(COOLDOWN_MS), "retention-spark/0")
BUCKET = BucketDecider(DECIDER)
STREAMS = ("a", "b", "c")


def inputs(*reports: ScaleReport) -> list[ReportRecord]:
    return [
        ReportRecord("t", 0, i, f"s/{report.stream}", msgspec.json.encode(report)) for i, report in enumerate(reports)
    ]


def cold(stream: str, at: int) -> list[ScaleReport]:
    return [halves(stream, at, segment, Direction.DOWN, epoch_since=at) for segment in (0, 1)]


def requested(step: Decided) -> list[str]:
    return [sending.key for sending in step.sendings if "scale-" in decode_request(sending.value).id]


def test_it_wakes_up_when_the_first_of_its_keys_does_and_only_that_one_decides() -> None:
    step = BUCKET.step(None, inputs(*cold("a", NOW), *cold("b", NOW + 1000)), NOW + 1000)
    assert requested(step) == [] and step.wake_at == NOW + COOLDOWN_MS
    first = BUCKET.step(step.memory, [], NOW + COOLDOWN_MS)
    assert requested(first) == ["s/a"]
    assert first.wake_at == NOW + 1000 + COOLDOWN_MS
    assert requested(BUCKET.step(first.memory, [], first.wake_at)) == ["s/b"]


def test_reports_of_one_key_keep_no_other_from_waking_up() -> None:
    step = BUCKET.step(None, inputs(*cold("a", NOW)), NOW)
    later = BUCKET.step(step.memory, inputs(hot("b", NOW + COOLDOWN_MS)), NOW + COOLDOWN_MS)
    assert sorted(requested(later)) == ["s/a", "s/b"]


def test_keys_that_are_gone_are_forgotten_and_an_empty_bucket_leaves_nothing() -> None:
    step = BUCKET.step(None, inputs(hot("a", NOW), hot("b", NOW + VALID_MS)), NOW + VALID_MS - 1)
    both = len(step.memory or b"")
    assert step.wake_at is not None
    wakes = 0
    while step.memory is not None:
        assert step.wake_at is not None and len(step.memory) <= both + 500
        step = BUCKET.step(step.memory, [], step.wake_at)
        wakes += 1
        assert wakes < 20
    assert step.wake_at is None


def test_what_comes_of_a_step_survives_the_way_to_the_driver() -> None:
    step = BUCKET.step(None, [ReportRecord("t", 0, 9, "s/odd", b"{"), *inputs(hot("a", NOW))], NOW)
    outcome = Outcome(step.sendings, step.rows, 3, step.wake_at)
    assert len(outcome.sendings) == 3 and len(outcome.rows) == 1
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(outcome), type=Outcome) == outcome


def by_key(sendings: list[OutgoingRecord]) -> dict[str, list[bytes]]:
    found = defaultdict(list)
    for sending in sendings:
        found[sending.key].append(sending.value)
    return found


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.lists(st.tuples(st.sampled_from(STREAMS), st.booleans(), st.integers(0, 10**6)), max_size=5),
        ),
        max_size=12,
    )
)
def test_keys_are_decided_on_as_if_each_had_a_bucket_of_its_own(
    batches: list[tuple[int, list[tuple[str, bool, int]]]],
) -> None:
    """Batches of reports at random times, woken up when due: the same decisions, and the same memory of each key."""
    together = Decided()
    alone = {stream: Decided() for stream in STREAMS}
    now = NOW
    for pause, moves in batches:
        now += pause * COOLDOWN_MS // 2
        reports = inputs(*(hot(s, now - age, direction=Direction.UP if up else Direction.DOWN) for s, up, age in moves))
        sent: list[OutgoingRecord] = []
        for stream, step in alone.items():
            mine = [record for record in reports if record.key == f"s/{stream}"]
            if mine or (step.wake_at is not None and step.wake_at <= now):
                alone[stream] = step = BUCKET.step(step.memory, mine, now)
                sent += step.sendings
        if reports or (together.wake_at is not None and together.wake_at <= now):
            together = BUCKET.step(together.memory, reports, now)
            assert by_key(together.sendings) == by_key(sent)
        else:
            assert sent == []
        wakes = [step.wake_at for step in alone.values() if step.wake_at is not None]
        assert together.wake_at == min(wakes, default=None)
