"""Workflows: the long operations that change one aggregate at a time, begun and ended by events.

What an aggregate's workflow is doing, since when, and what keeps it, stands in the aggregate's state, so that whoever
owns it next goes on and people can see it.
"""

from enum import Enum
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.decision import Decision, Reader


class WorkflowKind(Enum):
    CREATE_STREAM = "create-stream"
    UPDATE_STREAM = "update-stream"
    SCALE_STREAM = "scale-stream"
    TRUNCATE_STREAM = "truncate-stream"
    SEAL_STREAM = "seal-stream"
    DELETE_STREAM = "delete-stream"
    CREATE_GROUP = "create-reader-group"
    UPDATE_GROUP = "update-reader-group"
    DELETE_GROUP = "delete-reader-group"
    CREATE_TABLE = "create-table"
    DELETE_TABLE = "delete-table"
    DELETE_SCOPE = "delete-scope"


class Workflow(msgspec.Struct):
    """`since` in epoch ms; `request` is who is waiting for the end, if anybody."""

    kind: WorkflowKind
    request: str | None
    since: int
    step: str = ""
    attempts: int = 0
    last_error: str = ""


def running(state: Any) -> Workflow | None:
    """The workflow that is changing an aggregate of this state."""
    workflow = getattr(state, "workflow", None)
    return workflow if isinstance(workflow, Workflow) else None


def decide_step_failed(
    reader: Reader, aggregate: str, kind: WorkflowKind, step: str, attempts: int, error: str
) -> Decision:
    """Note for people that a step is being tried again."""
    workflow = running(reader.get(aggregate))
    if workflow is None or workflow.kind is not kind:
        return Decision()
    return Decision((ev.WorkflowStepFailed(aggregate=aggregate, step=step, attempts=attempts, error=error),))


def evolve_step_failed(state: Any, event: ev.WorkflowStepFailed) -> Any:
    workflow = running(state)
    if workflow is not None:
        workflow.step, workflow.attempts, workflow.last_error = event.step, event.attempts, event.error
    return state
