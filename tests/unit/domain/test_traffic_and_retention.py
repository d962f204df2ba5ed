"""How far reports were carried, and what is told for retention: what holds over random histories of a stream."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.domain_log import Log
from support.histories import segments_of

from sluice.domain.config import RetentionPolicy, RetentionType, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.stream import cuts, decide, retention, scale, traffic
from sluice.domain.stream.commands import CreateStream, ScaleStream, TruncateStream
from sluice.domain.stream.state import Stream, find_stream

POLICY = RetentionPolicy(RetentionType.SIZE, 0, 0)
LENGTH = 100


def stream_of(log: Log) -> Stream:
    stream = find_stream(log, StreamId("sc", "st"))
    assert stream is not None
    return stream


@st.composite
def histories(draw: st.DrawFn) -> Log:
    """A stream after up to six splits and merges, each segment 100 bytes long when it is sealed."""
    log = Log("sc")
    log.decide(CreateStream("sc", "st", StreamConfig(retention=POLICY)), request="r")
    log.apply(decide.finish_create(log, StreamId("sc", "st")))
    for _ in range(draw(st.integers(0, 6))):
        active = stream_of(log).active_segments()
        first = draw(st.integers(0, len(active) - 1))
        sealed = active[first : first + draw(st.integers(1, 2))]
        low, high = sealed[0].low, sealed[-1].high
        ranges = draw(st.sampled_from([((low, high),), ((low, (low + high) / 2), ((low + high) / 2, high))]))
        seals = tuple(s.id for s in sealed)
        assert log.ask(ScaleStream("sc", "st", seals=seals, ranges=ranges, at=2000)).status == "STARTED"
        log.apply(scale.add_epoch(log, StreamId("sc", "st")))
        log.apply(scale.finish_scale(log, StreamId("sc", "st"), dict.fromkeys(seals, LENGTH)))
    return log


@settings(max_examples=200, deadline=None)
@given(log=histories(), data=st.data())
def test_what_was_carried_can_be_truncated_and_only_that(log: Log, data: st.DataObject) -> None:
    stream = stream_of(log)
    assert traffic.to_carry(stream).keys() == segments_of(stream).keys()
    for _ in range(data.draw(st.integers(1, 12))):
        segment = data.draw(st.sampled_from(sorted(segments_of(stream))))
        offset = data.draw(st.sampled_from([30, 60, LENGTH]))
        before = traffic.position(stream, segment)
        log.apply(traffic.note_carried(log, StreamId("sc", "st"), "r", segment, offset))
        assert traffic.position(stream, segment) == max(before, offset)
        assert traffic.note_carried(log, StreamId("sc", "st"), "another life", segment, 1000).events == ()
        cut = traffic.carried_cut(stream)
        assert cuts.is_valid(stream, cut)
        assert all(at <= traffic.position(stream, s) for s, at in cut.items())
        passed = cuts.segments_between(stream, stream.cut, cut) - cut.keys()
        assert all(traffic.position(stream, s) == LENGTH for s in passed), "nothing goes that was not carried"
        assert not passed & traffic.to_carry(stream).keys()
        left = traffic.carried_bytes(stream)
        assert left >= 0
        if data.draw(st.booleans()):
            assert log.decide(TruncateStream("sc", "st", cut=cut)).reply is None
            log.apply(decide.finish_truncate(log, StreamId("sc", "st")))
            assert traffic.carried_bytes(stream) == 0


@settings(max_examples=200, deadline=None)
@given(log=histories(), data=st.data())
def test_the_size_of_a_sample_grows_with_the_stream_whatever_is_truncated(log: Log, data: st.DataObject) -> None:
    stream = stream_of(log)
    sealed = sum(stream.history.sealed_sizes.values())
    lengths = dict.fromkeys(stream.active_epoch.segments, 0)
    for _ in range(3):
        lengths = {s: at + data.draw(st.integers(0, 50)) for s, at in lengths.items()}
        report = retention.report(stream, lengths, "id", "by", 1)
        assert report is not None and report.sample is not None
        assert report.sample.size == sealed + sum(lengths.values())
        assert report.ranges.keys() == {*report.head.cut, *lengths}
        assert report.head.size <= report.sample.size
        log.decide(TruncateStream("sc", "st", cut={s: data.draw(st.integers(0, at)) for s, at in lengths.items()}))
        log.apply(decide.finish_truncate(log, StreamId("sc", "st")))
