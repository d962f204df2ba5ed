"""The permissions that HTTP calls need, by method and path: Pravega's interface as its controller has it, and ours.

What is about no scope has resources of its own, in the same form. `prn::*` and `prn::/.*` are about them, too;
`prn::/` and `prn::/scope:*` are not. A request is here the names in the path. Pure functions.
"""

from collections.abc import Iterable, Mapping

from api_gateway.edge.security.rules import READ, READ_UPDATE, Resource, Rule
from sluice.security.resources import (
    ROOT,
    reader_group_resource,
    scope_resource,
    stream_resource,
    table_resource,
)

Names = Mapping[str, str]
"""The names in a path: `scope`, `stream`, `group`, `table`."""

CLUSTER = "prn::/sluice:cluster"
WORKFLOWS = "prn::/sluice:workflows"
DEAD_LETTERS = "prn::/sluice:dead-letters"

_ALIASES = {"scopeName": "scope", "streamName": "stream", "readerGroupName": "group"}


def names_in(parameters: Names) -> Names:
    """What a path names, by our words: Pravega's paths have others."""
    return {_ALIASES.get(key, key): name for key, name in parameters.items()}


_ROOT = Resource("root", lambda _names: ROOT)
_SCOPE = Resource("scope", lambda names: scope_resource(names["scope"]))
_STREAM = Resource("stream", lambda names: stream_resource(names["scope"], names["stream"]))
_GROUP = Resource("reader group", lambda names: reader_group_resource(names["scope"], names["group"]))
_TABLE = Resource("table", lambda names: table_resource(names["scope"], names["table"]))
_CLUSTER = Resource(f"`{CLUSTER}`", lambda _names: CLUSTER)
_WORKFLOWS = Resource(f"`{WORKFLOWS}`", lambda _names: WORKFLOWS)
_DEAD_LETTERS = Resource(f"`{DEAD_LETTERS}`", lambda _names: DEAD_LETTERS)

_READ_STREAM = Rule(READ, (_STREAM,))
_UPDATE_STREAM = Rule(READ_UPDATE, (_STREAM,))

_V1 = "/v1/scopes"
_V1_SCOPE = "/v1/scopes/{scopeName}"
_V1_STREAM = "/v1/scopes/{scopeName}/streams/{streamName}"
_V1_GROUP = "/v1/scopes/{scopeName}/readergroups/{readerGroupName}"
_OWN = "/sluice/v1"
_OWN_SCOPE = "/sluice/v1/scopes/{scope}"
_OWN_STREAM = "/sluice/v1/scopes/{scope}/streams/{stream}"
_TXN = "/sluice/v1/scopes/{scope}/streams/{stream}/transactions"
_OWN_GROUP = "/sluice/v1/scopes/{scope}/readergroups/{group}"
_OWN_TABLE = "/sluice/v1/scopes/{scope}/tables/{table}"
_LETTER = "/sluice/v1/dead-letters/{partition}/{offset}"

