"""One step of a query: what is remembered and received becomes requests, notes and rows, the same ones each time."""

import json
from typing import TypeVar

import msgspec
import pytest
from support.decisions import POLICY, halves, hot, sampled

from sluice.domain.config import RetentionPolicy, RetentionType, ScalingPolicy
from sluice.domain.ids import StreamId
from sluice.domain.policy.scaling import SILENT_MS, VALID_MS
from sluice.domain.stream.commands import RecordDecision, ScaleStream, StreamCommand, TruncateStream
from sluice.domain.stream.decisions import HOLDS_MS
from sluice.domain.stream.retention import RetentionReport, SizedCut, gone
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import DEAD_LETTERS, MAX_RECORD_BYTES, REQUESTS_STREAMS
from sluice.policies.reported import REPORT_AGAIN_MS, LastReported, is_news
from sluice.policies.rules import RetentionRule, ScaleRule, Verdict
from sluice.workflows.report_decider import OutgoingRecord, ReportDecider, ReportRecord

NOW = 1_700_000_000_000
BY_EVENTS = ScalingPolicy(POLICY.scale_type, POLICY.target_rate, POLICY.scale_factor, POLICY.min_segments)
COOLDOWN_MS = 120_000
HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
HOURLY = RetentionPolicy(RetentionType.TIME, HOUR_MS, 1 << 62)
C = TypeVar("C", bound=StreamCommand)
SCALE = ReportDecider(ScaleRule(COOLDOWN_MS), "retention-spark/0")
RETENTION = ReportDecider(RetentionRule(tick_ms=60_000, pause_ms=0), "retention-spark/0")


def inputs(*reports: ScaleReport | RetentionReport) -> list[ReportRecord]:
    return [ReportRecord("t", 0, i, "s/x", msgspec.json.encode(report)) for i, report in enumerate(reports)]


def commands(sendings: list[OutgoingRecord], kind: type[C]) -> list[C]:
    found = [decode_request(s.value).command for s in sendings if s.topic == REQUESTS_STREAMS.name]
    return [command for command in found if isinstance(command, kind)]


def test_a_hot_segment_is_split_noted_and_kept() -> None:
    step = SCALE.step(None, inputs(hot("x", NOW)), NOW)
    (scale,) = commands(step.sendings, ScaleStream)
    assert scale == ScaleStream("s", "x", seals=(0,), ranges=((0.0, 0.5), (0.5, 1.0)), at=NOW, policy=BY_EVENTS)
    (note,) = commands(step.sendings, RecordDecision)
    assert (note.code, note.creation_id, note.acts) == ("split", "i", True)
    assert note.request == decode_request(step.sendings[0].value).id
    (row,) = step.rows
    assert row.request == decode_request(step.sendings[0].value).id and "ScaleStream" in row.command


def test_a_stream_that_cools_down_wakes_up_when_that_is_over_and_is_merged_then() -> None:
    cold = inputs(*(halves("x", NOW, segment, Direction.DOWN, epoch_since=NOW) for segment in (0, 1)))
    step = SCALE.step(None, cold, NOW)
    assert step.sendings == []
    assert [row.code for row in step.rows] == ["cooling-down"]
    assert step.wake_at == NOW + COOLDOWN_MS
    woken = SCALE.step(step.memory, [], step.wake_at)
    assert commands(woken.sendings, ScaleStream) == [
        ScaleStream("s", "x", seals=(0, 1), ranges=((0.0, 1.0),), at=NOW + COOLDOWN_MS, policy=BY_EVENTS)
    ]


def test_all_reports_of_a_batch_are_observed_before_one_decision() -> None:
    """The last one revokes what the ones before it ask for: the segment is hot by now."""
    cold = [halves("x", NOW, segment, Direction.DOWN) for segment in (0, 1)]
    warm = halves("x", NOW + 1, 1, Direction.UP, splits=2)
    (scale,) = commands(SCALE.step(None, inputs(*cold, warm), NOW + 1).sendings, ScaleStream)
    assert scale.seals == (1,)


def test_a_stream_without_reports_is_forgotten() -> None:
    memory: bytes | None = SCALE.step(None, inputs(hot("x", NOW)), NOW).memory
    now: int | None = NOW
    wakes = 0
    while memory is not None:
        step = SCALE.step(memory, [], now or NOW)
        memory, now, wakes = step.memory, step.wake_at, wakes + 1
        assert wakes < 10
    assert now is None


def test_a_segment_that_is_silent_is_not_forgotten() -> None:
    step = SCALE.step(None, inputs(halves("x", NOW, 0, Direction.DOWN, silent=True)), NOW)
    much_later = NOW + SILENT_MS - 1
    later = SCALE.step(step.memory, [], much_later)
    assert later.memory is not None and later.wake_at == NOW + SILENT_MS
    other = halves("x", much_later, 1, Direction.DOWN)
    (merge,) = commands(SCALE.step(later.memory, inputs(other), much_later).sendings, ScaleStream)
    assert merge.seals == (0, 1)


