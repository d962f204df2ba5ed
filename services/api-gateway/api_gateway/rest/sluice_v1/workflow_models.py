"""What is shown of running workflows."""

from typing import Annotated

from pydantic import Field, StringConstraints

from api_gateway.rest.sluice_v1.base import Body, Model
from sluice.domain.workflow import Workflow

Aggregate = Annotated[
    str,
    StringConstraints(
        pattern=r"^(scope:[^/]+|(stream|group|table|commits):[^/]+/[^/]+|(txn|prepared):[^/]+/[^/]+/[0-9a-f-]{36})$"
    ),
]


class RunningWorkflow(Model):
    """A long operation that is under way, and what keeps it."""

    id: str = Field(
        description="Distinguishes it from those before and after it; `cancel` takes it.",
        examples=["scale-stream-1767603628000"],
    )
    kind: str = Field(examples=["scale-stream"])
    step: str = Field(description="The step that is being tried again, or waits for others; empty before that.")
    since: int = Field(description="When it began, epoch ms.")
    attempts: int = Field(description="How often the step was tried in vain, as far as noted.")
    last_error: str = Field(description="Why the last attempt failed, or what the step waits for; empty if neither.")
    retry_requests: int = Field(description="How often an operator requested another attempt.")
    cancelled: bool = Field(description="Whether an operator requested its end.")


class WorkflowItem(RunningWorkflow):
    """A workflow in a list."""

    aggregate: str = Field(description="What it changes.", examples=["stream:demo/greetings"])
    can_cancel: bool = Field(description="Whether it can still be cancelled.")


class WorkflowList(Model):
    """A page of running workflows, by aggregate."""

    items: list[WorkflowItem]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


class AggregateBody(Body):
    """Which workflow is meant."""

    aggregate: Aggregate = Field(
        description=(
            "What it changes: scope:S, stream:S/N, group:S/N, table:S/N, commits:S/N, txn:S/N/ID or prepared:S/N/ID."
        ),
        examples=["stream:demo/greetings"],
    )


class CancelBody(AggregateBody):
    """Which workflow is meant, where one may follow another."""

    workflow: str = Field(
        default="",
        max_length=1000,
        description="Its `id`; left out: the one that is under way now. If another one is, nothing is cancelled.",
        examples=["scale-stream-1767603628000"],
    )


def running_workflow(workflow: Workflow) -> RunningWorkflow:
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


def workflow_model(workflow: Workflow | None) -> RunningWorkflow | None:
    return running_workflow(workflow) if workflow is not None else None
