"""What was decided on a stream, as the stream keeps it; and what of it is refused once it does not fit any more."""

import msgspec
import pytest
from support.domain_log import Log

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.stream import decide, scale
from sluice.domain.stream.commands import CreateStream, DecisionKind, RecordDecision, ScaleStream, TruncateStream
from sluice.domain.stream.state import RecordedDecision, Stream, find_stream

NOTE = RecordDecision(
    scope="sc", stream="st", creation_id="r", kind=DecisionKind.SCALE, code="steady", reason="not scaled", at=10
)


@pytest.fixture
def log() -> Log:
    """A stream with two segments."""
    log = Log("sc")
    config = StreamConfig(scaling=ScalingPolicy(min_segments=2))
    log.decide(CreateStream("sc", "st", config), request="r")
    log.apply(decide.finish_create(log, StreamId("sc", "st")))
    return log


def stream_of(log: Log) -> Stream:
    stream = find_stream(log, StreamId("sc", "st"))
    assert stream is not None
    return stream


def test_the_last_decision_of_each_kind_is_kept(log: Log) -> None:
    log.decide(NOTE)
    log.decide(msgspec.structs.replace(NOTE, code="cooling-down", at=20))
    log.decide(msgspec.structs.replace(NOTE, code="split", reason="hot", at=20))
    log.decide(msgspec.structs.replace(NOTE, kind=DecisionKind.RETENTION, code="no-cut", reason="none", at=5))
    assert stream_of(log).decisions == {
        DecisionKind.SCALE: RecordedDecision("split", "hot", 20),
        DecisionKind.RETENTION: RecordedDecision("no-cut", "none", 5),
    }


@pytest.mark.parametrize(
    "again",
    [
        msgspec.structs.replace(NOTE, at=20),
        msgspec.structs.replace(NOTE, code="split", at=9),
        msgspec.structs.replace(NOTE, code="split", at=20, creation_id="another life"),
        msgspec.structs.replace(NOTE, code="split", at=20, stream="other"),
    ],
    ids=["the same", "before", "of an earlier stream", "of no stream"],
)
def test_what_says_nothing_new_is_no_event(log: Log, again: RecordDecision) -> None:
    log.decide(NOTE)
    assert log.decide(again).events == ()
    assert stream_of(log).decisions == {DecisionKind.SCALE: RecordedDecision("steady", "not scaled", 10)}


def test_a_scale_that_was_decided_on_an_earlier_epoch_is_refused(log: Log) -> None:
    split = ScaleStream("sc", "st", seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=2000)
    assert log.ask(split).status == "STARTED"
    log.apply(scale.add_epoch(log, StreamId("sc", "st")))
    log.apply(scale.finish_scale(log, StreamId("sc", "st"), {0: 0}))
    assert log.ask(split).status == "PRECONDITION_FAILED"


def test_a_merge_below_the_minimum_is_refused(log: Log) -> None:
    merge = ScaleStream("sc", "st", seals=(0, 1), ranges=((0.0, 1.0),), at=2000)
    reply = log.ask(merge)
    assert reply.status == "PRECONDITION_FAILED" and "minimum" in reply.reason


def test_a_truncation_behind_the_head_is_refused(log: Log) -> None:
    log.decide(TruncateStream("sc", "st", cut={0: 50, 1: 50}), request="t1")
    log.apply(decide.finish_truncate(log, StreamId("sc", "st")))
    reply = log.ask(TruncateStream("sc", "st", cut={0: 20, 1: 50}))
    assert reply.status == "FAILURE" and "behind" in reply.reason


def test_a_stream_that_is_gone_refuses_both(log: Log) -> None:
    assert log.ask(ScaleStream("sc", "no", seals=(0,), ranges=((0.0, 1.0),), at=1)).status == "FAILURE"
    assert log.ask(TruncateStream("sc", "no", cut={0: 1})).status == "STREAM_NOT_FOUND"
