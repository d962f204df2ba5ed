"""Scaling and stream cuts: the worked examples of the semantics reference, then properties over random histories."""

from functools import partial
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cpu import least_cpu_s
from support.histories import epochs_of, replaced, segments_of
from support.stream_log import STREAM, Ranges, StreamLog

from sluice.domain.config import MAX_SEGMENTS, ScalingPolicy, StreamConfig
from sluice.domain.decision import MAX_REASON, Context, Reply
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.segment import segment_id
from sluice.domain.status import Status
from sluice.domain.stream import cuts, decide, queries, scale
from sluice.domain.stream.commands import ScaleStream, SealStream, TruncateStream, UpdateStream
from sluice.domain.stream.decide import cancel
from sluice.domain.stream.scale import ScaleProgress
from sluice.domain.workflow import CancelWorkflow

TWO, THREE = segment_id(1, 2), segment_id(1, 3)
HALVES = ((0.0, 0.5), (0.5, 1.0))


def example() -> StreamLog:
    """The stream of the reference's section 4.4: two segments, the upper one split at time 2000."""
    log = StreamLog(2)
    reply = log.scale((1,), ((0.5, 0.75), (0.75, 1.0)))
    assert (reply.epoch, [s.id for s in reply.segments]) == (0, [TWO, THREE])
    return log


def test_split_and_merge_of_the_worked_example() -> None:
    log = example()
    stream = log.stream
    assert stream.active == 1 and stream.active_epoch.created_at == 2000
    assert stream.active_epoch.segments == (0, TWO, THREE)
    successors = queries.successors_with_predecessors(stream, 1)
    assert [(s.id, p) for s, p in successors] == [(TWO, [1]), (THREE, [1])]
    assert log.start_scale((1,), ((0.5, 1.0),)).status == "PRECONDITION_FAILED", "it was replaced"
    reply = log.scale((TWO, THREE), ((0.5, 1.0),), at=3000)
    four = segment_id(2, 4)
    assert four == 8589934596 and [s.id for s in reply.segments] == [four]
    assert [s.id for s in stream.active_segments()] == [0, four]
    assert [(s.id, p) for s, p in queries.successors_with_predecessors(stream, TWO)] == [(four, [TWO, THREE])]
    assert queries.successors_with_predecessors(stream, 0) == []


def test_successors_are_known_before_the_old_segments_are_sealed() -> None:
    log = StreamLog(1)
    assert scale.progress(log.stream, 0) is ScaleProgress.NONE
    log.start_scale((0,), HALVES, at=1)
    stream = log.stream
    assert queries.successors_with_predecessors(stream, 0) == []
    log.apply(scale.add_epoch(log, STREAM))
    assert len(queries.successors_with_predecessors(stream, 0)) == 2
    assert [s.id for s in queries.current_segments(stream)] == [0]
    assert scale.progress(stream, 0) is ScaleProgress.RUNNING
    assert scale.add_epoch(log, STREAM).events == ()
    log.apply(scale.finish_scale(log, STREAM, {0: 7}))
    assert scale.progress(stream, 0) is ScaleProgress.DONE
    assert scale.progress(stream, 1) is ScaleProgress.NONE
    assert stream.active_epoch.created_at == 1001
    for epoch, error in ((2, NotFoundError), (-1, InvalidArgumentError)):
        with pytest.raises(error):
            scale.progress(stream, epoch)


def test_a_cancelled_scale_shows_and_leaves_its_numbers_unused() -> None:
    log = StreamLog(1)
    log.start_scale((0,), HALVES, at=1)
    cancelled = cancel(log, Context(5), log.stream)
    assert cancelled is not None
    log.apply(cancelled)
    stream = log.stream
    assert scale.progress(stream, 0) is ScaleProgress.CANCELLED
    assert stream.spare == (segment_id(1, 1), segment_id(1, 2))
    reply = log.start_scale((0,), HALVES, at=2)
    assert [s.id for s in reply.segments] == [segment_id(1, 3), segment_id(1, 4)]
    assert scale.progress(stream, 0) is ScaleProgress.RUNNING
    log.end_scale({0: 7})
    assert scale.progress(stream, 0) is ScaleProgress.DONE and stream.next_number == 5


