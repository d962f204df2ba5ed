"""How far reports were forwarded, and what is reported for retention: what holds over random histories of a stream."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.cpu import least_cpu_s
from support.histories import segments_of
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import MAX_SEGMENTS, RetentionPolicy, RetentionType
from sluice.domain.stream import cuts, decide, retention, traffic
from sluice.domain.stream.commands import TruncateStream

LENGTH = 100


@st.composite
def histories(draw: st.DrawFn) -> StreamLog:
    """A stream after up to six splits and merges, each segment 100 bytes long when it is sealed."""
    log = StreamLog(retention=RetentionPolicy(RetentionType.SIZE, 0, 0))
    for _ in range(draw(st.integers(0, 6))):
        active = log.stream.active_segments()
        first = draw(st.integers(0, len(active) - 1))
        sealed = active[first : first + draw(st.integers(1, 2))]
        low, high = sealed[0].low, sealed[-1].high
        ranges = draw(st.sampled_from([((low, high),), ((low, (low + high) / 2), ((low + high) / 2, high))]))
        log.scale(tuple(s.id for s in sealed), ranges, size=LENGTH)
    return log


@settings(max_examples=200, deadline=None)
@given(log=histories(), data=st.data())
def test_what_was_carried_can_be_truncated_and_only_that(log: StreamLog, data: st.DataObject) -> None:
    stream = log.stream
    assert traffic.unforwarded(stream).keys() == segments_of(stream).keys()
    for _ in range(data.draw(st.integers(1, 12))):
        segment = data.draw(st.sampled_from(sorted(segments_of(stream))))
        offset = data.draw(st.sampled_from([30, 60, LENGTH]))
        before = traffic.position(stream, segment)
        log.apply(traffic.record_forwarded(log, STREAM, "r", segment, offset))
        assert traffic.position(stream, segment) == max(before, offset)
        assert traffic.record_forwarded(log, STREAM, "another life", segment, 1000).events == ()
        cut = traffic.forwarded_cut(stream)
        assert cuts.is_valid(stream, cut)
        assert all(at <= traffic.position(stream, s) for s, at in cut.items())
        passed = cuts.segments_between(stream, stream.cut, cut) - cut.keys()
        assert all(traffic.position(stream, s) == LENGTH for s in passed), "nothing goes that was not carried"
        assert not passed & traffic.unforwarded(stream).keys()
        assert traffic.forwarded_bytes(stream) >= 0
        if data.draw(st.booleans()):
            log.truncate(cut)
            assert traffic.forwarded_bytes(stream) == 0


def test_reports_on_each_segment_of_the_largest_stream_take_under_300_ms() -> None:
    stream = StreamLog(MAX_SEGMENTS).stream
    said = [traffic.Traffic(STREAM, s, traffic.Direction.UP, 1, 2, False) for s in stream.active_epoch.segments]

    def report() -> None:
        of = traffic.reporter(stream, "test")
        found = [of(each, "id") for each in said]
        assert [len(each.neighbours) for each in found if each is not None] == [1, *[2] * (MAX_SEGMENTS - 2), 1]

    assert least_cpu_s([report] * 3) < 0.3


@settings(max_examples=200, deadline=None)
@given(log=histories(), data=st.data())
def test_the_size_of_a_sample_grows_with_the_stream_whatever_is_truncated(log: StreamLog, data: st.DataObject) -> None:
    stream = log.stream
    sealed = sum(stream.history.sealed_sizes.values())
    lengths = dict.fromkeys(stream.active_epoch.segments, 0)
    for _ in range(3):
        lengths = {s: at + data.draw(st.integers(0, 50)) for s, at in lengths.items()}
        report = retention.report(stream, lengths, "id", "by", 1)
        assert report is not None and report.sample is not None
        assert report.sample.size == sealed + sum(lengths.values())
        assert report.ranges.keys() == {*report.head.cut, *lengths}
        assert report.head.size <= report.sample.size
        log.decide(TruncateStream(*STREAM, cut={s: data.draw(st.integers(0, at)) for s, at in lengths.items()}))
        log.apply(decide.finish_truncate(log, STREAM))
