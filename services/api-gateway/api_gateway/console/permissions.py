"""The permissions that calls of /sluice/v1 need: READ or READ_UPDATE on what the path names, but for some."""

from collections.abc import Mapping

from api_gateway.edge.security.rest_resources import (
    CLUSTER_RESOURCE,
    DEAD_LETTERS_RESOURCE,
    GROUP_RESOURCE,
    MAPPED_STREAM_RESOURCE,
    ROOT_RESOURCE,
    SCOPE_RESOURCE,
    TABLE_RESOURCE,
    WORKFLOWS_RESOURCE,
)
from api_gateway.edge.security.rules import READ, READ_UPDATE, Resource, Rule

PREFIX = "/sluice/v1"

_NAMED: Mapping[str, Resource] = {
    "{stream}": MAPPED_STREAM_RESOURCE,
    "{group}": GROUP_RESOURCE,
    "{table}": TABLE_RESOURCE,
    "{scope}": SCOPE_RESOURCE,
    "/partitions": CLUSTER_RESOURCE,
    "/containers": CLUSTER_RESOURCE,
    "/members": CLUSTER_RESOURCE,
    "/workflows": WORKFLOWS_RESOURCE,
    "/dead-letters": DEAD_LETTERS_RESOURCE,
    "": ROOT_RESOURCE,
}
"""What a path is about, by what stands in it: the first of these that does."""

_ALL_STREAMS = Rule(READ, (ROOT_RESOURCE,), entries="stream, mapped")

_OTHERS: Mapping[str, Rule | None] = {
    "GET /about": Rule(),
    "GET /me": Rule(),
    "POST /session": Rule(),
    "DELETE /session": None,
    "GET /scopes": Rule(READ, (ROOT_RESOURCE,), entries="scope"),
    "GET /streams": _ALL_STREAMS,
    "GET /streams/loads": _ALL_STREAMS,
    "GET /decisions": _ALL_STREAMS,
    "GET /transactions": _ALL_STREAMS,
    "GET /search": Rule(READ, (ROOT_RESOURCE,), entries="resource"),
    "GET /requests": Rule(READ, (ROOT_RESOURCE,), entries="request"),
    "GET /journal": Rule(READ, (ROOT_RESOURCE,), entries="event"),
    "GET /scopes/{scope}/streams": Rule(READ, (SCOPE_RESOURCE,), entries="stream, mapped"),
    "GET /scopes/{scope}/readergroups": Rule(READ, (SCOPE_RESOURCE,), entries="reader group"),
    "GET /scopes/{scope}/tables": Rule(READ, (SCOPE_RESOURCE,), entries="table"),
    # Of what it names, too, a caller sees what it may READ.
    "GET /events": Rule(entries="change"),
    # Who may READ what a request is about may see what became of it: that is known once it is found.
    "GET /requests/{id}": Rule(entries="step"),
    "PUT /scopes/{scope}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    "DELETE /scopes/{scope}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    # Creates or updates, and which of the two says whether it is there.
    "PUT /scopes/{scope}/streams/{stream}": Rule(READ_UPDATE, (SCOPE_RESOURCE, MAPPED_STREAM_RESOURCE)),
    "PUT /scopes/{scope}/readergroups/{group}": Rule(READ_UPDATE, (SCOPE_RESOURCE, GROUP_RESOURCE)),
    "PUT /scopes/{scope}/tables/{table}": Rule(READ_UPDATE, (SCOPE_RESOURCE, TABLE_RESOURCE)),
    "POST /scopes/{scope}/streams/{stream}/what-if": Rule(READ, (MAPPED_STREAM_RESOURCE,)),
}
"""Calls that need something else."""


def rule_of(method: str, path: str) -> Rule | None:
    """What the call of a route needs; None: for everyone, whatever credentials are sent."""
    call = f"{method} {path.removeprefix(PREFIX)}"
    if call in _OTHERS:
        return _OTHERS[call]
    resource = next(resource for part, resource in _NAMED.items() if part in path)
    return Rule(READ if method == "GET" else READ_UPDATE, (resource,))
