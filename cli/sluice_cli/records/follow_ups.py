"""Which commands the services send while they carry out another one.

A command that is passed on keeps the id of its request. One that a workflow asks for gets an id of its own
(`sluice.workflows.waiting`), so it is known by what it asks, by who asks it, and by when. Pure.
"""

from sluice.domain import commands as c
from sluice.domain.commands import AbortReason, Command, NameKind
from sluice.messaging.requests import Request

_GATEWAY = "api-gateway"
_DELETIONS = c.SealStream | c.DeleteStream | c.DeleteReaderGroup | c.DeleteTable


def has_follow_ups(command: Command) -> bool:
    """Whether a workflow of this command asks anything of other keys."""
    return isinstance(
        command,
        c.Create
        | c.CreateReserved
        | c.DeleteStream
        | c.DeleteReaderGroup
        | c.DeleteTable
        | c.DeleteScopeRecursive
        | c.SealStream
        | c.UpdateReaderGroup,
    )


def is_follow_up(of: Command, request: Request) -> bool:
    """Whether the request is one that the workflow of `of` asks for."""
    if request.by.partition("/")[0] == _GATEWAY:
        return False
    asked = request.command
    match of:
        case c.CreateReserved():
            return is_follow_up(of.create, request)
        case c.CreateStream() | c.CreateReaderGroup() | c.CreateTable():
            return _releases(asked, of.kind, of.scope, of.name) or _subscribes(asked, of.scope, of.name)
        case c.DeleteStream():
            return _releases(asked, NameKind.STREAM, of.scope, of.stream)
        case c.DeleteTable():
            return _releases(asked, NameKind.TABLE, of.scope, of.table)
        case c.DeleteReaderGroup() | c.UpdateReaderGroup():
            return _releases(asked, NameKind.READER_GROUP, of.scope, of.group) or _subscribes(asked, of.scope, of.group)
        case c.SealStream():
            return isinstance(asked, c.AbortTransaction) and (asked.scope, asked.stream, asked.reason) == (
                of.scope,
                of.stream,
                AbortReason.SEAL,
            )
        case c.DeleteScopeRecursive():
            return isinstance(asked, _DELETIONS) and asked.scope == of.scope
        case _:
            return False


def _releases(asked: Command, kind: NameKind, scope: str, name: str) -> bool:
    return isinstance(asked, c.ReleaseName) and (asked.kind, asked.scope, asked.name) == (kind, scope, name)


def _subscribes(asked: Command, scope: str, group: str) -> bool:
    return isinstance(asked, c.AddSubscriber | c.RemoveSubscriber) and asked.subscriber == f"{scope}/{group}"
