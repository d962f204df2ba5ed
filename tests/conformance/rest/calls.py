"""Calls of the admin REST API, from plain values.

An answer is its status, and where that is below 400 and there is a body, status and body. `{sc}` in a path or a body
stands for the scope of the case; what is answered has the short names again. Lists have no order that is promised, so
they are sorted.
"""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import httpx

from conformance.case import Step, step
from conformance.run import Run

Sent = Mapping[str, Any] | str | None
"""A body: as JSON, or exactly this text."""

View = Callable[[Run, Any], Any]

JSON = "application/json"


def rest(
    method: str,
    path: str,
    body: Sent = None,
    *,
    view: View | None = None,
    success: int = HTTPStatus.OK,
    content_type: str = JSON,
) -> Step:
    """One call; unless said otherwise it must be answered with `success`, whatever the body."""

    async def act(run: Run) -> Any:
        response = await run.target.http.request(
            method,
            path.replace("{sc}", run.scope("sc")),
            content=_text(run, body),
            headers={"Content-Type": content_type} if body is not None else {},
        )
        return _answer(run, response, view)

    return step(f"{method} {path}", act, _Status(success))


class _Status(int):
    """Agrees with an answer of this status, with a body or without."""

    def __eq__(self, other: object) -> bool:
        return int(self) == (other[0] if isinstance(other, tuple) else other)

    def __hash__(self) -> int:
        return int.__hash__(self)


def _text(run: Run, body: Sent) -> str | None:
    if body is None:
        return None
    text = body if isinstance(body, str) else json.dumps(body)
    return text.replace("{sc}", run.scope("sc"))


def _answer(run: Run, response: httpx.Response, view: View | None) -> Any:
    status = response.status_code
    if status >= HTTPStatus.BAD_REQUEST or not response.content:
        return status
    if not response.headers.get("content-type", "").startswith(JSON):
        return status, response.headers.get("content-type", "").partition(";")[0]
    whole = json.loads(response.text.replace(run.prefix, ""))
    return status, ordered(view(run, whole) if view is not None else whole)


def ordered(value: Any) -> Any:
    """The value with all its lists sorted."""
    if isinstance(value, dict):
        return {name: ordered(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted(map(ordered, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def good(body: Any) -> tuple[int, Any]:
    """The answer 200 with this body, whose lists may be in any order."""
    return HTTPStatus.OK, ordered(body)


# --- scopes

SCOPES = "/v1/scopes"
SCOPE = "/v1/scopes/{sc}"


def create_scope(name: str = "{sc}") -> Step:
    return rest("POST", SCOPES, {"scopeName": name}, success=HTTPStatus.CREATED)


def get_scope() -> Step:
    return rest("GET", SCOPE)


def delete_scope() -> Step:
    return rest("DELETE", SCOPE, success=HTTPStatus.NO_CONTENT)


# --- streams

STREAMS = "/v1/scopes/{sc}/streams"

TWO = {"type": "FIXED_NUM_SEGMENTS", "minSegments": 2}


def _one(stream: str) -> str:
    return f"{STREAMS}/{stream}"


def create_stream(stream: str | None = "st", **properties: Any) -> Step:
    """With two segments, unless a scalingPolicy is given; a property that is None is left out."""
    return rest("POST", STREAMS, _stream(streamName=stream, **properties), success=HTTPStatus.CREATED)


def _stream(**properties: Any) -> dict[str, Any]:
    whole = {"scalingPolicy": TWO, **properties}
    return {name: value for name, value in whole.items() if value is not None}


def get_stream(stream: str = "st") -> Step:
    return rest("GET", _one(stream))


def update_stream(stream: str = "st", **properties: Any) -> Step:
    return rest("PUT", _one(stream), _stream(**properties))


def seal_stream(stream: str = "st", state: Any = "SEALED") -> Step:
    return rest("PUT", f"{_one(stream)}/state", {"streamState": state})


def delete_stream(stream: str = "st") -> Step:
    return rest("DELETE", _one(stream), success=HTTPStatus.NO_CONTENT)


def stream_names(_run: Run, answer: Any) -> list[str]:
    """What a list of streams names."""
    return [stream["streamName"] for stream in answer["streams"]]


def list_streams(query: str = "") -> Step:
    """Answers with the names alone."""
    return rest("GET", STREAMS + query, view=stream_names)


def shown(stream: str = "st", **properties: Any) -> dict[str, Any]:
    """A stream as it is answered."""
    return {
        "scopeName": "sc",
        "streamName": stream,
        "scalingPolicy": TWO,
        "tags": [],
        "timestampAggregationTimeout": 0,
        "rolloverSizeBytes": 0,
        **properties,
    }


# --- scaling events

EVENTS = "/v1/scopes/{sc}/streams/st/scaling-events"
FAR = 9_999_999_999_999


def epochs(_run: Run, answer: Any) -> list[Any]:
    """Of each event, without times: its index, its segments with number, epoch and keys, the splits, the merges."""
    return [
        {
            "index": index,
            "segments": [f"{s['number']}.{s['epoch']} {s['keyStart']}-{s['keyEnd']}" for s in event["segments"]],
            "splits": event["splits"],
            "merges": event["merges"],
        }
        for index, event in enumerate(answer)
    ]


def scaling_events(query: str = f"from=0&to={FAR}") -> Step:
    return rest("GET", f"{EVENTS}?{query}", view=epochs)


# --- reader groups

GROUPS = "/v1/scopes/{sc}/readergroups"


def list_groups() -> Step:
    return rest("GET", GROUPS)


def get_group(group: str = "rg") -> Step:
    return rest("GET", f"{GROUPS}/{group}")


def delete_group(group: str = "rg") -> Step:
    return rest("DELETE", f"{GROUPS}/{group}", success=HTTPStatus.NO_CONTENT)
