"""Retries and cancellations of workflows: which one is meant, and when it is too late."""

import msgspec
from support.domain_log import Log
from support.stream_log import StreamLog

from sluice.domain.config import ReaderGroupConfig, ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Reply
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.reader_group.decide import cancel as cancel_group
from sluice.domain.status import Status
from sluice.domain.stream import decide
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream
from sluice.domain.transaction.stream_deletion import finish_delete
from sluice.domain.workflow import NOTHING_RUNS, CancelWorkflow, RetryWorkflow, Workflow, running

STREAM = "stream:sc/st"
CREATE = CreateStream("sc", "st", StreamConfig(scaling=ScalingPolicy(min_segments=1)))
SCALE = ScaleStream("sc", "st", seals=(0,), ranges=((0.0, 0.5), (0.5, 1.0)), at=1)


def begin(log: Log, request: str, now: int = 1000) -> Workflow:
    """A creation of the stream."""
    log.decide(CREATE, request, now)
    return workflow_of(log)


def workflow_of(log: Log, aggregate: str = STREAM) -> Workflow:
    workflow = running(log.get(aggregate))
    assert workflow is not None
    return workflow


def take_back(log: Log) -> None:
    """End the stream's workflow as its runner does when it was cancelled."""
    decision = decide.cancel(log, Context(1000), log.get(STREAM))
    assert decision is not None
    log.apply(decision)


def test_the_workflow_that_is_named_is_cancelled_once() -> None:
    log = Log("sc")
    id = begin(log, "r").id
    for _ in range(2):
        assert log.ask(CancelWorkflow(STREAM, id)) == Reply(Status.SUCCESS)
        assert workflow_of(log).cancelled
    version = log.version(STREAM)
    assert log.ask(CancelWorkflow(STREAM, id)) == Reply(Status.SUCCESS)
    assert log.version(STREAM) == version, "nothing is left to say"


def test_another_workflow_than_the_one_that_is_named_goes_on() -> None:
    log = Log("sc")
    former = begin(log, "r1").id
    log.ask(CancelWorkflow(STREAM, former))
    take_back(log)
    log.apply(finish_delete(log, StreamId("sc", "st")))
    assert log.ask(CancelWorkflow(STREAM, former)) == NOTHING_RUNS
    present = begin(log, "r2").id
    refused = Reply(Status.NOT_RUNNING, f"{present} is under way there, not {former}")
    assert log.ask(CancelWorkflow(STREAM, former)) == refused
    assert not workflow_of(log).cancelled


def test_scales_of_a_stream_differ_by_when_they_began() -> None:
    log = StreamLog()
    ids = []
    for now in (2000, 3000):
        log.decide(SCALE, now=now)
        ids.append(workflow_of(log).id)
        if now == 2000:
            log.ask(CancelWorkflow(STREAM, ids[0]))
            take_back(log)
    assert ids == ["scale-stream-2000", "scale-stream-3000"]
    assert log.ask(CancelWorkflow(STREAM, ids[0])).status == "NOT_RUNNING"
    assert log.ask(CancelWorkflow(STREAM, ids[1])).status == "SUCCESS"


def test_what_undoes_a_creation_is_not_the_creation() -> None:
    log, group = Log("sc"), "group:sc/g"
    create = CreateReaderGroup("sc", "g", ReaderGroupConfig(id="i", starts={"sc/st": {}}))
    log.decide(create, "r")
    creation = workflow_of(log, group)
    undoing = cancel_group(log, Context(1000), log.get(group))
    assert undoing is not None
    log.apply(undoing)
    assert workflow_of(log, group).request == creation.request
    assert workflow_of(log, group).id != creation.id
    assert log.ask(CancelWorkflow(group, creation.id)).status == "NOT_RUNNING"


def test_the_id_stays_whatever_is_noted_of_the_workflow() -> None:
    log = Log("sc")
    id = begin(log, "r").id
    assert log.ask(RetryWorkflow(STREAM)) == log.ask(CancelWorkflow(STREAM, id)) == Reply(Status.SUCCESS)
    assert workflow_of(log).id == id
    assert msgspec.json.decode(msgspec.json.encode(workflow_of(log)), type=Workflow).id == id


def test_a_creation_that_comes_along_is_neither_cancelled_nor_retried_by_itself() -> None:
    log = Log("sc")
    begin(log, "r")
    log.decide(CreateReaderGroup("sc", "g", ReaderGroupConfig(id="i", starts={"sc/st": {}})), "g")
    why = "it is created along with another resource"
    for stream in (StreamId("sc", "st").mark, GroupId("sc", "g").state_stream):
        creation = workflow_of(log, stream.aggregate)
        assert log.ask(CancelWorkflow(stream.aggregate, creation.id)) == Reply(Status.TOO_LATE, why)
        assert log.ask(RetryWorkflow(stream.aggregate)) == Reply(Status.NOT_RUNNING, why)
        assert not creation.cancelled and not creation.retry_requests


def test_what_cannot_be_taken_back_is_refused_as_such() -> None:
    log = StreamLog()
    log.decide(SealStream("sc", "st"), "s")
    refused = Reply(Status.TOO_LATE, "seal-stream cannot be taken back once it has begun")
    assert log.ask(CancelWorkflow(STREAM, workflow_of(log).id)) == refused
