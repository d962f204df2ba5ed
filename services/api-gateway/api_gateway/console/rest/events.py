"""The feed of events: what changes, as it changes (server-sent events)."""

from typing import Annotated, Any

import msgspec
from fastapi import Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from api_gateway.console import rates
from api_gateway.console.feed.changes import kind_of
from api_gateway.console.feed.feeds import Feed, Feeds, Rates
from api_gateway.console.rest.base import refusals, router
from api_gateway.edge.errors import BadRequestError, OverloadedError
from api_gateway.edge.rest.parts import ServedClock, served
from api_gateway.edge.security.aggregates import resource_of
from api_gateway.edge.security.guard import Guard
from sluice.domain.ids import StreamId
from sluice.domain.names import STREAMS
from sluice.engine.ports import Clock
from sluice.security.caller import CALLER, Caller, UnauthenticatedError, calling_principal
from sluice.security.resources import Permission
from sluice.validation import form

routes = router("cluster", is_feed=True)

MAX_NAMES = 50
MAX_RATES = 5
MAX_CHARS = 4_000
"""Of names, or of a position: both fit into the head of a request."""
_POSITION = form(r"^[0-9.]*$", "a position, as `hello` and `changed` name it")
_ABOUT = """\
`hello` comes first, with the position, this gateway's clock and the hash of the page; then `changed`, with the
aggregates that changed, their versions and the types of their events, at most every 250 ms; `many` where too much has
changed to name it, or the position is too old: fetch everything anew; `rates` each 2 s, of streams named so, with what
is written to each active segment a second, and none of a stream that cannot be measured because too many are; `beat`
each 5 s, with the position; `bye` at the end.

What the caller may not READ is left out, also if it is named.

The id of an event is the position behind it: a feed that resumes from there, at any gateway, has missed nothing.
"""
_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["hello", "changed", "rates", "many", "beat", "bye"]},
        "data": {"type": "string", "description": "An object in JSON."},
        "id": {"type": "string", "description": "The position behind it."},
        "retry": {"type": "integer"},
    },
    "required": ["event", "data"],
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": _ABOUT, "content": {"text/event-stream": {"schema": _EVENT}}}
}


_encode = msgspec.json.Encoder().encode


class FeedResponse(EventSourceResponse):
    """The events of a feed, which is closed at the end, whichever side ended it."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._events = feed.events()
        # Proxies pass the events on as they come.
        super().__init__(self._events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()
            self._feed.close()


@routes.get("/events", operation_id="followEvents", response_class=Response, responses={**_STREAM, **refusals()})
async def follow(
    request: Request,
    clock: ServedClock,
    measuring: Annotated[rates.Rates, served(rates.Rates)],
    feeds: Annotated[Feeds, served(Feeds)],
    of: Annotated[
        str,
        Query(
            max_length=MAX_CHARS,
            pattern=form(r"^[A-Za-z0-9._:/,*-]*$", "names with commas between them, like stream:demo/orders,cluster"),
            description="What of: names with commas between them, each `stream:S/N`, `group:S/N`, `table:S/N`, "
            "`rates:S/N`, `scope:S` with all that is in it, `cluster`, or `*` for everything.",
            examples=["stream:demo/orders,cluster"],
        ),
    ] = "*",
    since: Annotated[
        str,
        Query(
            max_length=MAX_CHARS, pattern=_POSITION, description="The position to resume from; left out: from now on."
        ),
    ] = "",
    count: Annotated[int, Query(ge=0, le=2**31 - 1, description="End after so many events; 0 or left out: never.")] = 0,
    last_event_id: Annotated[
        str,
        Header(
            max_length=MAX_CHARS, pattern=_POSITION, description="As `since`, where that is left out; browsers send it."
        ),
    ] = "",
) -> Response:
    """Follow what changes, until the caller or the gateway ends it."""
    names = _names_in(of)
    guard: Guard | None = request.app.state.guard
    may_see = None
    if guard is not None and guard.wants_credentials:
        may_see = _sight()
    if request.scope.get("is_head"):
        return Response(media_type="text/event-stream")
    measured = [name for name in names if kind_of(name) == "rates" and (may_see is None or may_see(name))]
    shown = _rates(clock, measuring, [StreamId.of(name.partition(":")[2]) for name in measured])
    return FeedResponse(feeds.open(names, since or last_event_id, may_see, count, shown, calling_principal()))


def _rates(clock: Clock, measuring: rates.Rates, streams: list[StreamId]) -> Rates | None:
    """Measures these streams from now on, as far as they can be measured. Raises BadRequestError."""
    if not streams:
        return None
    if len(streams) > MAX_RATES:
        raise BadRequestError(f"of: the rates of {MAX_RATES} streams at most")

    def shown() -> list[bytes]:
        at = clock.now_ms()
        events = []
        for id in streams:
            try:
                found = measuring.look(id)
            except OverloadedError:
                # Rates are the least of what a feed is for: it has all the rest.
                continue
            body = _encode({"stream": str(id), "segments": found.segments, "at": at}).decode()
            events.append(format_sse_event(event="rates", data_str=body))
        return events

    shown()
    return shown


def _names_in(of: str) -> list[str]:
    """Raises BadRequestError."""
    names = [name for name in of.split(",") if name]
    if not names or len(names) > MAX_NAMES:
        raise BadRequestError(f"of: 1 to {MAX_NAMES} names, with commas between them")
    for name in names:
        if name not in ("*", "cluster") and kind_of(name) is None:
            raise BadRequestError(
                f"of: {name[:100]!r} is none of stream:S/N, group:S/N, table:S/N, rates:S/N, scope:S, cluster, *"
            )
    return names


class Sight:
    """What one caller may see, remembered while a feed goes on; equal to that of a caller with the same rights."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._known: dict[str, bool] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sight) and self._caller.permission_on == other._caller.permission_on

    def __hash__(self) -> int:
        return hash(self._caller.permission_on)

    def __call__(self, subject: str) -> bool:
        resource = resource_of_subject(subject)
        found = self._known.get(resource)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[resource] = self._caller.permission_on(resource) >= Permission.READ
        return found


_MAX_KNOWN = 10_000


def _sight() -> Sight:
    """Raises UnauthenticatedError."""
    caller = CALLER.get()
    if caller is None:
        raise UnauthenticatedError
    return Sight(caller)


def resource_of_subject(subject: str) -> str:
    """The resource that a caller must be able to READ to see what becomes of a subject."""
    kind, _, name = subject.partition(":")
    return resource_of(f"{STREAMS}{name}" if kind in ("txn", "rates") else subject)
