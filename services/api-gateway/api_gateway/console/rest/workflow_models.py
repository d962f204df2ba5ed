"""Running workflows: pages of them, and what is sent about them."""

from typing import Annotated

from pydantic import Field, StringConstraints

from api_gateway.console.rest.base import Body, Model, Page
from sluice.insight.workflows import WorkflowItem
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


class WorkflowList(Page[WorkflowItem]):
    """A page of running workflows, by aggregate."""


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
