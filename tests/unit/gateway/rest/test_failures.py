"""Every failure has its status, and says no more than the caller may know."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from api_gateway.app import build_app
from api_gateway.edge import errors
from api_gateway.edge.errors import NotServingError
from api_gateway.edge.reads import MissingError
from api_gateway.edge.rest.failures import Failure, RefusedError, failure_of
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.engine.journal import JournalUnavailableError, PartitionFailedError
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.kafka.dead_letters import DeadLettersUnavailableError
from sluice.pravega.errors import RouteStale
from sluice.validation import sentences


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (RefusedError(412, "why", "STREAM_NOT_SEALED"), 412, "STREAM_NOT_SEALED"),
        (MissingError("why", "STREAM_NOT_FOUND"), 404, "STREAM_NOT_FOUND"),
        (NotFoundError("why"), 404, ""),
        (errors.BadRequestError("why"), 400, ""),
        (InvalidArgumentError("why"), 400, ""),
        (IllegalStateError("why"), 409, ""),
        (RecordTooLargeError("why"), 413, ""),
        (errors.OverloadedError("why"), 503, ""),
        (NotServingError("why"), 503, ""),
        (errors.NoOwnerError("why"), 503, ""),
        (SendQueueFullError("why"), 503, ""),
        (SendError("why"), 504, ""),
        (JournalUnavailableError("why"), 503, ""),
        (PartitionFailedError("why"), 503, ""),
        (DeadLettersUnavailableError("why"), 503, ""),
        (errors.RequestTimeoutError("why"), 504, ""),
    ],
)
def test_every_failure_has_its_status(error: Exception, status: int, reason: str) -> None:
    assert failure_of(error) == Failure(status, "why", reason)


def test_a_segment_store_that_is_away_is_no_error_of_ours() -> None:
    failure = failure_of(RouteStale("segment_info", "sc/st/0.#epoch.0", "127.0.0.1:1"))
    assert (failure.status, failure.level) == (503, logging.DEBUG)


def test_an_unexpected_failure_is_a_defect_and_says_nothing_of_its_inside() -> None:
    failure = failure_of(KeyError("secret"))
    assert (failure.status, failure.level) == (500, logging.ERROR)
    assert "secret" not in failure.detail


def test_what_is_said_has_a_bound() -> None:
    assert len(failure_of(NotFoundError("x" * 10_000)).detail) == 500


def test_every_pattern_of_the_interface_is_said_in_words() -> None:
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    waiting: list[Any] = [build_app(process, connections=10).openapi()]
    patterns = set()
    while waiting:
        match waiting.pop():
            case dict(found):
                patterns |= {found["pattern"]} if isinstance(found.get("pattern"), str) else set()
                waiting.extend(found.values())
            case list(found):
                waiting.extend(found)
    problems = [{"type": "string_pattern_mismatch", "loc": ("x",), "msg": p, "ctx": {"pattern": p}} for p in patterns]
    assert patterns and not [said for said in sentences(problems) if not said.startswith("x: it must be ")]
