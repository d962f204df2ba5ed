"""The scope aggregate: which names it holds, and which of them are still only reserved.

A stream's name is reserved here before the stream is created under its own key, and released here before the
stream is gone; so a scope is empty exactly if nothing lives or is coming to live in it.
Rules: controller-grpc-api 5.1, stream-and-transaction-semantics 1.3.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.commands import (
    ConfirmStreamName,
    CreateReservedStream,
    CreateScope,
    CreateStream,
    DeleteScope,
    JoinStreamCreation,
    ReleaseStreamName,
)
from sluice.domain.decision import Context, Decision, Reader, Reply, refuse
from sluice.domain.names import is_scope_name, is_stream_name, mark_stream, scope_aggregate


class StreamEntry(msgspec.Struct):
    """A name held by the scope; `pending` is the command to pass on until the stream's key has confirmed it."""

    incarnation: str
    reserved_at: int
    pending: CreateStream | None = None


class Scope(msgspec.Struct):
    name: str
    created_at: int
    streams: dict[str, StreamEntry] = {}

    def pending(self) -> list[CreateReservedStream]:
        """What to pass on to the streams' keys: whoever takes over the scope's partition sends these again."""
        entries = self.streams.values()
        return [_create(e.pending, e.incarnation, e.reserved_at) for e in entries if e.pending is not None]


def decide_create_scope(reader: Reader, command: CreateScope, context: Context) -> Decision:
    if not is_scope_name(command.scope):
        return refuse("INVALID_SCOPE_NAME")
    if _scope(reader, command.scope) is not None:
        return refuse("SCOPE_EXISTS")
    return Decision((ev.ScopeCreated(scope=command.scope, at=context.now),), Reply("SUCCESS"))


def decide_delete_scope(reader: Reader, command: DeleteScope, _context: Context) -> Decision:
    scope = _scope(reader, command.scope)
    if scope is None:
        return refuse("SCOPE_NOT_FOUND")
    if scope.streams:
        return refuse("SCOPE_NOT_EMPTY", f"{len(scope.streams)} streams, {next(iter(scope.streams))} among them")
    return Decision((ev.ScopeDeleted(scope=command.scope),), Reply("SUCCESS"))


def decide_create_stream(reader: Reader, command: CreateStream, context: Context) -> Decision:
    """Reserve the name. The stream's own key answers the request, unless it is refused here."""
    if not is_stream_name(command.stream):
        return refuse("INVALID_STREAM_NAME")
    scope = _scope(reader, command.scope)
    if scope is None:
        return refuse("SCOPE_NOT_FOUND")
    entry = scope.streams.get(command.stream)
    request = context.request or ""
    if entry is not None:
        if entry.incarnation == request:
            pending = (_create(command, request, entry.reserved_at),) if entry.pending else ()
            return Decision(sends=pending)
        join = JoinStreamCreation(scope=command.scope, stream=command.stream, config=command.config)
        return Decision(sends=(join,))
    if command.config.scaling.min_segments < 1:
        return refuse("FAILURE", f"a stream needs at least one segment, not {command.config.scaling.min_segments}")
    reserved = ev.StreamNameReserved(scope=command.scope, command=command, incarnation=request, at=context.now)
    return Decision((reserved,), sends=(_create(command, request, context.now),))


def _create(command: CreateStream, incarnation: str, created_at: int) -> CreateReservedStream:
    return CreateReservedStream(
        scope=command.scope,
        stream=command.stream,
        incarnation=incarnation,
        created_at=created_at,
        config=command.config,
    )


def decide_confirm(reader: Reader, command: ConfirmStreamName, _context: Context) -> Decision:
    scope = _scope(reader, command.scope)
    entry = scope.streams.get(command.stream) if scope else None
    if entry is None or entry.incarnation != command.incarnation or entry.pending is None:
        return Decision()
    return Decision((ev.StreamNameConfirmed(scope=command.scope, stream=command.stream),))


def decide_release(reader: Reader, command: ReleaseStreamName, _context: Context) -> Decision:
    scope = _scope(reader, command.scope)
    if scope is None:
        return Decision()
    names = (command.stream, mark_stream(command.stream))
    held = tuple(n for n in names if n in scope.streams and scope.streams[n].incarnation == command.incarnation)
    return Decision((ev.StreamNameReleased(scope=command.scope, streams=held),)) if held else Decision()


def _scope(reader: Reader, name: str) -> Scope | None:
    state = reader.get(scope_aggregate(name))
    return state if isinstance(state, Scope) else None


def _created(_state: Scope | None, event: ev.ScopeCreated) -> Scope:
    return Scope(name=event.scope, created_at=event.at)


def _deleted(_state: Scope, _event: ev.ScopeDeleted) -> None:
    return None


def _reserved(state: Scope, event: ev.StreamNameReserved) -> Scope:
    name = event.command.stream
    state.streams[name] = StreamEntry(event.incarnation, event.at, event.command)
    state.streams.setdefault(mark_stream(name), StreamEntry(event.incarnation, event.at))
    return state


def _confirmed(state: Scope, event: ev.StreamNameConfirmed) -> Scope:
    state.streams[event.stream].pending = None
    return state


def _released(state: Scope, event: ev.StreamNameReleased) -> Scope:
    for name in event.streams:
        del state.streams[name]
    return state


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    CreateScope: decide_create_scope,
    DeleteScope: decide_delete_scope,
    CreateStream: decide_create_stream,
    ConfirmStreamName: decide_confirm,
    ReleaseStreamName: decide_release,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ScopeCreated: _created,
    ev.ScopeDeleted: _deleted,
    ev.StreamNameReserved: _reserved,
    ev.StreamNameConfirmed: _confirmed,
    ev.StreamNameReleased: _released,
}