def test_a_silent_stream_without_reports_is_forgotten_in_the_end() -> None:
    """It may have been deleted: there is no report of that."""
    step = SCALE.step(None, inputs(halves("x", NOW, 0, Direction.DOWN, silent=True)), NOW)
    wakes = [step.wake_at]
    while step.wake_at is not None:
        step = SCALE.step(step.memory, [], step.wake_at)
        wakes.append(step.wake_at)
    assert step.memory is None and wakes == [NOW + SILENT_MS, None], "nothing is done before that"


def test_what_is_known_of_the_only_segment_is_forgotten_soon_although_it_is_silent() -> None:
    step = SCALE.step(None, inputs(hot("x", NOW, direction=Direction.DOWN, silent=True)), NOW)
    assert step.wake_at == NOW + VALID_MS
    assert SCALE.step(step.memory, [], step.wake_at).memory is None
    late = SCALE.step(None, inputs(hot("x", NOW, direction=Direction.DOWN, silent=True)), NOW + 2 * VALID_MS)
    assert late.memory is None and [row.code for row in late.rows] == ["at-minimum"]


def test_an_unreadable_report_is_a_dead_letter_and_the_rest_counts() -> None:
    odd = ReportRecord("sluice.scale", 3, 7, "s/x", b"{")
    step = SCALE.step(None, [odd, *inputs(hot("x", NOW))], NOW)
    letter = step.sendings[0]
    assert (letter.topic, letter.key, letter.value) == (DEAD_LETTERS.name, "s/x", b"{")
    assert dict(letter.headers)["sluice_offset"] == "7"
    assert len(commands(step.sendings, ScaleStream)) == 1


def test_a_dead_letter_keeps_its_headers() -> None:
    headers = '[{"key":"traceparent","value":"MDA="},{"key":"empty"}]'
    (letter,) = SCALE.step(None, [ReportRecord("sluice.scale", 3, 7, "s/x", b"{", headers)], NOW).sendings
    assert dict(letter.headers)["traceparent"] == "00" and "empty" not in dict(letter.headers)


def test_a_dead_letter_is_never_larger_than_a_record_may_be() -> None:
    (letter,) = SCALE.step(None, [ReportRecord("sluice.scale", 3, 7, "s/x", b"x" * MAX_RECORD_BYTES)], NOW).sendings
    headers = sum(len(name) + len(text) for name, text in letter.headers)
    assert len(letter.value) + len(letter.key) + headers < MAX_RECORD_BYTES - 1000
    assert f"of {MAX_RECORD_BYTES} bytes" in dict(letter.headers)["sluice_reason"]


@pytest.mark.parametrize(
    "odd",
    [
        sampled("x", NOW + 1, 500, sample=SizedCut({9: 1}, 1), ranges={}),
        sampled("x", NOW + 1, 500, head=SizedCut({7: 0}, 0)),
        sampled("x", 1 << 70, 500),
        sampled("x", NOW + 1, 1 << 70),
    ],
)
def test_a_report_at_odds_with_itself_is_a_dead_letter_and_leaves_the_stream_as_it_was(odd: RetentionReport) -> None:
    good = inputs(sampled("x", NOW, 500, HOURLY))
    (record,) = [
        ReportRecord("sluice.retention", 3, 7, "s/x", json.dumps(msgspec.to_builtins(odd, str_keys=True)).encode())
    ]
    step = RETENTION.step(None, [*good, record], NOW)
    letters = [s for s in step.sendings if s.topic == DEAD_LETTERS.name]
    assert [letter.value for letter in letters] == [record.value]
    assert step.memory == RETENTION.step(None, good, NOW).memory


def test_a_report_of_a_time_that_no_timer_holds_stops_nothing() -> None:
    step = SCALE.step(None, inputs(hot("x", (1 << 63) - 1)), NOW)
    assert step.wake_at is not None and step.wake_at < 1 << 62


def test_a_stream_and_its_mark_stream_are_remembered_apart() -> None:
    step = SCALE.step(None, inputs(hot("x", NOW), hot("_MARKx", NOW)), NOW)
    assert {command.stream for command in commands(step.sendings, ScaleStream)} == {"x", "_MARKx"}


def test_a_tick_truncates_by_time() -> None:
    policy = RetentionPolicy(RetentionType.TIME, 90_000, 1 << 62)
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500, policy)), NOW)
    assert commands(step.sendings, TruncateStream) == [] and step.wake_at == NOW + 60_000
    assert step.rows[0].code == "within-minimum"
    second = RETENTION.step(step.memory, [], NOW + 60_000)
    assert second.sendings == [] and second.rows == []
    third = RETENTION.step(second.memory, [], NOW + 120_000)
    assert commands(third.sendings, TruncateStream) == [TruncateStream("s", "x", {0: 500}, policy, at=NOW + 120_000)]