PRAVEGA: Mapping[str, Rule | None] = {
    f"GET {_V1}": Rule(READ, (_ROOT,), entries="scope"),
    f"POST {_V1}": Rule(READ_UPDATE, (_ROOT,)),
    f"GET {_V1_SCOPE}": Rule(READ, (_SCOPE,)),
    f"DELETE {_V1_SCOPE}": Rule(READ_UPDATE, (_ROOT,)),
    f"GET {_V1_SCOPE}/streams": Rule(READ, (_SCOPE,), entries="stream"),
    f"POST {_V1_SCOPE}/streams": Rule(READ_UPDATE, (_SCOPE,)),
    f"GET {_V1_STREAM}": _READ_STREAM,
    f"PUT {_V1_STREAM}": _UPDATE_STREAM,
    f"DELETE {_V1_STREAM}": _UPDATE_STREAM,
    f"PUT {_V1_STREAM}/state": _UPDATE_STREAM,
    f"GET {_V1_STREAM}/scaling-events": _READ_STREAM,
    f"GET {_V1_SCOPE}/readergroups": Rule(READ, (_SCOPE,)),
    f"GET {_V1_GROUP}": Rule(READ, (_GROUP,)),
    f"DELETE {_V1_GROUP}": Rule(READ_UPDATE, (_GROUP,)),
    "GET /v1/health/details": Rule(READ_UPDATE, (_ROOT,)),
    "GET /v1/health/details/{id}": Rule(READ_UPDATE, (_ROOT,)),
    **dict.fromkeys(
        (
            "GET /v1/health",
            "GET /v1/health/{id}",
            "GET /v1/health/readiness",
            "GET /v1/health/readiness/{id}",
            "GET /v1/health/liveness",
            "GET /v1/health/liveness/{id}",
            "GET /v1/health/status",
            "GET /v1/health/status/{id}",
            "GET /ping",
            "GET /prometheus",
        )
    ),
}
"""Of Pravega's interface; None: for everyone, whatever credentials are sent."""