@pytest.mark.parametrize(
    ("seals", "ranges", "status"),
    [
        ((7,), ((0.0, 0.5),), "PRECONDITION_FAILED"),
        ((0,), ((0.0, 0.4),), "FAILURE"),
        ((0,), ((0.0, 0.3), (0.2, 0.5)), "FAILURE"),
        ((0,), ((0.5, 0.0),), "FAILURE"),
        ((0, 1), ((0.0, 1.0),), "PRECONDITION_FAILED"),
        ((), (), "FAILURE"),
        ((0,), (), "FAILURE"),
        ((), ((0.0, 0.5),), "FAILURE"),
    ],
)
def test_scales_refused(seals: tuple[int, ...], ranges: Ranges, status: str) -> None:
    log = StreamLog(2)
    reply = log.start_scale(seals, ranges)
    assert reply.status == status and reply.reason
    assert log.stream.history.count == 1


def test_a_scale_by_a_policy_that_the_stream_has_no_more_is_refused() -> None:
    log = StreamLog(2)
    present = log.stream.config.scaling
    command = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.2), (0.2, 0.5)), at=1)
    before = msgspec.structs.replace(command, policy=msgspec.structs.replace(present, target_rate=77))
    assert log.ask(before).status == "PRECONDITION_FAILED" and log.stream.workflow is None
    assert log.ask(msgspec.structs.replace(command, policy=present)).status == "STARTED"


def test_a_scale_of_more_segments_than_there_may_be_is_refused_in_a_few_words() -> None:
    log, many = StreamLog(2), MAX_SEGMENTS + 1
    for seals, ranges in (((0,) * many, ((0.0, 0.5),)), ((0,), ((0.0, 0.5),) * many)):
        reply = log.start_scale(seals, ranges)
        assert reply.status == "FAILURE" and f"at most {MAX_SEGMENTS}" in reply.reason
    reply = log.start_scale(tuple(range(7, 7 + MAX_SEGMENTS)), ((0.0, 0.5),))
    assert (reply.status, len(reply.reason)) == ("PRECONDITION_FAILED", MAX_REASON)
    assert reply.reason.startswith("not segments of the active epoch: [7, 8, 9, ") and reply.reason.endswith("…")


def test_a_scale_of_as_many_segments_as_there_may_be_is_decided_in_a_moment() -> None:
    command = ScaleStream(*STREAM, tuple(range(MAX_SEGMENTS)), tuple(scale.equal_ranges(MAX_SEGMENTS)), at=1)

    def ask(log: StreamLog) -> None:
        assert log.ask(command).status == "STARTED"

    assert least_cpu_s(partial(ask, StreamLog(MAX_SEGMENTS)) for _ in range(3)) < 0.3


def test_a_scale_that_comes_while_one_runs_is_answered_at_once() -> None:
    log = example()
    halves = ((0.0, 0.25), (0.25, 0.5))
    same = ScaleStream(*STREAM, seals=(0,), ranges=halves, at=1)
    another = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.125), (0.125, 0.5)), at=1)
    elsewhere = ScaleStream(*STREAM, seals=(TWO,), ranges=halves, at=1)
    assert scale.answer_at_once(log.stream, same) is None, "none runs yet"
    first = log.ask(same)
    for _ in ("before its epoch is named", "and after"):
        assert scale.answer_at_once(log.stream, same) == first
        assert first == Reply(Status.STARTED, segments=first.segments, epoch=1)
        for other in (another, elsewhere):
            answer = scale.answer_at_once(log.stream, other)
            assert answer is not None and answer.status == "FAILURE" and answer.reason
        log.apply(scale.add_epoch(log, STREAM))
    log.apply(scale.finish_scale(log, STREAM, {0: 7}))
    assert scale.answer_at_once(log.stream, same) is None
    assert scale.answer_at_once(None, same) is None


def test_a_scale_waits_behind_one_to_be_cancelled_and_fails_at_once_behind_a_seal() -> None:
    log = StreamLog(1)
    command = ScaleStream(*STREAM, seals=(0,), ranges=HALVES, at=1)
    log.ask(command)
    workflow = log.stream.workflow
    assert workflow is not None
    log.ask(CancelWorkflow("stream:sc/st", workflow.id))
    assert scale.answer_at_once(log.stream, command) is None
    log = StreamLog(1)
    log.decide(SealStream(*STREAM))
    answer = scale.answer_at_once(log.stream, command)
    assert answer is not None and answer.status == "FAILURE" and "SEALING" in answer.reason


