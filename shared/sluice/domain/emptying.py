"""How a scope is emptied: what in it has to go, and what to ask each thing next.

A thing at work is asked nothing: it will be when that is done. So nothing waits in the queue of a thing that is stuck.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sluice.domain.commands import Command, DeleteReaderGroup, DeleteStream, DeleteTable, NameKind, SealStream
from sluice.domain.group import ReaderGroup
from sluice.domain.names import group_stream, key_of, mark_stream
from sluice.domain.scope import Scope
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table import Table
from sluice.domain.workflow import running


class Thing(msgspec.Struct, frozen=True):
    """What a name of a scope stands for."""

    kind: NameKind
    scope: str
    name: str

    @property
    def aggregate(self) -> str:
        return self.kind.aggregate(self.scope, self.name)

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


def things(scope: Scope) -> Iterator[Thing]:
    """What is in the scope, but for the streams that go along with something else."""
    groups, tables, streams = (scope.names[kind] for kind in (NameKind.READER_GROUP, NameKind.TABLE, NameKind.STREAM))
    along = {stream for group in groups for stream in (group_stream(group), mark_stream(group_stream(group)))}
    along |= {mark_stream(stream) for stream in streams}
    for group in groups:
        yield Thing(NameKind.READER_GROUP, scope.name, group)
    for table in tables:
        yield Thing(NameKind.TABLE, scope.name, table)
    for stream in streams:
        if stream not in along:
            yield Thing(NameKind.STREAM, scope.name, stream)


def is_alive(state: Any) -> bool:
    """Whether there is a stream, reader group or table: a name may be held by one that is yet to come."""
    return isinstance(state, Stream | ReaderGroup | Table)


def next_command(state: Any) -> Command | None:
    """What brings a thing of this state closer to its end; None while it is at work, or not there."""
    if running(state) is not None:
        return None
    match state:
        case Stream():
            is_sealed = state.state is StreamState.SEALED
            return (DeleteStream if is_sealed else SealStream)(state.scope, state.name)
        case ReaderGroup():
            return DeleteReaderGroup(state.scope, state.name)
        case Table():
            return DeleteTable(state.scope, state.name)
        case _:
            return None
