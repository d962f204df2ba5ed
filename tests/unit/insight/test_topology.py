"""The rectangles of a stream: those of each epoch are the segments of that epoch, and merged ones cover the same."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.domain_log import Log
from support.stream_log import STREAM, StreamLog
from support.txn_log import worked_example
from unit.domain.test_history import Twins

from sluice.domain.config import StreamConfig
from sluice.domain.segment import Segment
from sluice.domain.stream import cuts, history
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.insight.topology import Flag, Topology, snapshot, topology

EVER = 2**62


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "CHUNK_EPOCHS", 3)
        yield


def living_in(found: Topology, epoch: int) -> list[Segment]:
    """The rectangles over an epoch, by key range."""
    s = found.segments
    columns = zip(s.id, s.low, s.high, s.born_epoch, s.end_epoch, strict=True)
    alive = (Segment(id, low, high) for id, low, high, born, end in columns if born <= epoch and not 0 <= end <= epoch)
    return sorted(alive, key=lambda segment: segment.low)


def lived(seed: int, steps: int = 60) -> Stream:
    twins = Twins(Random(seed))
    twins.live(steps)
    return twins.stream


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_rectangles_over_an_epoch_are_its_segments(seed: int) -> None:
    stream = lived(seed)
    numbers = list(stream.history.numbers(0, stream.history.count - 1))
    times = [stream.history.created_at(number) for number in numbers]
    random = Random(seed)
    for first, last in [(0, len(numbers) - 1), *(sorted(random.choices(range(len(numbers)), k=2)) for _ in range(9))]:
        found = topology(stream, times[first], times[last], 1000)
        assert found.epochs.epoch == numbers[first : last + 1]
        assert found.epochs.at == times[first : last + 1]
        assert found.epochs.reference == [stream.history.reference(number) for number in found.epochs.epoch]
        assert not found.merged
        for number in found.epochs.epoch:
            assert living_in(found, number) == stream.history.segments_of(number)
        by_epoch = {s.id for number in found.epochs.epoch for s in stream.history.segments_of(number)}
        assert found.segments.id == sorted(by_epoch)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(3, 40))
def test_merged_rectangles_cover_the_plane_once(seed: int, most: int) -> None:
    stream = lived(seed)
    found = topology(stream, 0, EVER, most)
    assert len(found.segments.id) <= most and len(found.epochs.epoch) <= most
    assert found.merged
    for number in stream.history.numbers(0, stream.history.count - 1):
        bounds = [(segment.low, segment.high) for segment in living_in(found, number)]
        assert [low for low, _ in bounds] == [0.0, *(high for _, high in bounds[:-1])]
        assert bounds[-1][1] == 1.0
    changed = [id for id, flags in zip(found.segments.id, found.segments.flags, strict=True) if flags & Flag.MERGED]
    exact = topology(stream, 0, EVER, 10_000)
    whole = {row[0]: row for row in rows(exact)}
    assert [row[0] for row in rows(found) if row != whole[row[0]]] == changed


def rows(found: Topology) -> list[tuple[float, ...]]:
    s = found.segments
    return list(zip(s.id, s.low, s.high, s.born_epoch, s.born, s.end_epoch, s.end, strict=True))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_the_head_has_passed_is_marked(seed: int) -> None:
    stream = lived(seed)
    found = topology(stream, 0, EVER, 10_000).segments
    marked = {id for id, flags in zip(found.id, found.flags, strict=True) if flags & Flag.TRUNCATED}
    assert marked == cuts.segments_between(stream, {}, stream.cut) - stream.cut.keys()


def test_sizes_times_and_causes_of_a_rolling_commit() -> None:
    log, early = worked_example()
    log.commit(early)
    log.record_rolled()
    log.end_roll()
    found = topology(log.stream, 0, EVER, 1000)
    assert found.epochs.cause == ["created", "scale", "rolling", "rolling"]
    is_duplicate = [bool(flags & Flag.DUPLICATE) for flags in found.segments.flags]
    assert is_duplicate == [id >> 32 in (2, 3) for id in found.segments.id]
    at = found.segments.id.index(1)
    assert (found.segments.bytes[at], found.segments.born[at], found.segments.end[at]) == (100, 1000, 2000)
    assert set(found.segments.end[-3:]) == {0} and set(found.segments.end_epoch[-3:]) == {-1}


def test_what_is_being_created_is_shown_before_it_has_an_epoch() -> None:
    log = StreamLog(segments=1)
    log.start_scale((0,), ((0.0, 0.5), (0.5, 1.0)), at=3000)
    found = topology(log.stream, 0, EVER, 1000).segments
    assert found.flags == [0, Flag.CREATING, Flag.CREATING]
    assert found.born[1:] == [3000, 3000]
    log.end_scale({0: 7})
    assert topology(log.stream, 0, EVER, 1000).segments.flags == [0, 0, 0]


def test_a_snapshot_stays_as_it_is() -> None:
    log = StreamLog(segments=1)
    before = snapshot(log.stream)
    log.scale((0,), ((0.0, 0.5), (0.5, 1.0)))
    assert topology(before, 0, EVER, 1000).segments.end_epoch == [-1]


def test_no_segment_is_there_before_its_stream_is_created() -> None:
    log = Log(STREAM.scope)
    log.decide(CreateStream(*STREAM, StreamConfig()))
    creating = find_stream(log, STREAM)
    assert creating is not None
    assert topology(creating, 0, EVER, 1000).segments.flags == [Flag.CREATING]