def test_independent_replacements_in_one_scale() -> None:
    log = StreamLog(4)
    log.scale((0, 3), ((0.0, 0.1), (0.1, 0.25), (0.75, 0.9), (0.9, 1.0)))
    assert len(log.stream.active_epoch.segments) == 6


def test_a_policy_that_wants_another_number_replaces_all() -> None:
    log = StreamLog(2)
    log.decide(UpdateStream(*STREAM, StreamConfig(scaling=ScalingPolicy(min_segments=3))), request="u")
    log.apply(scale.add_epoch(log, STREAM))
    log.apply(decide.finish_update(log, STREAM, {0: 1, 1: 1}))
    stream = log.stream
    assert [s.id for s in queries.current_segments(stream)] == [segment_id(1, n) for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("cut", "flaw"),
    [
        ({0: 5, 1: 7}, ""),
        ({0: 5, TWO: 0, THREE: 0}, ""),
        ({0: 5, 1: 20}, ""),
        ({0: 5, TWO: 3, THREE: -1}, ""),
        ({0: 5, TWO: -1, THREE: 3}, ""),
        ({0: 5}, "it lacks 1"),
        ({0: 5, TWO: 3}, f"it lacks {THREE}"),
        ({TWO: 1, THREE: 1}, "it lacks 0"),
        ({0: 5, 1: 7, TWO: 3}, f"in segments 1 and {TWO}, which have keys in common"),
        ({0: 5, 1: -1, TWO: 3, THREE: 3}, f"segment 1 is given as not yet reached, but {THREE} behind it is reached"),
    ],
)
def test_a_cut_is_valid_or_it_is_said_which_segments_are_wrong(cut: dict[int, int], flaw: str) -> None:
    said = cuts.flaw(example().stream, cut)
    assert flaw in said and bool(flaw) is bool(said)


def test_a_cut_is_not_behind_a_segment_and_in_one_before_it() -> None:
    log = StreamLog(2)
    _, middle, upper = (s.id for s in log.scale((0, 1), ((0.0, 0.4), (0.4, 0.7), (0.7, 1.0))).segments)
    one, two, three = (s.id for s in log.scale((middle, upper), ((0.4, 0.6), (0.6, 0.8), (0.8, 1.0))).segments)
    said = cuts.flaw(log.stream, {0: 5, one: -1, two: 5, three: -1})
    assert said == f"the cut lies behind segment {middle}, but in 0, which is read before it"


def test_cuts_that_mean_nothing() -> None:
    stream = example().stream
    for cut in ({}, {9: 0}, {0: -1, 1: -1}):
        with pytest.raises(InvalidArgumentError):
            cuts.is_valid(stream, cut)
    with pytest.raises(NotFoundError):
        cuts.is_valid(stream, {segment_id(5, 0): 0})


def test_order_and_what_lies_between() -> None:
    stream = example().stream
    older, newer = {0: 5, 1: 7}, {0: 5, TWO: 0, THREE: 0}
    assert cuts.is_equal_or_after(stream, newer, older) and not cuts.is_equal_or_after(stream, older, newer)
    assert cuts.is_equal_or_after(stream, older, older)
    assert cuts.segments_between(stream, older, newer) == {0, 1, TWO, THREE}
    assert cuts.segments_between(stream, {}, older) == {0, 1}
    assert cuts.segments_between(stream, newer, {}) == {0, TWO, THREE}
    with pytest.raises(InvalidArgumentError):
        cuts.segments_between(stream, newer, older)


def test_a_segment_not_yet_reached_lies_behind_the_older_one_over_its_keys() -> None:
    stream = example().stream
    mixed = {0: 5, TWO: 3, THREE: -1}
    assert cuts.is_equal_or_after(stream, mixed, mixed)
    assert cuts.is_equal_or_after(stream, mixed, {0: 5, 1: 7})
    assert not cuts.is_equal_or_after(stream, {0: 5, 1: 7}, mixed)
    both = {0: 5, 1: 7, THREE: -1}
    for cut in (both, {0: 5, 1: 7}):
        assert cuts.is_equal_or_after(stream, cut, both) and cuts.is_equal_or_after(stream, both, cut)
    assert not cuts.is_equal_or_after(stream, both, {0: 5, 1: 8})


