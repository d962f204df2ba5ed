"""kill -9 in every workflow: each ends, once, with the answer its caller expects.

stream-workflows is started with a crash point, meets it, and is started again with the next one; that new process
first ends what the one before left. All workflows have scopes of their own, prepared before.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from support.controller import Controller, config, controller, cut, info, outcome
from support.instances import have_instances
from support.kafka import events, fold
from support.workflows import running_workflows

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.workflow import WorkflowKind
from stream_workflows.workflows import WORKFLOWS

pytestmark = pytest.mark.integration

VICTIM = "stream-workflows-0"
DIES_S, ANSWERS_S, STARTS_S = 60.0, 60.0, 60.0
GROUP_ID = str(uuid4())

Call = tuple[str, Any]


class Case(msgspec.Struct):
    """What is there before, the request, its reply, and the event that must stand in the journal once."""

    before: Callable[[str], list[Call]]
    ask: Callable[[str], Call]
    last: str
    answer: str = "SUCCESS"


def _stream(scope: str, name: str = "st") -> Call:
    return "createStream", config(scope, name, 1)


def _seal(scope: str) -> Call:
    return "sealStream", info(scope, "st")


def _group(scope: str, generation: int = 0, streams: tuple[str, ...] = ("st",)) -> pb.ReaderGroupConfiguration:
    return pb.ReaderGroupConfiguration(
        scope=scope,
        readerGroupName="g",
        readerGroupId=GROUP_ID,
        generation=generation,
        retentionType=1,
        maxOutstandingCheckpointRequest=3,
        startingStreamCuts=[cut(scope, stream, {}) for stream in streams],
    )


def _table(scope: str) -> Call:
    return "createKeyValueTable", pb.KeyValueTableConfig(scope=scope, kvtName="t", partitionCount=2, primaryKeyLength=4)


def _scale(scope: str) -> Call:
    halves = [pb.ScaleRequest.KeyRangeEntry(start=0.0, end=0.5), pb.ScaleRequest.KeyRangeEntry(start=0.5, end=1.0)]
    return "scale", pb.ScaleRequest(streamInfo=info(scope, "st"), sealedSegments=[0], newKeyRanges=halves)


CASES = {
    WorkflowKind.CREATE_STREAM: Case(lambda _s: [], _stream, "StreamCreated"),
    WorkflowKind.UPDATE_STREAM: Case(
        lambda s: [_stream(s)], lambda s: ("updateStream", config(s, "st", 3)), "StreamUpdated"
    ),
    WorkflowKind.SCALE_STREAM: Case(lambda s: [_stream(s)], _scale, "StreamScaled", "STARTED"),
    WorkflowKind.TRUNCATE_STREAM: Case(
        lambda s: [_stream(s)], lambda s: ("truncateStream", cut(s, "st", {0: 0})), "StreamTruncated"
    ),
    WorkflowKind.SEAL_STREAM: Case(lambda s: [_stream(s)], _seal, "StreamSealed"),
    WorkflowKind.DELETE_STREAM: Case(
        lambda s: [_stream(s), _seal(s)], lambda s: ("deleteStream", info(s, "st")), "StreamDeleted"
    ),
    WorkflowKind.CREATE_GROUP: Case(
        lambda s: [_stream(s)], lambda s: ("createReaderGroup", _group(s)), "ReaderGroupCreated"
    ),
    WorkflowKind.UPDATE_GROUP: Case(
        lambda s: [_stream(s), _stream(s, "other"), ("createReaderGroup", _group(s))],
        lambda s: ("updateReaderGroup", _group(s, streams=("other",))),
        "ReaderGroupUpdated",
    ),
    WorkflowKind.DELETE_GROUP: Case(
        lambda s: [_stream(s), ("createReaderGroup", _group(s))],
        lambda s: ("deleteReaderGroup", pb.ReaderGroupInfo(scope=s, readerGroup="g", readerGroupId=GROUP_ID)),
        "ReaderGroupDeleted",
    ),
    WorkflowKind.CREATE_TABLE: Case(lambda _s: [], _table, "TableCreated"),
    WorkflowKind.DELETE_TABLE: Case(
        lambda s: [_table(s)],
        lambda s: ("deleteKeyValueTable", pb.KeyValueTableInfo(scope=s, kvtName="t")),
        "TableDeleted",
    ),
    WorkflowKind.DELETE_SCOPE: Case(lambda _s: [], lambda s: ("deleteScope", pb.ScopeInfo(scope=s)), "ScopeDeleted"),
    WorkflowKind.DELETE_SCOPE_RECURSIVE: Case(
        lambda s: [_stream(s), ("createReaderGroup", _group(s)), _table(s)],
        lambda s: ("deleteScopeRecursive", pb.ScopeInfo(scope=s)),
        "ScopeDeleted",
    ),
}

OF_SCOPES = (WorkflowKind.DELETE_SCOPE, WorkflowKind.DELETE_SCOPE_RECURSIVE)


def crash_points() -> list[tuple[WorkflowKind, str]]:
    """After the effect of each workflow's last step. Simulations kill it at all others, too.

    Deleting a scope sets other workflows off, so it comes last, each time after all has ended.
    """
    kinds = [*(kind for kind in CASES if kind not in OF_SCOPES), *OF_SCOPES]
    return [(kind, f"{kind.value}/after-{WORKFLOWS[kind][-1].name}") for kind in kinds]


@pytest.fixture(scope="module")
def lone(disturbed: System) -> System:
    """With one of each service."""
    return have_instances(disturbed, 1, STARTS_S)


@pytest.fixture(scope="module")
def gateway(lone: System) -> Iterator[Controller]:
    with controller(lone.grpc_address, ANSWERS_S) as client:
        yield client


def test_every_workflow_has_its_case() -> None:
    """But for that of a restore, which no request begins: tests/integration/test_backup.py lets it run."""
    assert CASES.keys() == WORKFLOWS.keys() - {WorkflowKind.RESTORE_STREAM}


@pytest.mark.timeout(900)
def test_every_workflow_ends_once_wherever_its_process_is_killed(lone: System, gateway: Controller) -> None:
    eventually(lambda: not running_workflows(fold(lone.kafka_bootstrap)), STARTS_S, "Pravega's own stream is there")
    points = [(f"crash{number}", kind, point) for number, (kind, point) in enumerate(crash_points())]
    for scope, kind, _ in points:
        for rpc, request in [("createScope", pb.ScopeInfo(scope=scope)), *CASES[kind].before(scope)]:
            assert gateway.status(rpc, request) == "SUCCESS", (scope, rpc)
    calls: dict[str, Any] = {}
    for scope, kind, point in points:
        if kind in OF_SCOPES:
            _let_all_end(lone, calls)
        if lone.is_running(VICTIM):
            lone.stop(VICTIM)
        lone.start(VICTIM, environment={"SLUICE_CRASH_AT": point}, deadline_s=STARTS_S)
        calls[point] = gateway.begin(*CASES[kind].ask(scope))
        assert lone.wait_ended(VICTIM, DIES_S), f"{point} was not passed"
        assert lone.exit_code(VICTIM) == -9
    _let_all_end(lone, calls)
    for _, kind, point in points:
        assert outcome(calls[point]) == CASES[kind].answer, point
    _all_ended_once(lone, points)


def _let_all_end(lone: System, calls: dict[str, Any]) -> None:
    if not lone.is_running(VICTIM):
        lone.start(VICTIM, deadline_s=STARTS_S)
    for call in calls.values():
        call.result()


def _all_ended_once(lone: System, points: list[tuple[str, WorkflowKind, str]]) -> None:
    records = fold(lone.kafka_bootstrap)
    assert not running_workflows(records)
    names = {"stream": "st", "group": "g", "table": "t"}
    for scope, kind, point in points:
        last, resource = CASES[kind].last, kind.value.partition("-")[2].removeprefix("reader-")
        aggregate = f"scope:{scope}" if kind in OF_SCOPES else f"{resource}:{scope}/{names[resource]}"
        counted = Counter(type(event).__name__ for event in events(records, _of(aggregate)))
        assert counted[last] == 1, (point, counted)


def _of(aggregate: str) -> Callable[[Any], bool]:
    return lambda event: bool(event.aggregate == aggregate)
