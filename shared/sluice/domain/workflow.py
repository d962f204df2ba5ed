"""Workflows: the long operations that change one aggregate at a time, begun and ended by events.

What an aggregate's workflow is doing, since when, and what it waits for, stands in the aggregate's state, so that the
next owner of the partition goes on and operators can see it.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import msgspec

from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, refuse
from sluice.domain.errors import BusyError
from sluice.domain.names import key_of
from sluice.domain.status import Status

S = TypeVar("S")


class WorkflowStepFailed(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """A step failed and will be tried again, or waits for others, without attempts; for people, it decides nothing."""

    aggregate: str
    step: str
    attempts: int
    error: str


class WorkflowRetryRequested(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """An operator requested another attempt at once."""

    aggregate: str


class WorkflowCancelled(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """The partition's owner ends the workflow before its next step, undoing what it has done."""

    aggregate: str


class RetryWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Have the aggregate's workflow try its step again now instead of waiting any longer."""

    aggregate: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


class CancelWorkflow(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """End the aggregate's workflow as if it had never begun, if it has not passed its point of no return.

    `workflow` is the id of the one that is meant; a later one of the aggregate is left alone.
    """

    aggregate: str
    workflow: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)


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
    OPEN_TRANSACTION = "open-transaction"
    DELETE_SCOPE_RECURSIVE = "delete-scope-recursive"
    COMMIT_TRANSACTIONS = "commit-transactions"
    ROLL_TRANSACTIONS = "roll-transactions"
    ABORT_TRANSACTION = "abort-transaction"
    DISCARD_TRANSACTIONS = "discard-transactions"
    RESTORE_STREAM = "restore-stream"


class Workflow(msgspec.Struct, array_like=True):
    """`since` in epoch ms; `request` is the one that waits for the end, if any, to be refused if there is a `refusal`.

    `retry_requests` counts how often an operator requested another attempt; `cancelled` requests the end.
    """

    kind: WorkflowKind
    request: str | None
    since: int
    step: str = ""
    attempts: int = 0
    last_error: str = ""
    refusal: str = ""
    retry_requests: int = 0
    cancelled: bool = False

    @property
    def id(self) -> str:
        """Which of all the workflows that its aggregate will ever have."""
        # What undoes a creation that failed belongs to the same request, so a request alone does not say which.
        return f"{self.kind.value}-{self.request or self.since}"


NOTHING_RUNS = Reply(Status.NOT_RUNNING, "nothing is under way there")


def running(state: Any) -> Workflow | None:
    """The workflow that is changing an aggregate of this state."""
    workflow = getattr(state, "workflow", None)
    return workflow if isinstance(workflow, Workflow) else None


def undone_creation(state: Any) -> str:
    """The creation id of a resource whose creation is being undone, "" of any other.

    Its deletion takes nothing along that was there before it.
    """
    workflow = running(state)
    return state.creation_id if workflow is not None and workflow.refusal else ""


def running_as(kind: WorkflowKind, state: S | None) -> S | None:
    """The state if a workflow of this kind is changing its aggregate; for what may only end that one."""
    workflow = running(state)
    return state if workflow is not None and workflow.kind is kind else None


def check_idle(name: object, *states: Any) -> None:
    """One workflow at a time changes an aggregate. Raises BusyError, with the resource's name."""
    for state in states:
        workflow = running(state)
        if workflow is not None:
            raise BusyError(f"{name}: {workflow.kind.value} is running")


def idle(name: object, state: S | None, creation_id: str) -> S | None:
    """The state to begin a workflow on; with a creation id only that creation of the resource. Raises BusyError."""
    if state is None or creation_id not in ("", getattr(state, "creation_id", "")):
        return None
    check_idle(name, state)
    return state


def is_under_way(state: Any) -> bool:
    """Whether a workflow is changing an aggregate of this state, or is queued to."""
    return getattr(state, "workflow", None) is not None or getattr(state, "waiting", None) is not None


def last_reply(state: Any, generation: int = 0) -> Reply | None:
    """The answer to the request that the workflow of an aggregate was begun for; some were begun for none."""
    workflow = running(state)
    if workflow is None or workflow.request is None:
        return None
    return Reply(Status.FAILURE, workflow.refusal) if workflow.refusal else Reply(Status.SUCCESS, generation=generation)