SLUICE: Mapping[str, Rule | None] = {
    f"GET {_OWN}/about": Rule(),
    f"GET {_OWN}/me": Rule(),
    f"POST {_OWN}/session": Rule(),
    f"DELETE {_OWN}/session": None,
    # Of what it names, too, a caller sees what it may READ.
    f"GET {_OWN}/events": Rule(entries="change"),
    f"GET {_OWN}/overview": Rule(READ, (_ROOT,)),
    f"GET {_OWN}/partitions": Rule(READ, (_CLUSTER,)),
    f"GET {_OWN}/scopes": Rule(READ, (_ROOT,), entries="scope"),
    f"GET {_OWN_SCOPE}": Rule(READ, (_SCOPE,)),
    f"PUT {_OWN_SCOPE}": Rule(READ_UPDATE, (_ROOT,)),
    f"DELETE {_OWN_SCOPE}": Rule(READ_UPDATE, (_ROOT,)),
    f"GET {_OWN_SCOPE}/streams": Rule(READ, (_SCOPE,), entries="stream"),
    f"GET {_OWN}/streams": Rule(READ, (_ROOT,), entries="stream"),
    f"GET {_OWN}/search": Rule(READ, (_ROOT,), entries="resource"),
    f"GET {_OWN_STREAM}": _READ_STREAM,
    # Creates or updates, and which of the two says whether it is there.
    f"PUT {_OWN_STREAM}": Rule(READ_UPDATE, (_SCOPE, _STREAM)),
    f"DELETE {_OWN_STREAM}": _UPDATE_STREAM,
    f"POST {_OWN_STREAM}/seal": _UPDATE_STREAM,
    f"POST {_OWN_STREAM}/truncate": _UPDATE_STREAM,
    f"POST {_OWN_STREAM}/scale": _UPDATE_STREAM,
    f"GET {_OWN_STREAM}/scales/{{epoch}}": _READ_STREAM,
    f"GET {_OWN_STREAM}/topology": _READ_STREAM,
    f"GET {_OWN_STREAM}/rates": _READ_STREAM,
    f"GET {_OWN_STREAM}/rates/history": _READ_STREAM,
    f"GET {_OWN_STREAM}/segments": _READ_STREAM,
    f"GET {_OWN_STREAM}/segments/{{segment}}/successors": _READ_STREAM,
    f"GET {_OWN_STREAM}/segments/{{segment}}/location": _READ_STREAM,
    f"GET {_OWN_STREAM}/decisions": _READ_STREAM,
    f"POST {_OWN_STREAM}/what-if": _READ_STREAM,
    f"GET {_OWN}/decisions": Rule(READ, (_ROOT,), entries="stream"),
    f"GET {_OWN_STREAM}/statistics": _READ_STREAM,
    f"GET {_OWN}/transactions": Rule(READ, (_ROOT,), entries="stream"),
    f"GET {_TXN}/summary": _READ_STREAM,
    f"GET {_OWN_STREAM}/commits": _READ_STREAM,
    f"GET {_OWN_STREAM}/history": _READ_STREAM,
    f"GET {_TXN}": _READ_STREAM,
    f"POST {_TXN}": _UPDATE_STREAM,
    f"GET {_TXN}/{{txn}}": _READ_STREAM,
    f"POST {_TXN}/{{txn}}/commit": _UPDATE_STREAM,
    f"POST {_TXN}/{{txn}}/abort": _UPDATE_STREAM,
    f"POST {_TXN}/{{txn}}/ping": _UPDATE_STREAM,
    f"GET {_OWN_SCOPE}/readergroups": Rule(READ, (_SCOPE,), entries="reader group"),
    f"GET {_OWN_GROUP}": Rule(READ, (_GROUP,)),
    f"GET {_OWN_GROUP}/readers": Rule(READ, (_GROUP,)),
    f"PUT {_OWN_GROUP}": Rule(READ_UPDATE, (_SCOPE, _GROUP)),
    f"DELETE {_OWN_GROUP}": Rule(READ_UPDATE, (_GROUP,)),
    f"GET {_OWN_SCOPE}/tables": Rule(READ, (_SCOPE,), entries="table"),
    f"GET {_OWN_TABLE}": Rule(READ, (_TABLE,)),
    f"PUT {_OWN_TABLE}": Rule(READ_UPDATE, (_SCOPE, _TABLE)),
    f"DELETE {_OWN_TABLE}": Rule(READ_UPDATE, (_TABLE,)),
    f"GET {_OWN}/workflows": Rule(READ, (_WORKFLOWS,)),
    f"POST {_OWN}/workflows/retry-each": Rule(READ_UPDATE, (_WORKFLOWS,)),
    f"POST {_OWN}/workflows/retry": Rule(READ_UPDATE, (_WORKFLOWS,)),
    f"POST {_OWN}/workflows/cancel": Rule(READ_UPDATE, (_WORKFLOWS,)),
    f"GET {_OWN}/containers": Rule(READ, (_CLUSTER,)),
    f"GET {_OWN}/members": Rule(READ, (_CLUSTER,)),
    f"GET {_OWN}/demonstration": Rule(READ, (_ROOT,)),
    f"POST {_OWN}/demonstration": Rule(READ_UPDATE, (_ROOT,)),
    f"DELETE {_OWN}/demonstration": Rule(READ_UPDATE, (_ROOT,)),
    f"GET {_OWN}/containers/history": Rule(READ, (_CLUSTER,)),
    f"GET {_OWN}/members/history": Rule(READ, (_CLUSTER,)),
    f"GET {_OWN}/journal": Rule(READ, (_ROOT,), entries="event"),
    # Who may READ what a request is about may see what became of it: that is known once it is found.
    f"GET {_OWN}/requests/{{id}}": Rule(entries="step"),
    f"GET {_OWN}/dead-letters": Rule(READ, (_DEAD_LETTERS,)),
    f"GET {_LETTER}": Rule(READ, (_DEAD_LETTERS,)),
    f"POST {_LETTER}/replay": Rule(READ_UPDATE, (_DEAD_LETTERS,)),
    f"POST {_LETTER}/drop": Rule(READ_UPDATE, (_DEAD_LETTERS,)),
}
"""Of our own interface; None as above."""

REST: Mapping[str, Rule | None] = {**PRAVEGA, **SLUICE}


def rule_of(methods: Iterable[str], path: str) -> Rule | None:
    """The rule of a route. Raises KeyError: a route without one is a defect."""
    (method,) = methods
    return REST[f"{method} {path}"]


OPEN_PATHS = (
    "/livez",
    "/readyz",
    "/metrics",
    "/",
    "/openapi.json",
    "/docs",
    "/docs-files",
    "/ui",
    "/ui/{version}/{file:path}",
)
"""What is outside both interfaces is for everyone: health and metrics of the process, the description, its page."""
