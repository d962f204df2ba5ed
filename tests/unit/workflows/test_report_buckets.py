"""A bucket decides for each of its keys as if the key were alone, whatever else is in it."""

import json
from collections import defaultdict

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.decisions import halves, hot

from sluice.domain.policy.scaling import VALID_MS
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import DEAD_LETTERS, SCALE_MEMORY
from sluice.policies.rules import ScaleRule
from sluice.workflows.report_buckets import BucketDecider, BucketStep, Outcome
from sluice.workflows.report_decider import OutgoingRecord, ReportDecider, ReportRecord

NOW = 1_700_000_000_000
COOLDOWN_MS = 120_000
SAVE_MS = 600_000
MEMORY = SCALE_MEMORY.name


def bucket(instance: int) -> BucketDecider:
    """Of a driver."""
    return BucketDecider(ReportDecider(ScaleRule(COOLDOWN_MS), f"retention-spark/{instance}"), MEMORY, SAVE_MS)


BUCKET, OTHER = bucket(0), bucket(1)
STREAMS = ("a", "b", "c")


def inputs(*reports: ScaleReport) -> list[ReportRecord]:
    return [
        ReportRecord("t", 0, i, f"s/{report.stream}", msgspec.json.encode(report)) for i, report in enumerate(reports)
    ]


def cold(stream: str, at: int) -> list[ScaleReport]:
    return [halves(stream, at, segment, Direction.DOWN, epoch_since=at) for segment in (0, 1)]


def requested(step: BucketStep) -> list[str]:
    return [sending.key for sending in step.sendings if "scale-" in decode_request(sending.value).id]


def records(*saved: OutgoingRecord) -> list[ReportRecord]:
    """What was saved, as it is read."""
    return [ReportRecord(one.topic, 0, i, one.key, one.value) for i, one in enumerate(saved)]


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


def test_what_changes_is_saved_within_a_while_and_what_is_requested_for_at_once() -> None:
    silent = [halves("a", NOW + age, 0, Direction.DOWN, silent=True) for age in (0, 1)]
    step = BUCKET.step(None, inputs(silent[0]), NOW)
    assert (step.saved, step.unsaved_since, step.wake_at) == ([], NOW, NOW + SAVE_MS)
    more = BUCKET.step(step.memory, inputs(silent[1], hot("b", NOW + 1)), NOW + 1)
    assert [one.key for one in more.saved] == ["s/b"] and more.unsaved_since == NOW
    later = BUCKET.step(more.memory, [], NOW + SAVE_MS)
    assert [one.key for one in later.saved] == ["s/a"] and later.unsaved_since != NOW
    assert json.loads(later.saved[0].value)["streams"]["a"]["state"]["loads"]["0"]["at"] == NOW + 1


def test_what_is_forgotten_is_forgotten_where_it_was_saved_and_stays_so() -> None:
    step = BUCKET.step(None, inputs(hot("a", NOW)), NOW)
    topic = [*step.saved]
    while step.wake_at is not None:
        now = step.wake_at
        step = BUCKET.step(step.memory, [], now)
        topic += step.saved
    assert [(one.key, bool(one.value)) for one in topic] == [("s/a", True), ("s/a", False)]
    assert OTHER.step(None, records(*topic), now) == BucketStep(), "Kafka may have both still"


def test_of_what_is_saved_of_a_key_the_last_counts() -> None:
    """A compacted topic holds what was saved before for a while."""
    memory: bytes | None = None
    topic: list[OutgoingRecord] = []
    now = NOW
    for _ in range(2):
        memory = BUCKET.step(memory, inputs(halves("a", now, 0, Direction.DOWN, silent=True)), now).memory
        now += SAVE_MS
        step = BUCKET.step(memory, [], now)
        memory = step.memory
        topic += step.saved
    before, last = records(*topic)
    assert OTHER.step(None, [before, last], now) == OTHER.step(None, [last], now) != OTHER.step(None, [before], now)


def test_another_driver_goes_on_with_what_is_saved_whatever_comes_with_it() -> None:
    first = BUCKET.step(None, inputs(hot("a", NOW)), NOW)
    assert requested(first) == ["s/a"]
    again = hot("a", NOW + 1000)
    forgetful = OTHER.step(None, inputs(again), NOW + 1000)
    assert requested(forgetful) == ["s/a"], "a report of the same epoch is decided on anew"
    knowing = OTHER.step(None, [*inputs(again), *records(*first.saved)], NOW + 1000)
    assert requested(knowing) == []
    later = NOW + COOLDOWN_MS
    woken = OTHER.step(None, records(*first.saved), later)
    assert woken.saved == [] and woken.wake_at == later + SAVE_MS // 10, "reports behind it come first"


def test_what_a_driver_that_woke_late_has_saved_is_saved_anew() -> None:
    late = BUCKET.step(None, inputs(hot("a", NOW)), NOW)
    step = OTHER.step(None, inputs(hot("a", NOW + 1)), NOW + 1)
    own = OTHER.step(step.memory, records(*step.saved), NOW + 2)
    assert own.saved == [] and own.unsaved_since is None
    forgotten = OutgoingRecord(MEMORY, "s/a", b"", [])
    for number, written in enumerate((*late.saved, forgotten)):
        anew = OTHER.step(own.memory, records(written), NOW + 3 + number)
        assert [one.key for one in anew.saved] == ["s/a"]


def test_what_cannot_be_read_of_what_is_saved_is_a_dead_letter() -> None:
    odd = ReportRecord(MEMORY, 1, 7, "s/a", b'{"streams":7}')
    step = BUCKET.step(None, [odd, *inputs(hot("a", NOW))], NOW)
    assert (step.sendings[0].topic, len(step.sendings)) == (DEAD_LETTERS.name, 3)
    gone = ReportRecord(MEMORY, 1, 8, "s/b", b"")
    assert BUCKET.step(None, [gone], NOW) == BucketStep()


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
    together = BucketStep()
    alone = {stream: BucketStep() for stream in STREAMS}
    now = NOW
    for pause, moves in batches:
        now += pause * COOLDOWN_MS // 2
        reports = inputs(*(hot(s, now - age, direction=Direction.UP if up else Direction.DOWN) for s, up, age in moves))
        sent: list[OutgoingRecord] = []
        for stream, step in alone.items():
            mine = [record for record in reports if record.key == f"s/{stream}"]
            if mine or (step.wake_at is not None and step.wake_at <= now):
                alone[stream] = step = BUCKET.step(step.memory, mine, now)
                sent += step.sendings + step.saved
        if reports or (together.wake_at is not None and together.wake_at <= now):
            together = BUCKET.step(together.memory, reports, now)
            assert by_key(together.sendings + together.saved) == by_key(sent)
        else:
            assert sent == []
        wakes = [step.wake_at for step in alone.values() if step.wake_at is not None]
        assert together.wake_at == min(wakes, default=None)
