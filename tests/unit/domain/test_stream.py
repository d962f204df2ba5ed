"""The stream aggregate: each operation from its first record to its last, and what each refuses."""

from itertools import pairwise

import pytest
from support.domain_log import Log
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.errors import BusyError, IllegalStateError
from sluice.domain.ids import StreamId
from sluice.domain.stream import decide, queries
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.stream_deletion import finish_delete
from sluice.domain.workflow import WorkflowKind, decide_step_failed


def config(segments: int = 1, tags: tuple[str, ...] = ()) -> StreamConfig:
    return StreamConfig(scaling=ScalingPolicy(min_segments=segments), tags=tags)


def create(name: str = "st", segments: int = 1) -> CreateStream:
    return CreateStream("sc", name, config(segments))


def stream_of(log: Log, name: str = "st") -> Stream:
    stream = find_stream(log, StreamId("sc", name))
    assert stream is not None
    return stream


@pytest.mark.parametrize("count", [1, 2, 3, 49, 98, 103, 197, 1000])
def test_initial_ranges_tile_the_key_space_exactly(count: int) -> None:
    segments = decide.initial_segments(count, epoch=0, first=6)
    assert [s.id for s in segments] == list(range(6, 6 + count))
    assert segments[0].low == 0.0 and segments[-1].high == 1.0
    assert all(a.high == b.low for a, b in pairwise(segments))
    assert all(s.low == i * (1.0 / count) for i, s in enumerate(segments))


def test_creation_makes_the_mark_stream_in_the_same_records() -> None:
    log = Log("sc")
    begun = log.decide(create(segments=3), request="r1")
    assert begun.reply is None
    stream, mark = stream_of(log), stream_of(log, "_MARKst")
    assert (stream.state.value, mark.state.value) == ("CREATING", "CREATING")
    assert len(mark.active_segments()) == 1
    with pytest.raises(IllegalStateError):
        queries.current_segments(stream)
    done = log.apply(decide.finish_create(log, STREAM))
    assert done.reply is not None and done.reply.status == "SUCCESS"
    assert (stream.state.value, mark.state.value) == ("ACTIVE", "ACTIVE")
    assert stream.workflow is None and mark.workflow is None


def test_a_second_creation_waits_for_the_first_and_is_refused() -> None:
    log = Log("sc")
    log.decide(create(), request="r1")
    with pytest.raises(BusyError):
        log.decide(create(), request="r2")
    log.apply(decide.finish_create(log, STREAM))
    assert log.ask(create()).status == "STREAM_EXISTS"
    assert stream_of(log).creation_id == stream_of(log, "_MARKst").creation_id == "r1"


def test_operations_on_what_is_not_there() -> None:
    log = Log("sc")
    for command in (UpdateStream(*STREAM, config()), TruncateStream(*STREAM, {0: 1}), SealStream(*STREAM)):
        assert log.ask(command).status == "STREAM_NOT_FOUND"
    assert log.ask(DeleteStream(*STREAM)).status == "STREAM_NOT_FOUND"
    assert log.ask(ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 1.0),), at=1)).status == "FAILURE"


def test_update_of_tags_is_one_record_and_of_scaling_a_workflow() -> None:
    log = StreamLog()
    tagged = log.decide(UpdateStream(*STREAM, config(tags=("a", "b"))))
    assert tagged.reply is not None and tagged.reply.status == "SUCCESS"
    assert stream_of(log).config.tags == ("a", "b")
    policy = StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, 1))
    begun = log.decide(UpdateStream(*STREAM, policy), request="r2")
    assert begun.reply is None and stream_of(log).state.value == "UPDATING"
    assert stream_of(log).config == policy
    done = log.apply(decide.finish_update(log, STREAM, {}))
    assert done.reply is not None and stream_of(log).state.value == "ACTIVE"


def test_an_update_of_what_has_changed_meanwhile_is_refused() -> None:
    log = StreamLog()
    seen, life = stream_of(log).config, stream_of(log).creation_id
    mine = UpdateStream(*STREAM, config(tags=("mine",)), expected=seen, creation_id=life)
    assert log.ask(UpdateStream(*STREAM, config(tags=("theirs",)))).status == "SUCCESS"
    assert log.ask(mine).status == "CONFIG_CHANGED"
    assert stream_of(log).config.tags == ("theirs",)
    assert log.ask(UpdateStream(*STREAM, seen)).status == "SUCCESS"
    assert log.ask(UpdateStream(*STREAM, seen, expected=seen, creation_id="another")).status == "CONFIG_CHANGED"
    assert log.ask(mine).status == "SUCCESS"


def test_truncation_moves_the_head_at_once() -> None:
    log = StreamLog(segments=2)
    begun = log.decide(TruncateStream(*STREAM, {0: 10, 1: 5}), request="r2")
    stream = stream_of(log)
    assert begun.reply is None and stream.state.value == "TRUNCATING"
    assert queries.head(stream) == {0: 10, 1: 5} and stream.cut_size == 15
    log.apply(decide.finish_truncate(log, STREAM))
    assert stream.state.value == "ACTIVE"
    for cut in ({0: 9, 1: 5}, {0: 20}, {}, {0: -1, 1: -1}, {0: 20, 7: 1}):
        reply = log.ask(TruncateStream(*STREAM, cut))
        assert reply.status == "FAILURE" and reply.reason, cut
    again = log.decide(TruncateStream(*STREAM, {0: 10, 1: 5}))
    assert again.events and stream.cut_size == 15


