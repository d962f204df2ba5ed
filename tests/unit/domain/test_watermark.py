"""Watermarks: who counts, what is computed from their reports, and what holds for any of them."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import segments_of
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import StreamConfig
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream import cuts
from sluice.domain.stream.commands import NoteWriterTime, RemoveWriter
from sluice.domain.stream.upper_bound import Watermark
from sluice.domain.stream.watermark import forget_writers, next_watermark, record_emitted, writer_activity

S2, S3, S4, S5 = segment_id(1, 2), segment_id(1, 3), segment_id(2, 4), segment_id(2, 5)


def note(log: StreamLog, writer: str, timestamp: int, position: Mapping[int, int]) -> None:
    assert log.ask(NoteWriterTime(*STREAM, writer, timestamp, dict(position))).status == "SUCCESS"


def emit(log: StreamLog, previous: Watermark | None = None) -> Watermark | None:
    stream = log.stream
    return next_watermark(stream, writer_activity(stream, previous, {}, 0), previous)


def by_id(mark: Watermark | None) -> dict[int, int]:
    assert mark is not None
    return {s.id: at for s, at in mark.cut.items()}


def upper_split() -> StreamLog:
    """Segment 1 [0.5, 1) is replaced by 2 [0.5, 0.75) and 3 [0.75, 1) in epoch 1."""
    log = StreamLog(segments=2)
    log.scale((1,), ((0.5, 0.75), (0.75, 1.0)))
    return log


Reports = list[tuple[int, dict[int, int]]]

CASES: dict[str, tuple[Reports, dict[int, int], dict[int, int]]] = {
    "one writer over everything": ([(1000, {0: 73, 1: 8})], {}, {0: 73, 1: 8}),
    "the greater offset counts": ([(1000, {0: 73, 1: 8}), (1500, {0: 9, 1: 80})], {}, {0: 73, 1: 80}),
    "what no writer spoke of begins at 0": ([(1000, {0: 73})], {}, {0: 73, 1: 0}),
    "what a writer has no acknowledgement of begins at 0": ([(1000, {0: 73, 1: -1})], {}, {0: 73, 1: 0}),
    "newer segments take the place of older ones": (
        [(1000, {0: 5, 1: 70}), (1000, {S2: 1, S3: 2})], {}, {0: 5, S2: 1, S3: 2},
    ),
    "older segments do not come back": ([(1000, {S2: 1, S3: 2}), (1000, {0: 5, 1: 70})], {}, {0: 5, S2: 1, S3: 2}),
    "a gap beside a newer segment is filled from its epoch": ([(1000, {S2: 1})], {}, {0: 0, S2: 1, S3: 0}),
    "half of an older segment left is filled by its successor": (
        [(1000, {0: 5, 1: 70}), (1000, {S2: 1})], {}, {0: 5, S2: 1, S3: 0},
    ),
    "the previous cut stays where no writer has gone on": ([(1000, {0: 90})], {0: 40, 1: 50}, {0: 90, 1: 50}),
    "an unknown segment counts for nothing": ([(1000, {0: 73, S4: 5})], {}, {0: 73, 1: 0}),
    "a writer that has written nothing adds nothing": ([(1000, {})], {0: 40, 1: 50}, {0: 40, 1: 50}),
    "in the reference's first pass the previous cut does not count, but newer segments still win": (
        [(1000, {0: 90})], {0: 40, S2: 7, S3: 8}, {0: 90, S2: 7, S3: 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_positions_are_merged(name: str) -> None:
    reports, before, expected = CASES[name]
    log = upper_split()
    stream = log.stream
    for number, (timestamp, position) in enumerate(reports):
        note(log, f"w{number}", timestamp, position)
    previous = Watermark(0, 0, {stream.history.segment(s): at for s, at in before.items()}) if before else None
    found = emit(log, previous)
    assert by_id(found) == expected
    times = [timestamp for timestamp, _ in reports]
    assert found is not None and (found.lower, found.upper) == (min(times), max(times))


def test_there_is_no_watermark_before_a_writer_reports_a_segment() -> None:
    log = StreamLog(segments=2)
    assert emit(log) is None
    note(log, "a", 1, {})
    note(log, "b", 1, {S4: 3})
    assert emit(log) is None


def test_an_epoch_that_the_view_does_not_have_yet_is_waited_for() -> None:
    ahead = upper_split().stream
    log = StreamLog(segments=2)
    note(log, "a", 1000, {0: 1})
    assert emit(log, Watermark(0, 0, {ahead.history.segment(s): 1 for s in (0, S2, S3)})) is None


def test_the_cut_before_counts_over_the_ranges_that_the_stream_has_now() -> None:
    """A restore may have assumed others than those that stand in the mark segment."""
    log = upper_split()
    log.scale((S3,), ((0.75, 0.875), (0.875, 1.0)))
    stream = log.stream
    note(log, "a", 1000, {0: 1, S2: 2, S3: 3})
    old_ranges = [Segment(0, 0.0, 0.5), Segment(S2, 0.5, 0.6), Segment(S4, 0.6, 0.7), Segment(S5, 0.7, 1.0)]
    assert by_id(emit(log, Watermark(0, 0, dict.fromkeys(old_ranges, 7)))) == {0: 7, S2: 7, S4: 7, S5: 7}
    assert [s for s in stream.active_segments() if s.id == S4] == [Segment(S4, 0.75, 0.875)]


def test_a_gap_beside_a_segment_that_the_stream_does_not_have_is_left_open() -> None:
    log = upper_split()
    note(log, "a", 1000, {0: 1})
    unknown = Watermark(0, 0, {Segment(0, 0.0, 0.5): 1, Segment(segment_id(1, 9), 0.5, 0.6): 1})
    assert emit(log, unknown) is None
    log.scale((S3,), ((0.75, 0.875), (0.875, 1.0)))
    note(log, "a", 1000, {0: 1, S4: 1})
    assert emit(log, unknown) is None, "segment 9 is the newest over [0.5, 0.75), which it does not cover"


def test_a_writer_that_has_not_gone_on_is_waited_for_until_its_time_is_up() -> None:
    log = StreamLog(segments=2, timestamp_aggregation_timeout_ms=500)
    for writer in ("a", "b"):
        note(log, writer, 1000, {0: 1})
    first = emit(log)
    note(log, "a", 2000, {0: 2})
    stream = log.stream
    found = writer_activity(stream, first, {}, 10_000)
    assert found.active.keys() == {"a", "b"} and found.silent_since == {"b": 10_000} and not found.gone
    assert next_watermark(stream, found, first) is None
    assert writer_activity(stream, first, found.silent_since, 10_499).silent_since == {"b": 10_000}
    late = writer_activity(stream, first, found.silent_since, 10_500)
    assert late.active.keys() == {"a"} and late.gone.keys() == {"b"} and late.silent_since == {}
    second = next_watermark(stream, late, first)
    assert second is not None and (second.lower, second.upper) == (2000, 2000)
    note(log, "b", 1500, {0: 3})
    assert writer_activity(stream, first, late.silent_since, 99_999).active.keys() == {"a", "b"}, (
        "one that goes on is back"
    )


def test_a_writer_that_was_shut_down_counts_until_a_watermark_has_passed_it() -> None:
    log = StreamLog(segments=2, timestamp_aggregation_timeout_ms=500)
    note(log, "a", 1000, {0: 1})
    note(log, "b", 2000, {1: 5})
    assert log.ask(RemoveWriter(*STREAM, "a")).status == "SUCCESS"
    first = emit(log)
    assert by_id(first) == {0: 1, 1: 5} and first is not None and first.lower == 1000
    found = writer_activity(log.stream, first, {}, 0)
    assert found.gone.keys() == {"a"} and found.active.keys() == {"b"}


def test_a_writer_is_forgotten_only_as_it_was_read() -> None:
    log = StreamLog(segments=2)
    for writer in ("a", "b"):
        note(log, writer, 1000, {0: 1})
    found = writer_activity(log.stream, emit(log), {}, 0)
    assert found.gone.keys() == {"a", "b"} and not found.active, "the time-out is 0"
    note(log, "b", 1000, {0: 2})
    log.apply(forget_writers(log, STREAM, found.gone))
    assert log.stream.writers.keys() == {"b"}
    assert forget_writers(log, STREAM, found.gone).events == ()


def test_the_shutdown_of_a_writer_is_a_change_of_what_was_read() -> None:
    log = StreamLog(segments=2)
    note(log, "a", 1000, {0: 1})
    found = writer_activity(log.stream, emit(log), {}, 0)
    assert log.ask(RemoveWriter(*STREAM, "a")).status == "SUCCESS"
    assert forget_writers(log, STREAM, found.gone).events == ()


def test_the_last_watermark_shows_in_the_state_and_never_goes_back() -> None:
    log = StreamLog(segments=2)
    creation_id = log.stream.creation_id
    log.apply(record_emitted(log, STREAM, creation_id, Watermark(5, 9, {}), 77))
    shown = log.stream.watermark
    assert shown is not None and (shown.lower, shown.upper, shown.at) == (5, 9, 77)
    assert record_emitted(log, STREAM, creation_id, Watermark(5, 12, {}), 78).events == ()
    assert record_emitted(log, STREAM, "another life", Watermark(6, 12, {}), 78).events == ()


@st.composite
def histories(draw: st.DrawFn) -> StreamLog:
    """A stream after up to six scales, each of one or two neighbouring segments."""
    log = StreamLog(draw(st.integers(1, 4)))
    log.stream.config = StreamConfig()
    for _ in range(draw(st.integers(0, 6))):
        active = log.stream.active_segments()
        first = draw(st.integers(0, len(active) - 1))
        sealed = active[first : first + draw(st.integers(1, 2))]
        low, high = sealed[0].low, sealed[-1].high
        middle = low + (high - low) / draw(st.sampled_from([2, 3, 5]))
        ranges = draw(st.sampled_from([((low, high),), ((low, middle), (middle, high))]))
        log.scale(tuple(s.id for s in sealed), ranges)
    return log


@settings(max_examples=300, deadline=None)
@given(log=histories(), data=st.data())
def test_a_watermark_covers_the_key_space_once_and_never_lies_behind_the_one_before(
    log: StreamLog, data: st.DataObject
) -> None:
    stream = log.stream
    previous: Watermark | None = None
    some = st.dictionaries(st.sampled_from(sorted(segments_of(stream))), st.integers(-1, 100), max_size=6)
    for at in range(1, data.draw(st.integers(2, 5))):
        stream.writers = {}
        reports = data.draw(st.lists(some, min_size=1, max_size=3))
        for number, position in enumerate(reports):
            note(log, f"w{number}", at * 10 + number, position)
        mark = emit(log, previous)
        if mark is None:
            assert previous is None and not any(reports)
            continue
        covered = sorted((s.low, s.high) for s in mark.cut)
        assert covered[0][0] == 0.0 and covered[-1][1] == 1.0
        assert all(left[1] == right[0] for left, right in pairwise(covered))
        assert min(mark.cut.values()) >= 0
        assert list(mark.cut) == sorted(mark.cut, key=lambda s: s.low)
        assert all(by_id(mark).get(s, at) >= at for position in reports for s, at in position.items())
        if previous is not None:
            assert mark.lower > previous.lower
            assert cuts.is_equal_or_after(stream, by_id(mark), by_id(previous))
        previous = mark
