"""The resources that HTTP calls are about: a request is here the names in the path. Pure functions.

What is about no scope has resources of its own, in the same form. `prn::*` and `prn::/.*` are about them, too;
`prn::/` and `prn::/scope:*` are not.
"""

from collections.abc import Mapping

from api_gateway.edge.security.rules import Resource
from sluice.security.resources import (
    ROOT,
    mapped_resource,
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


ROOT_RESOURCE = Resource("root", lambda _names: ROOT)
SCOPE_RESOURCE = Resource("scope", lambda names: scope_resource(names["scope"]))
STREAM_RESOURCE = Resource("stream", lambda names: stream_resource(names["scope"], names["stream"]))
MAPPED_STREAM_RESOURCE = Resource("stream, mapped", lambda names: mapped_resource(names["scope"], names["stream"]))
GROUP_RESOURCE = Resource("reader group", lambda names: reader_group_resource(names["scope"], names["group"]))
TABLE_RESOURCE = Resource("table", lambda names: table_resource(names["scope"], names["table"]))
CLUSTER_RESOURCE = Resource(f"`{CLUSTER}`", lambda _names: CLUSTER)
WORKFLOWS_RESOURCE = Resource(f"`{WORKFLOWS}`", lambda _names: WORKFLOWS)
DEAD_LETTERS_RESOURCE = Resource(f"`{DEAD_LETTERS}`", lambda _names: DEAD_LETTERS)
