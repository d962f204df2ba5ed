"""Every status the domain can reply with has its number in the response, every failure its code."""

import ast
import inspect
import logging
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest
from grpc import StatusCode

from api_gateway.edge import errors
from api_gateway.pravega.statuses import FAILED, NOT_FOUND, OTHERWISE_CALLED, RESPONSES, STATUS_FIELDS, response
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.decision import Reply
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.domain.reader_group import decide as group_decide
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.registry import DECIDE
from sluice.domain.scope.commands import DeleteScopeRecursive
from sluice.domain.status import Status
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream.commands import CreateStream, NoteWriterTime, ScaleStream
from sluice.domain.table import decide as table_decide
from sluice.domain.table.commands import CreateTable
from sluice.domain.transaction import decide as transaction_decide
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, PingTransaction
from sluice.engine.journal import JournalUnavailableError, PartitionFailedError
from sluice.engine.ports import SendError, SendQueueFullError

DECISIONS: dict[type, Callable[..., Any]] = {
    **DECIDE,
    CommitTransaction: transaction_decide.decide_commit,
    PingTransaction: transaction_decide.decide_ping,
}

RAISED: dict[type, set[str]] = {CommitTransaction: {"TOO_MANY_WAITING"}}
"""What handlers make an error of before it comes to the tables."""

NEVER_SUCCESS = {ScaleStream, PingTransaction}

ONLY_TWO_STATUSES = {DeleteScopeRecursive, CommitTransaction, AbortTransaction}


def _resolve(node: ast.expr, scope: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _resolve(node.value, scope)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return None


def _replies(function: Callable[..., Any], seen: set[Any]) -> Iterator[str]:
    """The statuses in the source of a function, of what it calls in the domain and of what it leaves the rest to."""
    seen.add(function)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if not isinstance(node, ast.Call):
            continue
        called = _resolve(node.func, function.__globals__)
        # A command that is made here is sent on, and may be answered where it arrives.
        called = DECISIONS.get(called, called) if isinstance(called, type) else called
        if called is Reply or getattr(called, "__name__", "") == "refuse":
            status = node.args[0]
            assert isinstance(status, ast.Attribute), f"{function.__name__} replies with a status this test cannot see"
            yield Status[status.attr]
        elif isinstance(called, FunctionType) and called.__module__.startswith("sluice.domain") and called not in seen:
            yield from _replies(called, seen)


_CREATED_BY = {CreateStream: stream_decide, CreateReaderGroup: group_decide, CreateTable: table_decide}


def statuses_of(command: type) -> set[str]:
    # Workflows reply SUCCESS at their end; a scale is answered at its begin. FAILURE is what a dead letter replies.
    found = {"FAILURE", *_replies(DECISIONS[command], set()), *(() if command in NEVER_SUCCESS else ("SUCCESS",))}
    if command in _CREATED_BY:
        module = _CREATED_BY[command]
        found |= {*_replies(module.finish_create, set())}
    return found - RAISED.get(command, set())


@pytest.mark.parametrize("command", RESPONSES, ids=lambda command: command.__name__)
def test_every_reply_has_its_number_its_other_name_or_its_error(command: type) -> None:
    enum = RESPONSES[command].DESCRIPTOR.fields_by_name[STATUS_FIELDS[command]].enum_type
    assert enum is not None
    statuses, numbers = statuses_of(command), enum.values_by_name
    fewest = 2 if command in ONLY_TWO_STATUSES else 3
    assert len(statuses) >= fewest, "the scan of the domain saw nothing"
    if command in FAILED:
        assert "FAILURE" not in numbers
        statuses.remove("FAILURE")
    for status in statuses - {status for kind, status in NOT_FOUND if kind is command}:
        assert OTHERWISE_CALLED.get(command, {}).get(status, status) in numbers
    # The tables have no other entries.
    assert OTHERWISE_CALLED.get(command, {}).keys() <= statuses - set(numbers)
    assert {status for kind, status in NOT_FOUND if kind is command} <= statuses - set(numbers)


def test_a_failed_writers_time_is_an_internal_error() -> None:
    command = NoteWriterTime(scope="sc", stream="st", writer="w", timestamp=0, position={})
    assert response(command, Reply(Status.FAILURE)).result == pb.TimestampResponse.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("error", "code", "details"),
    [
        (errors.BadRequestError("why"), StatusCode.INTERNAL, errors.INTERNAL_TEXT),
        (errors.NoOwnerError("why"), StatusCode.INTERNAL, errors.INTERNAL_TEXT),
        (NotFoundError("why"), StatusCode.NOT_FOUND, "why"),
        (IllegalStateError("why"), StatusCode.INTERNAL, "why"),
        (InvalidArgumentError("why"), StatusCode.INVALID_ARGUMENT, "why"),
        (errors.OverloadedError("why"), StatusCode.RESOURCE_EXHAUSTED, "why"),
        (SendQueueFullError("why"), StatusCode.RESOURCE_EXHAUSTED, "why"),
        (errors.RequestTimeoutError("why"), StatusCode.DEADLINE_EXCEEDED, "why"),
        (SendError("why"), StatusCode.UNAVAILABLE, "why"),
        (JournalUnavailableError("why"), StatusCode.UNAVAILABLE, "why"),
        (PartitionFailedError("why"), StatusCode.UNAVAILABLE, "why"),
        (NotFoundError("x" * 10_000), StatusCode.NOT_FOUND, "x" * 500),
    ],
)
def test_every_failure_has_its_code(error: Exception, code: StatusCode, details: str) -> None:
    failure = errors.failure_of(error)
    assert (failure.code, failure.details) == (code, details)
    # The log has at least what the caller does not see.
    assert failure.level == (logging.INFO if details == errors.INTERNAL_TEXT else logging.DEBUG)


def test_an_unexpected_failure_is_a_defect_and_says_nothing_of_its_inside() -> None:
    assert errors.failure_of(KeyError("secret")) == errors.Failure(
        StatusCode.INTERNAL, errors.INTERNAL_TEXT, logging.ERROR
    )
