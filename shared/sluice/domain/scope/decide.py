"""The decision to create a scope; `domain.scope_deletion` has those on its deletion."""

from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, refuse
from sluice.domain.names import is_scope_name
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.scope.state import idle_scope
from sluice.domain.status import Status


def decide_create_scope(reader: Reader, command: CreateScope, context: Context) -> Decision:
    if not is_scope_name(command.scope):
        return refuse(Status.INVALID_SCOPE_NAME)
    if idle_scope(reader, command.scope) is not None:
        return refuse(Status.SCOPE_EXISTS)
    created = ScopeCreated(scope=command.scope, creation_id=context.request or "", at=context.now)
    return Decision((created,), Reply(Status.SUCCESS))


DECIDE: dict[type, Decide] = {CreateScope: decide_create_scope}