def decide_retry(reader: Reader, command: RetryWorkflow, _context: Context) -> Decision:
    if why_not := why_not_retry(reader.get(command.aggregate)):
        return refuse(Status.NOT_RUNNING, why_not)
    return Decision((WorkflowRetryRequested(aggregate=command.aggregate),), Reply(Status.SUCCESS))


def decide_cancel(reader: Reader, command: CancelWorkflow, _context: Context) -> Decision:
    """Only the one meant is cancelled, and only if nothing forbids it."""
    state = reader.get(command.aggregate)
    workflow = running(state)
    if workflow is None:
        return Decision(reply=NOTHING_RUNS)
    if command.workflow != workflow.id:
        return refuse(Status.NOT_RUNNING, f"{workflow.id} is under way there, not {command.workflow}")
    if why_not := why_not_cancel(state):
        return refuse(Status.TOO_LATE, why_not)
    events = () if workflow.cancelled else (WorkflowCancelled(aggregate=command.aggregate),)
    return Decision(events, Reply(Status.SUCCESS))


_CANCELLABLE = (
    WorkflowKind.CREATE_STREAM,
    WorkflowKind.CREATE_GROUP,
    WorkflowKind.CREATE_TABLE,
    WorkflowKind.DELETE_SCOPE,
)


def is_cancelled(state: Any) -> bool:
    """Whether the workflow was cancelled, and is before its point of no return."""
    workflow = running(state)
    return workflow is not None and workflow.cancelled and not why_not_cancel(state)


def why_not_retry(state: Any) -> str:
    """Why no other attempt of the workflow of an aggregate of this state can be requested, in words; empty if it can.

    No request is for the creation of a mark stream or a state stream: the workflow of what it belongs to creates it.
    """
    workflow = running(state)
    if workflow is None:
        return NOTHING_RUNS.reason
    comes_along = workflow.kind is WorkflowKind.CREATE_STREAM and workflow.request is None
    return "it is created along with another resource" if comes_along else ""


def why_not_cancel(state: Any) -> str:
    """Why the workflow of an aggregate of this state cannot be cancelled, in words; empty if it can."""
    workflow, why_not = running(state), why_not_retry(state)
    if workflow is None or why_not:
        return why_not
    if workflow.kind is WorkflowKind.SCALE_STREAM:
        is_unnamed = state.history.count == state.active + 1
        return "" if is_unnamed else "its epoch is named: readers and writers may know the new segments"
    # A restore has the segments of its tables created, for no request: to undo that would delete the tables.
    can_end = workflow.kind in _CANCELLABLE and workflow.request is not None
    return "" if can_end else f"{workflow.kind.value} cannot be taken back once it has begun"


def decide_step_failed(
    reader: Reader, aggregate: str, kind: WorkflowKind, step: str, attempts: int, error: str
) -> Decision:
    """Record for operators that a step is being tried again."""
    workflow = running(reader.get(aggregate))
    if workflow is None or workflow.kind is not kind:
        return Decision()
    return Decision((WorkflowStepFailed(aggregate=aggregate, step=step, attempts=attempts, error=error),))


def evolve_step_failed(state: Any, event: WorkflowStepFailed) -> Any:
    workflow = running(state)
    if workflow is not None:
        workflow.step, workflow.attempts, workflow.last_error = event.step, event.attempts, event.error
    return state


def evolve_retry_requested(state: Any, _event: WorkflowRetryRequested) -> Any:
    workflow = running(state)
    if workflow is not None:
        workflow.retry_requests += 1
    return state


def evolve_cancelled(state: Any, _event: WorkflowCancelled) -> Any:
    workflow = running(state)
    if workflow is not None:
        workflow.cancelled = True
    return state


DECIDE: dict[type, Decide] = {
    RetryWorkflow: decide_retry,
    CancelWorkflow: decide_cancel,
}


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    WorkflowStepFailed: evolve_step_failed,
    WorkflowRetryRequested: evolve_retry_requested,
    WorkflowCancelled: evolve_cancelled,
}
