"""The decisions on a scope."""

from typing import Any

from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, nothing_to_delete, refusal, refuse
from sluice.domain.errors import ViewBehindError
from sluice.domain.listings import in_words
from sluice.domain.names import is_scope_name
from sluice.domain.scope import events as ev
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.scope.state import Scope, find_scope
from sluice.domain.status import Status
from sluice.domain.workflow import idle, last_reply


def _idle_scope(reader: Reader, name: str, creation_id: str = "") -> Scope | None:
    """The scope to change; with a creation id only that creation of it. Raises BusyError."""
    return idle(f"scope {name}", find_scope(reader, name), creation_id)


def decide_create_scope(reader: Reader, command: CreateScope, context: Context) -> Decision:
    if not is_scope_name(command.scope):
        return refuse(Status.INVALID_SCOPE_NAME)
    if _idle_scope(reader, command.scope) is not None:
        return refuse(Status.SCOPE_EXISTS)
    created = ev.ScopeCreated(scope=command.scope, creation_id=context.request or "", at=context.now)
    return Decision((created,), Reply(Status.SUCCESS))


def decide_delete_scope(reader: Reader, command: DeleteScope, context: Context) -> Decision:
    """A scope with something in it is refused without a workflow. Raises ViewBehindError, to look at all partitions."""
    if _idle_scope(reader, command.scope, command.creation_id) is None:
        return nothing_to_delete(command.creation_id, refuse(Status.SCOPE_NOT_FOUND))
    if not context.caught_up:
        raise ViewBehindError([view.partition_key for view in reader.everywhere()])
    if held := in_words(reader.everywhere(), command.scope):
        return refuse(Status.SCOPE_NOT_EMPTY, held)
    return _start(command.scope, context, recursive=False)


def decide_delete_recursive(reader: Reader, command: DeleteScopeRecursive, context: Context) -> Decision:
    """Nothing to delete is success (5.1)."""
    if _idle_scope(reader, command.scope, command.creation_id) is None:
        return Decision(reply=Reply(Status.SUCCESS))
    return _start(command.scope, context, recursive=True)


def _start(scope: str, context: Context, *, recursive: bool) -> Decision:
    started = ev.ScopeDeletionStarted(scope=scope, recursive=recursive, request=context.request, at=context.now)
    return Decision((started,))


def cancel(_reader: Reader, _context: Context, state: Any) -> Decision | None:
    """End the search whether the scope is empty by keeping it; None if not of a scope."""
    if not isinstance(state, Scope):
        return None
    reply = refusal(Status.FAILURE, "cancelled") if last_reply(state) else None
    return Decision((ev.ScopeKept(scope=state.name),), reply)


DECIDE: dict[type, Decide] = {
    CreateScope: decide_create_scope,
    DeleteScope: decide_delete_scope,
    DeleteScopeRecursive: decide_delete_recursive,
}
