"""What is shown of running workflows."""

from typing import Annotated

from pydantic import Field, StringConstraints

from api_gateway.console.rest.actions import Allowed
from api_gateway.console.rest.base import Body, Model
from sluice.domain.workflow import Workflow
from sluice.insight.progress import Progress
from sluice.validation import form

MAX_RETRIED = 200

Aggregate = Annotated[
    str,
    StringConstraints(
        pattern=form(
            r"^(scope:[^/]+|(stream|group|table|commits):[^/]+/[^/]+|(txn|prepared):[^/]+/[^/]+/[0-9a-f-]{36})$",
            "a kind and a name: scope:S, stream:S/N, group:S/N, table:S/N, commits:S/N, txn:S/N/ID or prepared:S/N/ID",
        )
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


class Wait(Model):
    """What keeps a workflow: other work, a segment container, or what the last attempt says."""

    aggregate: str | None = Field(default=None, description="What the other work changes.", examples=["commits:demo/a"])
    kind: str | None = Field(default=None, description="Of what kind that is.", examples=["commit-transactions"])
    container: int | None = Field(default=None, description="The container that does not answer, or has no store.")
    store: str | None = Field(default=None, description="host:port of the segment store that runs it, if any does.")
    why: str = Field(description="In words.")
    then: "Wait | None" = Field(default=None, description="What keeps the other work in turn, if anything does.")


class WorkflowItem(RunningWorkflow):
    """A workflow in a list; of one that is queued `id` is empty, and `since` is when that was last recorded."""

    aggregate: str = Field(description="What it changes.", examples=["stream:demo/greetings"])
    state: Progress = Field(
        description="failing: its step is tried again; waiting: for other work; running; queued: it has not begun."
    )
    can_cancel: bool = Field(description="Whether it can still be cancelled.")
    cancel_why_not: str | None = Field(default=None, description="Why it cannot be cancelled.")
    next_attempt_at: int | None = Field(
        default=None, description="When it is tried again at the latest, epoch ms; left out unless it is failing."
    )
    waits_for: Wait | None = Field(default=None, description="What keeps it, as far as that is known.")
    allowed: list[Allowed] = Field(description="What the caller may do with it: retry and cancel.")


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


class AggregatesBody(Body):
    """Which workflows are meant."""

    aggregates: list[Aggregate] = Field(
        min_length=1,
        max_length=MAX_RETRIED,
        fail_fast=True,
        description="What they change.",
        examples=[["stream:demo/greetings"]],
    )


class RetriedItem(Model):
    """What became of the request to retry one workflow."""

    aggregate: str
    status: str = Field(description="SUCCESS; NOT_RUNNING; FAILURE if it could not be requested, or was not answered.")
    detail: str | None = Field(default=None, description="Why it is not SUCCESS.")
    request: str = Field(description="The id of the request in topics and journal.")


class RetriedList(Model):
    """What became of each, in the order of the request."""

    items: list[RetriedItem]


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
