"""The boundary around every HTTP call: whatever it raises becomes an answer.

Nothing a caller sends and no defect of ours ends the service: an unexpected exception is 500 for that one caller
and stands in the log with its stack. The two interfaces differ in how they say no: Pravega's has no body
(admin-rest-api 2), ours is a problem of RFC 9457.

Who calls, and whether the call is allowed, comes first: before its body, and before anything else it says is looked at.

A body is read before a call takes its place, with a limit of its own and a deadline: who sends one slowly, or never
ends it, keeps no other call from being answered.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.rest.capacity import capacity_of
from api_gateway.edge.rest.failures import JSON_TYPE, MAX_DETAIL, Failure, RefusedError, failure_of
from api_gateway.edge.security.browsers import Browsers
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.rest_resources import names_in
from api_gateway.edge.security.rules import READ_UPDATE, Rule
from api_gateway.edge.security.sessions import COOKIE, Sessions
from sluice.exceptions import in_words
from sluice.security.caller import Caller

log = logging.getLogger(__name__)

REQUEST_HEADER = "Sluice-Request"
PROBLEM_TYPE = "application/problem+json"

_MAY_BE_OURS = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
"""Answers that also say what is wrong with this process, which may be the cause."""

MAX_BODY_BYTES = 1024 * 1024
"""A scale of 10,000 segments into as many has two thirds of it. Values take twenty times as much once they are read."""

BODY_S = 30.0
"""How long a body may take to come."""


class Problem(BaseModel):
    """Why a call was refused (RFC 9457)."""

    type: str = Field(
        default="about:blank", description="Always about:blank: the status says what kind of problem it is."
    )
    title: str = Field(description="The status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="What is wrong, in words.", examples=["stream sc/st does not exist"])
    reason: str | None = Field(
        default=None, description="Pravega's name of the status, where there is one.", examples=["STREAM_NOT_FOUND"]
    )


def problem_answer(failure: Failure) -> Response:
    title = HTTPStatus(failure.status).phrase
    problem = Problem(title=title, status=failure.status, detail=failure.detail, reason=failure.reason or None)
    return Response(problem.model_dump_json(exclude_none=True), failure.status, _headers(failure), PROBLEM_TYPE)


def empty_answer(failure: Failure) -> Response:
    return Response(status_code=failure.status, headers=_headers(failure))


def _headers(failure: Failure) -> dict[str, str]:
    return _HEADERS.get(failure.status, {})


_HEADERS: dict[int, dict[str, str]] = {
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},
    # The rest of the body is not waited for.
    HTTPStatus.REQUEST_TIMEOUT: {"Connection": "close"},
}


Answer = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route inside the boundary; `refuse` makes an answer of a failure.

    `rule_of` says what the calls of a method and a path of the interface need; None: they are for everyone.
    """

    rule_of: Callable[[str, str], Rule | None]
    refuse: Callable[[Failure], Response] = staticmethod(problem_answer)
    not_a_number = HTTPStatus.BAD_REQUEST

    @property
    def rule(self) -> Rule | None:
        """What its calls need."""
        (method,) = self.methods or {""}
        return type(self).rule_of(method, self.path_format)

    def get_route_handler(self) -> Answer:
        answer, refuse, path = super().get_route_handler(), type(self).refuse, self.path_format
        not_a_number, has_body = self.not_a_number, self.body_field is not None
        rule = self.rule

        async def answered(request: Request) -> Response:
            return await answer(await _with_body(request) if has_body else request)

        async def guarded(request: Request) -> Response:
            guard: Guard | None = request.app.state.guard
            try:
                _check_page(request, rule)
                if guard is None or rule is None:
                    response = await answered(request)
                else:
                    caller = await _admitted(guard, rule, request)
                    with guard.serving(caller):
                        response = await answered(request)
            except Exception as error:  # noqa: BLE001 - this is the boundary
                response = refuse(_recorded(request, path, error, not_a_number))
            request_id = getattr(request.state, "request_id", "")
            if request_id:
                response.headers[REQUEST_HEADER] = request_id
            return response

        return guarded


def _check_page(request: Request, rule: Rule | None) -> None:
    """Raises RefusedError for a change that a page sends where pages may only read."""
    browsers: Browsers = request.app.state.browsers
    is_change = rule is not None and rule.level is READ_UPDATE and request.method != "GET"
    if is_change and browsers.refuses_change(request.headers):
        raise RefusedError(HTTPStatus.FORBIDDEN, "the page may only read here (SLUICE_PAGE)")


def credentials_of(request: Request) -> str | None:
    """The header `authorization` of a call, else that of its session."""
    sessions: Sessions | None = request.app.state.sessions
    sent = request.headers.get("authorization")
    if sent is not None or sessions is None:
        return sent
    cookie = request.cookies.get(COOKIE)
    return sessions.open(cookie) if cookie else None


async def _admitted(guard: Guard, rule: Rule, request: Request) -> Caller | None:
    """Who calls, of several headers by the first. Raises UnauthenticatedError, ForbiddenError, OverloadedError."""
    with capacity_of(request).calls.taken():
        return await guard.admit(rule, names_in(request.path_params), credentials_of(request))


async def _with_body(request: Request) -> Request:
    """The call with its body at hand. Raises RefusedError, OverloadedError, QuotaExceededError, BadRequestError."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise _too_large()
    bounded = Request(request.scope, _bounded(request.receive))
    try:
        with capacity_of(request).bodies.taken():
            async with asyncio.timeout(BODY_S):
                await bounded.body()
    except TimeoutError as error:
        status = HTTPStatus.REQUEST_TIMEOUT
        raise RefusedError(status, f"the body did not come within {BODY_S:g} s") from error
    except ClientDisconnect as error:
        raise BadRequestError("the caller left before its body was here") from error
    return bounded


def _bounded(receive: Receive) -> Receive:
    """Ends a body that becomes too large."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return counted


def _too_large() -> RefusedError:
    return RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {MAX_BODY_BYTES} bytes")


def _recorded(request: Request, path: str, error: Exception, not_a_number: HTTPStatus) -> Failure:
    failure = failure_of(error)
    if isinstance(error, RequestValidationError):
        if _is_of_other_type(request, error):
            failure = Failure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body must be {JSON_TYPE}")
        elif any(one["loc"][0] == "query" and one["type"] != "missing" and one["input"] for one in error.errors()):
            failure = Failure(not_a_number, failure.detail)
    if failure.status in _MAY_BE_OURS and (wrong := request.app.state.health.problems()):
        failure = msgspec.structs.replace(failure, detail=f"{failure.detail}; {wrong[:MAX_DETAIL]}")
    if log.isEnabledFor(failure.level):
        facts = {"method": request.method, "path": path, "status": failure.status, "error": in_words(error)}
        log.log(failure.level, "call failed", extra=facts, exc_info=error if failure.level >= logging.ERROR else None)
    return failure


def _is_of_other_type(request: Request, error: RequestValidationError) -> bool:
    """Whether there is a body that was not even read because it says to be something else than JSON."""
    if not isinstance(error.body, bytes):
        return False
    return not request.headers.get("content-type", "").partition(";")[0].strip().lower().endswith("json")
