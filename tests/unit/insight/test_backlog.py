"""What is unread behind a position: the same as between that cut and the end of the stream."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stream_log import StreamLog
from unit.domain.test_history import Twins

from sluice.domain.segment import segment_id
from sluice.domain.stream import cuts, history, queries
from sluice.insight.backlog import Backlog, backlog

LENGTH = 1000


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "CHUNK_EPOCHS", 3)
        yield


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_it_is_what_lies_between_a_cut_and_the_end(seed: int) -> None:
    twins = Twins(Random(seed))
    twins.live(50)
    stream = twins.stream
    cut = twins.further_cut(queries.head(stream))
    end = dict.fromkeys(stream.active_epoch.segments, LENGTH)
    expected = cuts.size_between(stream, cut, end, cuts.segments_between(stream, cut, {}))
    waiting = [segment for segment, at in cut.items() if at < 0]
    found = backlog(stream, {segment: at for segment, at in cut.items() if at >= 0}, waiting, {})
    assert found.known + sum(LENGTH - at for at in found.growing.values()) == expected
    assert set(found.growing) <= set(end)


def test_a_segment_that_is_read_to_its_end_leaves_what_comes_behind_it() -> None:
    log = StreamLog(segments=1)
    log.scale((0,), ((0.0, 0.5), (0.5, 1.0)), size=100)
    left, right = segment_id(1, 1), segment_id(1, 2)
    assert backlog(log.stream, {0: 40}, (), {}) == Backlog(60, {left: 0, right: 0})
    assert backlog(log.stream, {0: -1}, (), {}) == Backlog(0, {left: 0, right: 0})
    assert backlog(log.stream, {left: 7, right: -1}, (), {}) == Backlog(0, {left: 7})
    assert backlog(log.stream, {99: 5}, (), {}) == Backlog(0, {})


def test_a_group_that_reads_to_a_cut_has_nothing_behind_it_to_read() -> None:
    log = StreamLog(segments=1)
    log.scale((0,), ((0.0, 0.5), (0.5, 1.0)), size=100)
    assert backlog(log.stream, {0: 40}, (), {0: 70}) == Backlog(30, {})
    assert backlog(log.stream, {0: 80}, (), {0: 70}) == Backlog(0, {})
    left, right = segment_id(1, 1), segment_id(1, 2)
    assert backlog(log.stream, {0: 40}, (), {left: 10, right: 0}) == Backlog(70, {})


def test_an_end_behind_a_segment_counts_all_of_it() -> None:
    log = StreamLog(segments=2)
    log.scale((0,), ((0.0, 0.5),), size=100)
    came = segment_id(1, 2)
    assert backlog(log.stream, {0: 40, 1: 3}, (), {0: -1, 1: 10}) == Backlog(60 + 7, {})
    assert backlog(log.stream, {came: 5, 1: 3}, (), {came: -1, 1: 10}) == Backlog(7, {came: 5})
