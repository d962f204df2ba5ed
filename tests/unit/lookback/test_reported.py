"""What is known of a stream from its recorded reports: loads that hold, since when, and the retention set."""

import msgspec
import pytest
from support.decisions import halves, hot, sampled
from unit.lookback.recorded import RecordedTopics, limit

from sluice.domain.ids import StreamId
from sluice.domain.stream.retention import SizedCut
from sluice.domain.stream.traffic import Direction
from sluice.insight.reported import ReportedModel
from sluice.kafka.topics import RETENTION, SCALE
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.jobs import JobLimit, run_job
from sluice.lookback.reported import DAY_MS, MAX_SPAN_MS, REPORTED, ReportedQuestion

NOW = 1_700_000_000_000
MINUTE = 60_000
X = StreamId("s", "x")


@pytest.fixture
def topics() -> RecordedTopics:
    found = RecordedTopics()
    found.create(X, NOW - 90 * MINUTE)
    return found


def ask(
    topics: RecordedTopics, *segments: int, creation_id: str = "i", within: JobLimit | None = None
) -> ReportedModel:
    return run_job(REPORTED, ReportedQuestion(X, creation_id, frozenset(segments)), topics, NOW, limit=within)


def shown(found: ReportedModel) -> list[tuple[int, str, int, int]]:
    """Of each load: segment, word, and how many minutes ago the first and the last report on it was made."""
    return [
        (one.segment, one.load, (NOW - one.since) // MINUTE, (NOW - one.reported_at) // MINUTE) for one in found.loads
    ]


def test_a_segment_is_hot_since_the_first_report_of_an_unbroken_row(topics: RecordedTopics) -> None:
    for minutes in (40, 16, 9, 2):
        topics.report(hot("x", NOW - minutes * MINUTE))
        topics.report(hot("other", NOW - minutes * MINUTE, splits=9))
    topics.add(SCALE.name, X.key, b"broken", NOW - MINUTE)
    found = ask(topics, 0)
    assert shown(found) == [(0, "hot", 16, 2)], "the report of 40 minutes ago did not hold any more when the next came"
    assert found.load_reported_at == NOW - 2 * MINUTE


def test_the_word_changes_with_the_direction_and_a_silent_segment_stays(topics: RecordedTopics) -> None:
    topics.report(halves("x", NOW - 50 * MINUTE, 0, Direction.DOWN, silent=True))
    topics.report(halves("x", NOW - 8 * MINUTE, 1, Direction.UP))
    topics.report(halves("x", NOW - 4 * MINUTE, 1, Direction.DOWN))
    assert shown(ask(topics, 0, 1)) == [(0, "silent", 50, 50), (1, "cold", 4, 4)]


def test_a_load_that_does_not_hold_or_is_of_a_segment_that_is_gone_is_left_out(topics: RecordedTopics) -> None:
    topics.report(halves("x", NOW - 11 * MINUTE, 0, Direction.UP), halves("x", NOW - MINUTE, 1, Direction.UP))
    assert shown(ask(topics, 0, 1)) == [(1, "hot", 1, 1)]
    assert shown(ask(topics, 0)) == []
    other = ask(topics, 0, 1, creation_id="later")
    assert (other.loads, other.load_reported_at) == ([], None), "reports on an earlier stream of the name"


def test_the_retention_set_is_measured_from_the_head(topics: RecordedTopics) -> None:
    for minutes in (30, 20, 10):
        topics.report(sampled("x", NOW - minutes * MINUTE, 1000 * (40 - minutes), head=SizedCut({0: 500}, 500)))
    topics.add(RETENTION.name, X.key, b"broken", NOW)
    found = ask(topics, 0)
    assert found.retention_set.at == [NOW - minutes * MINUTE for minutes in (30, 20, 10)]
    assert found.retention_set.bytes == [9_500, 19_500, 29_500]
    assert found.retention_reported_at == NOW - 10 * MINUTE
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=ReportedModel) == found
    topics.report(sampled("x", NOW - MINUTE, 0, policy=None, sample=None))
    gone = ask(topics, 0)
    assert (gone.retention_set.at, gone.retention_reported_at) == ([], NOW - MINUTE)


def test_samples_of_a_stream_without_a_retention_are_no_reports_on_it(topics: RecordedTopics) -> None:
    topics.report(sampled("x", NOW - MINUTE, 1000, policy=None))
    assert ask(topics, 0).retention_reported_at is None


def test_where_there_is_no_time_for_a_week_the_reports_of_the_last_day_are_taken_in(topics: RecordedTopics) -> None:
    days = (6, 5, 4, 3, 2, 0)
    for day in days:
        topics.report(sampled("x", NOW - day * DAY_MS - MINUTE, 1000 * (7 - day)))
    whole = ask(topics, 0)
    assert (len(whole.retention_set.at), whole.searched_to, whole.complete) == (6, NOW - MAX_SPAN_MS, True)
    later = ask(topics, 0, within=limit(8))
    assert later.retention_set.at == [NOW - MINUTE]
    assert (later.searched_to, later.complete) == (NOW - DAY_MS, False)
    with pytest.raises(TimeIsOverError):
        ask(topics, 0, within=limit(2))