def test_a_policy_removed_between_two_batches_truncates_nothing() -> None:
    removed = sampled("x", NOW + 10 * 60_000, 500, None, sample=None)
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500, HOURLY), removed), NOW + 3 * HOUR_MS)
    assert commands(step.sendings, TruncateStream) == [] and [row.code for row in step.rows] == ["no-policy"]


def test_a_sample_grows_old_only_while_the_policy_is_known_to_hold() -> None:
    """Whether in a batch long after the report, or woken up with newer reports yet unread."""
    late = RETENTION.step(None, inputs(sampled("x", NOW, 500, HOURLY)), NOW + 3 * HOUR_MS)
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500, HOURLY)), NOW)
    woken = RETENTION.step(step.memory, [], NOW + 3 * HOUR_MS)
    for left in (late, woken):
        assert commands(left.sendings, TruncateStream) == []
        now = NOW + 3 * HOUR_MS + 1
        newer = RETENTION.step(left.memory, inputs(sampled("x", now, 600, HOURLY)), now)
        assert commands(newer.sendings, TruncateStream) == [TruncateStream("s", "x", {0: 500}, HOURLY, at=now)]


def test_an_old_report_truncates_nothing_for_others_may_be_on_their_way() -> None:
    """Of a reader group, say, that has subscribed meanwhile and has yet to read what the old report's had read."""
    first, second = SizedCut({0: 400}, 400), SizedCut({0: 100}, 100)
    old = sampled("x", NOW, 500, subscribers={"s/a": first}, bound=first)
    in_time = RETENTION.step(None, inputs(old), NOW + HOLDS_MS)
    assert [command.cut for command in commands(in_time.sendings, TruncateStream)] == [{0: 400}]
    now = NOW + HOLDS_MS + 1
    step = RETENTION.step(None, inputs(old), now)
    assert commands(step.sendings, TruncateStream) == []
    assert [(row.code, row.reason) for row in step.rows] == [
        ("no-cut", "not truncated: the newest report is older than 3 minutes")
    ]
    new = sampled("x", now, 500, subscribers={"s/a": first, "s/b": second}, bound=second)
    (command,) = commands(RETENTION.step(step.memory, inputs(new), now).sendings, TruncateStream)
    assert command.cut == {0: 100}


def test_a_stream_sampled_no_more_is_truncated_once_and_forgotten_after_a_month() -> None:
    policy = RetentionPolicy(RetentionType.TIME, 60_000, 1 << 62)
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500, policy)), NOW)
    requested, wakes = [], 0
    while step.wake_at is not None:
        at = step.wake_at
        step = RETENTION.step(step.memory, [], at)
        requested += commands(step.sendings, TruncateStream)
        wakes += 1
    assert len(requested) == 1 and wakes <= HOLDS_MS // 60_000 + 2
    assert at == NOW + 30 * DAY_MS and step.memory is None


def test_samples_from_before_an_outage_of_days_are_truncated_to_after_it() -> None:
    memory = RETENTION.step(None, inputs(sampled("x", NOW, 500, HOURLY)), NOW).memory
    now = NOW + 3 * DAY_MS
    memory = RETENTION.step(memory, [], now - 1).memory
    step = RETENTION.step(memory, inputs(sampled("x", now, 600, HOURLY)), now)
    assert commands(step.sendings, TruncateStream) == [TruncateStream("s", "x", {0: 500}, HOURLY, at=now)]


def test_a_late_report_is_not_forgotten_at_once() -> None:
    """After the loss of a checkpoint the topic is read from its beginning: the samples in it are needed still."""
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500, HOURLY)), NOW + 5 * DAY_MS)
    assert step.memory is not None


def test_a_deleted_stream_is_forgotten_after_a_day() -> None:
    step = RETENTION.step(None, inputs(sampled("x", NOW, 500), gone(StreamId("s", "x"), "g", "t", NOW + 1)), NOW + 1)
    assert step.memory is not None and step.wake_at is not None
    assert RETENTION.step(step.memory, [], step.wake_at).memory is None


def test_what_only_passes_is_kept_but_not_noted() -> None:
    memory, codes, notes = None, [], []
    policy = RetentionPolicy(RetentionType.SIZE, 0, 1 << 62)
    for i in range(3):
        step = RETENTION.step(memory, inputs(sampled("x", NOW + i, 500, policy)), NOW + i)
        memory = step.memory
        codes += [row.code for row in step.rows]
        notes += [note.code for note in commands(step.sendings, RecordDecision)]
    assert codes == ["beyond-minimum", "requested"]
    assert notes == ["beyond-minimum"]


def test_another_reason_is_news_only_now_and_then() -> None:
    last = LastReported("a", "one", NOW)
    assert is_news(None, Verdict("a", "one"), NOW)
    assert not is_news(last, Verdict("a", "one"), NOW + 2 * REPORT_AGAIN_MS)
    assert not is_news(last, Verdict("a", "two"), NOW + REPORT_AGAIN_MS - 1)
    assert is_news(last, Verdict("a", "two"), NOW + REPORT_AGAIN_MS)
    assert is_news(last, Verdict("b", "one"), NOW)
