"""What permissions are about: resources by their Pravega names, and the three levels of permission on one."""

from enum import IntEnum

ROOT = "prn::/"
"""The resource of all scopes: who lists, creates and deletes scopes needs it."""

_SCOPE = "prn::/scope:"
_INTERNAL = {"_RG": "reader-group", "_MARK": "stream"}


class Permission(IntEnum):
    """A higher level includes the lower ones."""

    NONE = 0
    READ = 1
    READ_UPDATE = 2


def scope_resource(scope: str) -> str:
    """A scope, and what is in it as a collection."""
    return f"{_SCOPE}{scope}"


def scope_in(resource: str) -> str:
    """The scope that a resource is, or is in; empty for what is in no scope."""
    return resource.removeprefix(_SCOPE).partition("/")[0] if resource.startswith(_SCOPE) else ""


def stream_resource(scope: str, stream: str) -> str:
    return f"{scope_resource(scope)}/stream:{stream}"


def reader_group_resource(scope: str, group: str) -> str:
    return f"{scope_resource(scope)}/reader-group:{group}"


def table_resource(scope: str, table: str) -> str:
    return f"{scope_resource(scope)}/key-value-table:{table}"


def mapped_resource(scope: str, stream: str) -> str:
    """The resource whose permissions count for a stream that Pravega keeps for something else.

    The stream of a reader group's state is the group, a stream of watermarks the stream they are of; any other is
    itself. The prefix is removed wherever it occurs, as Pravega does.
    """
    for prefix, kind in _INTERNAL.items():
        if stream.startswith(prefix):
            return f"{scope_resource(scope)}/{kind}:{stream.replace(prefix, '')}"
    return stream_resource(scope, stream)