def test_a_truncation_beyond_the_end_of_a_segment_is_refused_with_its_length() -> None:
    log = StreamLog(segments=2)
    log.measured.update({0: 40, 1: 7})
    for cut, why in (
        ({0: 41, 1: 0}, "offset 41 of segment sc/st/0.#epoch.0, which has 40 bytes"),
        ({0: 40, 1: 999}, "offset 999 of segment sc/st/1.#epoch.0, which has 7 bytes"),
        ({0: 41, 1: 8}, "which has 40 bytes, and 1 more end before it"),
    ):
        reply = log.ask(TruncateStream(*STREAM, cut))
        assert reply.status == "FAILURE" and why in reply.reason, cut
    assert queries.head(stream_of(log)) == {0: 0, 1: 0}
    log.truncate({0: 40, 1: 7})
    assert queries.head(stream_of(log)) == {0: 40, 1: 7}


def test_a_truncation_by_a_policy_that_is_another_one_by_now_is_refused() -> None:
    log = StreamLog(segments=1)
    policy = RetentionPolicy(RetentionType.SIZE, 0, 0)
    reply = log.ask(TruncateStream(*STREAM, {0: 10}, policy))
    assert reply.status == "FAILURE" and "another retention policy" in reply.reason
    stream_of(log).config = StreamConfig(retention=policy)
    assert log.decide(TruncateStream(*STREAM, {0: 10}, policy)).reply is None


def test_seal_then_delete_then_numbers_go_on() -> None:
    log = StreamLog(segments=3)
    assert log.ask(DeleteStream(*STREAM)).status == "STREAM_NOT_SEALED"
    log.decide(SealStream(*STREAM), request="r2")
    stream = stream_of(log)
    assert stream.state.value == "SEALING" and len(queries.current_segments(stream)) == 3
    with pytest.raises(BusyError):
        log.ask(DeleteStream(*STREAM))
    log.apply(decide.finish_seal(log, STREAM))
    assert queries.current_segments(stream) == [] and not queries.is_current(stream, 0)
    assert log.ask(SealStream(*STREAM)).status == "SUCCESS"
    assert log.ask(UpdateStream(*STREAM, config())).status == "STREAM_SEALED"
    assert log.ask(TruncateStream(*STREAM, {0: 1, 1: 1, 2: 1})).status == "STREAM_SEALED"
    log.decide(DeleteStream(*STREAM), request="r3")
    assert stream.workflow is not None and stream.workflow.kind is WorkflowKind.DELETE_STREAM
    done = log.apply(finish_delete(log, STREAM))
    assert done.reply is not None and done.reply.status == "SUCCESS"
    assert find_stream(log, STREAM) is None and find_stream(log, StreamId("sc", "_MARKst")) is None
    log.decide(create(segments=2), request="r4")
    assert [s.id for s in stream_of(log).active_segments()] == [3, 4]
    assert [s.id for s in stream_of(log, "_MARKst").active_segments()] == [1]


def test_a_command_for_an_earlier_stream_of_that_name_leaves_the_present_one() -> None:
    log = StreamLog()
    assert log.ask(SealStream(*STREAM, creation_id="r0")).status == "STREAM_NOT_FOUND"
    assert log.ask(DeleteStream(*STREAM, creation_id="r0")).status == "SUCCESS", "that one is gone"
    assert log.decide(SealStream(*STREAM, creation_id="r")).events


def test_a_deletion_that_names_the_stream_is_done_once_that_is_gone() -> None:
    log = StreamLog()
    log.decide(SealStream(*STREAM))
    log.apply(decide.finish_seal(log, STREAM))
    log.decide(DeleteStream(*STREAM, creation_id="r"))
    with pytest.raises(BusyError):
        log.decide(DeleteStream(*STREAM, creation_id="r"))
    log.apply(finish_delete(log, STREAM))
    assert log.ask(DeleteStream(*STREAM, creation_id="r")).status == "SUCCESS"
    assert log.ask(DeleteStream(*STREAM)).status == "STREAM_NOT_FOUND"


def test_failed_attempts_show_on_the_workflow() -> None:
    log = StreamLog()
    log.decide(SealStream(*STREAM), request="r2")
    log.apply(decide_step_failed(log, "stream:sc/st", WorkflowKind.SEAL_STREAM, "seal-segments", 4, "store away"))
    workflow = stream_of(log).workflow
    assert workflow is not None
    assert (workflow.step, workflow.attempts, workflow.last_error) == ("seal-segments", 4, "store away")
    assert decide_step_failed(log, "stream:sc/st", WorkflowKind.UPDATE_STREAM, "x", 4, "").events == ()
