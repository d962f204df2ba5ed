"""What was decided on a stream, as the stream keeps it."""

import msgspec
import pytest
from support.stream_log import STREAM, StreamLog

from sluice.domain.stream.commands import DecisionKind, RecordDecision
from sluice.domain.stream.state import RecordedDecision
from sluice.insight.decisions import DecisionModel, last_decisions

NOTE = RecordDecision(*STREAM, creation_id="r", kind=DecisionKind.SCALE, code="steady", reason="not scaled", at=10)


def test_the_last_decision_of_each_kind_is_kept() -> None:
    log = StreamLog()
    log.decide(NOTE)
    log.decide(msgspec.structs.replace(NOTE, code="cooling-down", at=20))
    log.decide(msgspec.structs.replace(NOTE, code="split", reason="hot", at=20))
    log.decide(msgspec.structs.replace(NOTE, kind=DecisionKind.RETENTION, code="no-cut", reason="none", at=5))
    assert log.stream.decisions == {
        DecisionKind.SCALE: RecordedDecision("split", "hot", 20),
        DecisionKind.RETENTION: RecordedDecision("no-cut", "none", 5),
    }


def test_a_decision_that_acts_is_not_hidden_by_a_later_one_that_does_not() -> None:
    log = StreamLog()
    split = msgspec.structs.replace(NOTE, code="split", reason="hot", acts=True)
    log.decide(split)
    assert last_decisions(log.stream) == [DecisionModel(kind="scale", code="split", reason="hot", at=10)]
    log.decide(msgspec.structs.replace(NOTE, at=19))
    log.decide(msgspec.structs.replace(NOTE, kind=DecisionKind.RETENTION, code="no-cut", reason="none", at=15))
    assert last_decisions(log.stream) == [
        DecisionModel(kind="scale", code="steady", reason="not scaled", at=19),
        DecisionModel(kind="retention", code="no-cut", reason="none", at=15),
        DecisionModel(kind="scale", code="split", reason="hot", at=10),
    ]
    log.decide(msgspec.structs.replace(split, code="merge", at=30))
    assert last_decisions(log.stream)[0] == DecisionModel(kind="scale", code="merge", reason="hot", at=30)
    assert len(last_decisions(log.stream)) == 2


def test_each_decision_that_acts_is_recorded_with_its_request_but_once() -> None:
    log = StreamLog()
    first = msgspec.structs.replace(NOTE, acts=True, request="scale-1", numbers={"segments": 2})
    second = msgspec.structs.replace(first, at=20, request="scale-2")
    (recorded,) = log.decide(first).events
    assert (recorded.request, recorded.numbers) == ("scale-1", {"segments": 2})
    assert len(log.decide(second).events) == 1
    assert log.decide(second).events == ()


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
def test_what_says_nothing_new_is_no_event(again: RecordDecision) -> None:
    log = StreamLog()
    log.decide(NOTE)
    assert log.decide(again).events == ()
    assert log.stream.decisions == {DecisionKind.SCALE: RecordedDecision("steady", "not scaled", 10)}
