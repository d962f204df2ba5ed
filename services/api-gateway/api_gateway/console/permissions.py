"""The permissions that calls of /sluice/v1 need."""

from collections.abc import Mapping

from api_gateway.edge.security.rest_resources import (
    CLUSTER_RESOURCE,
    DEAD_LETTERS_RESOURCE,
    GROUP_RESOURCE,
    ROOT_RESOURCE,
    SCOPE_RESOURCE,
    STREAM_RESOURCE,
    TABLE_RESOURCE,
    WORKFLOWS_RESOURCE,
)
from api_gateway.edge.security.rules import READ, READ_UPDATE, Rule

_READ_STREAM = Rule(READ, (STREAM_RESOURCE,))
_UPDATE_STREAM = Rule(READ_UPDATE, (STREAM_RESOURCE,))

_OWN = "/sluice/v1"
_OWN_SCOPE = "/sluice/v1/scopes/{scope}"
_OWN_STREAM = "/sluice/v1/scopes/{scope}/streams/{stream}"
_TXN = "/sluice/v1/scopes/{scope}/streams/{stream}/transactions"
_OWN_GROUP = "/sluice/v1/scopes/{scope}/readergroups/{group}"
_OWN_TABLE = "/sluice/v1/scopes/{scope}/tables/{table}"
_LETTER = "/sluice/v1/dead-letters/{partition}/{offset}"

RULES: Mapping[str, Rule | None] = {
    f"GET {_OWN}/about": Rule(),
    f"GET {_OWN}/me": Rule(),
    f"POST {_OWN}/session": Rule(),
    f"DELETE {_OWN}/session": None,
    # Of what it names, too, a caller sees what it may READ.
    f"GET {_OWN}/events": Rule(entries="change"),
    f"GET {_OWN}/overview": Rule(READ, (ROOT_RESOURCE,)),
    f"GET {_OWN}/partitions": Rule(READ, (CLUSTER_RESOURCE,)),
    f"GET {_OWN}/scopes": Rule(READ, (ROOT_RESOURCE,), entries="scope"),
    f"GET {_OWN_SCOPE}": Rule(READ, (SCOPE_RESOURCE,)),
    f"PUT {_OWN_SCOPE}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"DELETE {_OWN_SCOPE}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"GET {_OWN_SCOPE}/streams": Rule(READ, (SCOPE_RESOURCE,), entries="stream"),
    f"GET {_OWN}/streams": Rule(READ, (ROOT_RESOURCE,), entries="stream"),
    f"GET {_OWN}/search": Rule(READ, (ROOT_RESOURCE,), entries="resource"),
    f"GET {_OWN_STREAM}": _READ_STREAM,
    # Creates or updates, and which of the two says whether it is there.
    f"PUT {_OWN_STREAM}": Rule(READ_UPDATE, (SCOPE_RESOURCE, STREAM_RESOURCE)),
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
    f"GET {_OWN}/decisions": Rule(READ, (ROOT_RESOURCE,), entries="stream"),
    f"GET {_OWN_STREAM}/statistics": _READ_STREAM,
    f"GET {_OWN}/transactions": Rule(READ, (ROOT_RESOURCE,), entries="stream"),
    f"GET {_TXN}/summary": _READ_STREAM,
    f"GET {_OWN_STREAM}/commits": _READ_STREAM,
    f"GET {_OWN_STREAM}/history": _READ_STREAM,
    f"GET {_TXN}": _READ_STREAM,
    f"POST {_TXN}": _UPDATE_STREAM,
    f"GET {_TXN}/{{txn}}": _READ_STREAM,
    f"POST {_TXN}/{{txn}}/commit": _UPDATE_STREAM,
    f"POST {_TXN}/{{txn}}/abort": _UPDATE_STREAM,
    f"POST {_TXN}/{{txn}}/ping": _UPDATE_STREAM,
    f"GET {_OWN_SCOPE}/readergroups": Rule(READ, (SCOPE_RESOURCE,), entries="reader group"),
    f"GET {_OWN_GROUP}": Rule(READ, (GROUP_RESOURCE,)),
    f"GET {_OWN_GROUP}/readers": Rule(READ, (GROUP_RESOURCE,)),
    f"PUT {_OWN_GROUP}": Rule(READ_UPDATE, (SCOPE_RESOURCE, GROUP_RESOURCE)),
    f"DELETE {_OWN_GROUP}": Rule(READ_UPDATE, (GROUP_RESOURCE,)),
    f"GET {_OWN_SCOPE}/tables": Rule(READ, (SCOPE_RESOURCE,), entries="table"),
    f"GET {_OWN_TABLE}": Rule(READ, (TABLE_RESOURCE,)),
    f"PUT {_OWN_TABLE}": Rule(READ_UPDATE, (SCOPE_RESOURCE, TABLE_RESOURCE)),
    f"DELETE {_OWN_TABLE}": Rule(READ_UPDATE, (TABLE_RESOURCE,)),
    f"GET {_OWN}/workflows": Rule(READ, (WORKFLOWS_RESOURCE,)),
    f"POST {_OWN}/workflows/retry-each": Rule(READ_UPDATE, (WORKFLOWS_RESOURCE,)),
    f"POST {_OWN}/workflows/retry": Rule(READ_UPDATE, (WORKFLOWS_RESOURCE,)),
    f"POST {_OWN}/workflows/cancel": Rule(READ_UPDATE, (WORKFLOWS_RESOURCE,)),
    f"GET {_OWN}/containers": Rule(READ, (CLUSTER_RESOURCE,)),
    f"GET {_OWN}/members": Rule(READ, (CLUSTER_RESOURCE,)),
    f"GET {_OWN}/demonstration": Rule(READ, (ROOT_RESOURCE,)),
    f"POST {_OWN}/demonstration": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"DELETE {_OWN}/demonstration": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"GET {_OWN}/containers/history": Rule(READ, (CLUSTER_RESOURCE,)),
    f"GET {_OWN}/members/history": Rule(READ, (CLUSTER_RESOURCE,)),
    f"GET {_OWN}/journal": Rule(READ, (ROOT_RESOURCE,), entries="event"),
    # Who may READ what a request is about may see what became of it: that is known once it is found.
    f"GET {_OWN}/requests/{{id}}": Rule(entries="step"),
    f"GET {_OWN}/dead-letters": Rule(READ, (DEAD_LETTERS_RESOURCE,)),
    f"GET {_LETTER}": Rule(READ, (DEAD_LETTERS_RESOURCE,)),
    f"POST {_LETTER}/replay": Rule(READ_UPDATE, (DEAD_LETTERS_RESOURCE,)),
    f"POST {_LETTER}/drop": Rule(READ_UPDATE, (DEAD_LETTERS_RESOURCE,)),
}
"""By method and path; None: for everyone, whatever credentials are sent."""