def test_what_lies_between_cuts_that_have_not_reached_a_merged_segment() -> None:
    log = example()
    log.scale((TWO, THREE), ((0.5, 1.0),))
    stream, merged = log.stream, segment_id(2, 4)
    begin, end = {0: 5, THREE: 1, merged: -1}, {0: 5, THREE: 7, merged: -1}
    assert cuts.size_between(stream, begin, end, cuts.segments_between(stream, begin, end)) == 6
    assert cuts.segments_between(stream, begin, {0: 5, merged: 3}) == {0, THREE, merged}


def test_truncation_across_epochs_of_the_worked_example() -> None:
    log = example()
    cut = {0: 40, TWO: 10, THREE: 0}
    begun = log.decide(TruncateStream(*STREAM, cut), request="t").events[0]
    assert getattr(begun, "deleted") == (1,) and getattr(begun, "size_till") == 150  # noqa: B009
    log.apply(decide.finish_truncate(log, STREAM))
    stream = log.stream
    assert queries.head(stream) == cut
    assert log.ask(TruncateStream(*STREAM, {0: 50, 1: 7})).status == "FAILURE"


moves = st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=25)


def play(script: list[tuple[bool, int]], segments: int = 3) -> StreamLog:
    """Split or merge, down to the minimum, at places drawn by the script."""
    log = StreamLog(segments)
    for split, where in script:
        active = log.stream.active_segments()
        i = where % len(active)
        if split or (segments < len(active) and i + 1 < len(active)):
            log.scale(*replaced(active, i, is_merge=not split))
    return log


@settings(max_examples=100, deadline=None)
@given(moves)
def test_every_epoch_tiles_the_key_space_and_relations_mirror_each_other(script: list[tuple[bool, int]]) -> None:
    stream = play(script).stream
    for epoch in range(stream.history.count):
        found = stream.history.segments_of(epoch)
        assert found[0].low == 0.0 and found[-1].high == 1.0
        assert all(a.high == b.low for a, b in pairwise(found))
    for segment in segments_of(stream):
        for successor, predecessors in queries.successors_with_predecessors(stream, segment):
            assert segment in predecessors
            for predecessor in predecessors:
                assert successor.id in {s.id for s in cuts.successors(stream, predecessor)}


@settings(max_examples=100, deadline=None)
@given(moves, st.integers(0, 10_000), st.integers(0, 10_000))
def test_cuts_of_epochs_are_valid_and_ordered(script: list[tuple[bool, int]], a: int, b: int) -> None:
    stream = play(script).stream
    first, second = sorted((a % stream.history.count, b % stream.history.count))
    older = dict.fromkeys(stream.history.epoch(first).segments, 1)
    newer = dict.fromkeys(stream.history.epoch(second).segments, 1)
    assert cuts.is_valid(stream, older) and cuts.is_valid(stream, newer)
    assert cuts.is_equal_or_after(stream, newer, older)
    between = cuts.segments_between(stream, older, newer)
    expected = {s for e in epochs_of(stream)[first : second + 1] for s in e.segments}
    assert between == expected


def test_random_cuts_over_a_thousand_scales_take_under_50_ms() -> None:
    log = StreamLog(10)
    for i in range(1010):
        stream = log.stream
        seals = tuple(s.id for s in stream.active_segments())
        log.scale(seals, tuple(scale.equal_ranges(10)), at=3000 + i)
    stream = log.stream
    slowest_s = 0.0
    for first in range(0, 1000, 37):
        older = dict.fromkeys(stream.history.epoch(first).segments, 0)
        newer = dict.fromkeys(stream.history.epoch(1000 - first // 2).segments, 0) if first < 600 else {}

        def ask(older: dict[int, int] = older, newer: dict[int, int] = newer) -> None:
            assert cuts.is_valid(stream, older)
            cuts.segments_between(stream, older, newer)

        slowest_s = max(slowest_s, least_cpu_s([ask] * 3))
    assert slowest_s < 0.05
