"""Running workflows: list, retry, cancel.

A cancellation names its workflow: it may be delivered again when another one runs there. So it takes one that this
view shows behind the barrier. Without any there is nothing to request.
"""

import heapq
from typing import Annotated

from fastapi import Query, Response

from api_gateway.rest.backend import Served, Submit, as_json
from api_gateway.rest.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.rest.sluice_v1.base import Taken, changed, refusals, router
from api_gateway.rest.sluice_v1.replies import done
from api_gateway.rest.sluice_v1.workflow_models import (
    AggregateBody,
    CancelBody,
    WorkflowItem,
    WorkflowList,
    running_workflow,
)
from sluice.domain.workflow import NOTHING_RUNS, CancelWorkflow, RetryWorkflow, WorkflowKind

routes = router("workflows")


@routes.get("/workflows", operation_id="listWorkflows", response_model=WorkflowList, responses=refusals())
async def list_workflows(
    backend: Served,
    kind: Annotated[WorkflowKind | None, Query(description="Only those of this kind.")] = None,
    scope: Annotated[str | None, Query(description="Only those on this scope and what is in it.")] = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List what is under way, by aggregate."""
    behind = position_in(after)
    wanted = (
        (aggregate, workflow, can_be_cancelled)
        for aggregate, workflow, can_be_cancelled in await backend.reads.under_way()
        if aggregate > behind
        and (kind is None or workflow.kind is kind)
        and (scope is None or _scope_of(aggregate) == scope)
    )
    found = heapq.nsmallest(limit + 1, wanted, key=lambda item: item[0])
    items = [
        WorkflowItem(**dict(running_workflow(workflow)), aggregate=aggregate, can_cancel=can_be_cancelled)
        for aggregate, workflow, can_be_cancelled in found
    ]
    page = items[:limit]
    return as_json(WorkflowList(items=page, next=token_of(page[-1].aggregate) if len(items) > limit else None))


def _scope_of(aggregate: str) -> str:
    return aggregate.partition(":")[2].partition("/")[0]


@routes.post(
    "/workflows/retry",
    operation_id="retryWorkflow",
    responses={200: changed("It tries its step again now.", Taken), **refusals(409, is_change=True)},
)
async def retry(submit: Submit, body: AggregateBody) -> Response:
    """Have a workflow try its step again now instead of waiting any longer."""
    return as_json(Taken(status=done(await submit(RetryWorkflow(body.aggregate)), body.aggregate).status))


@routes.post(
    "/workflows/cancel",
    operation_id="cancelWorkflow",
    responses={200: changed("It ends as if it had never begun.", Taken), **refusals(409, is_change=True)},
)
async def cancel(backend: Served, submit: Submit, body: CancelBody) -> Response:
    """Take a workflow back: a creation until it is done, a scale until its new epoch is named."""
    found = await backend.reads.workflow(body.aggregate)
    reply = NOTHING_RUNS
    if found is not None:
        reply = await submit(CancelWorkflow(body.aggregate, body.workflow or found.id))
    return as_json(Taken(status=done(reply, body.aggregate).status))
