"""The scope aggregate: that it is there, and the deletion that may be under way.

A scope holds no list: what is in it exists under its own key, and `domain.listings` shows it.
Rules: controller-grpc-api 5.1, stream-and-transaction-semantics 1.3.
"""

import msgspec

from sluice.domain.decision import Reader, View
from sluice.domain.names import scope_aggregate
from sluice.domain.workflow import Workflow, WorkflowKind, idle, running_as


class Scope(msgspec.Struct, array_like=True):
    name: str
    creation_id: str
    created_at: int
    workflow: Workflow | None = None


def find_scope(reader: Reader | View, name: str) -> Scope | None:
    state = reader.get(scope_aggregate(name))
    return state if isinstance(state, Scope) else None


def idle_scope(reader: Reader, name: str, creation_id: str = "") -> Scope | None:
    """The scope to change; with a creation id only that creation of it. Raises BusyError."""
    return idle(f"scope {name}", find_scope(reader, name), creation_id)


def is_deleted_plainly(scope: Scope | None) -> bool:
    """Whether it is being found out if the scope goes."""
    return running_as(WorkflowKind.DELETE_SCOPE, scope) is not None


def is_deleted_recursively(scope: Scope | None) -> bool:
    """Whether the scope goes for good, with all that is in it."""
    return running_as(WorkflowKind.DELETE_SCOPE_RECURSIVE, scope) is not None
