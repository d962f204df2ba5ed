"""What is shown of workflows that are under way or queued."""

from typing import Any, Optional

from sluice.domain.stream.state import Stream
from sluice.domain.workflow import Workflow, running
from sluice.insight.progress import Progress
from sluice.insight.shown import Allowed, Shown, text
from sluice.insight.waits import queued_kind


class RunningWorkflow(Shown):
    """A long operation that is under way, and what keeps it."""

    id: str = text(
        "Distinguishes it from those before and after it; `cancel` takes it.", examples=["scale-stream-1767603628000"]
    )
    kind: str = text(examples=["scale-stream"])
    step: str = text("The step that is being tried again, or waits for others; empty before that.")
    since: int = text("When it began, epoch ms.")
    attempts: int = text("How often the step was tried in vain, as far as noted.")
    last_error: str = text("Why the last attempt failed, or what the step waits for; empty if neither.")
    retry_requests: int = text("How often an operator requested another attempt.")
    cancelled: bool = text("Whether an operator requested its end.")


class Wait(Shown):
    """What keeps a workflow: other work, a segment container, or what the last attempt says."""

    aggregate: str | None = text("What the other work changes.", default=None, examples=["commits:demo/a"])
    kind: str | None = text("Of what kind that is.", default=None, examples=["commit-transactions"])
    container: int | None = text("The container that does not answer, or has no store.", default=None)
    store: str | None = text("host:port of the segment store that runs it, if any does.", default=None)
    why: str = text("In words.")
    then: Optional["Wait"] = text("What keeps the other work in turn, if anything does.", default=None)


class WorkflowItem(RunningWorkflow):
    """A workflow in a list; of one that is queued `id` is empty, and `since` is when that was last recorded."""

    aggregate: str = text("What it changes.", examples=["stream:demo/greetings"])
    state: Progress = text(
        "failing: its step is tried again; waiting: for other work; running; queued: it has not begun."
    )
    can_cancel: bool = text("Whether it can still be cancelled.")
    cancel_why_not: str | None = text("Why it cannot be cancelled.", default=None)
    next_attempt_at: int | None = text(
        "When it is tried again at the latest, epoch ms; left out unless it is failing.", default=None
    )
    waits_for: Wait | None = text("What keeps it, as far as that is known.", default=None)
    allowed: list[Allowed] = text("What the caller may do with it: retry and cancel.")


def workflow_shown(workflow: Workflow | None) -> RunningWorkflow | None:
    if workflow is None:
        return None
    return RunningWorkflow(
        id=workflow.id,
        kind=workflow.kind.value,
        step=workflow.step,
        since=workflow.since,
        attempts=workflow.attempts,
        last_error=workflow.last_error,
        retry_requests=workflow.retry_requests,
        cancelled=workflow.cancelled,
    )


def work_shown(state: Any) -> RunningWorkflow:
    """The workflow that changes an aggregate of this state, or is queued to."""
    shown = workflow_shown(running(state))
    if shown is None:
        assert isinstance(state, Stream) and state.waiting is not None
        return RunningWorkflow(
            id="",
            kind=queued_kind(state.waiting.kind),
            step="",
            since=state.waiting.at,
            attempts=0,
            last_error="",
            retry_requests=0,
            cancelled=False,
        )
    return shown
