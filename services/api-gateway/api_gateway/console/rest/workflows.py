"""Running workflows: list, retry, cancel.

A cancellation names its workflow: it may be delivered again when another one runs there. So it takes one that this
view shows behind the barrier. Without any there is nothing to request.
"""

import asyncio
import heapq
import logging
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Query, Response

from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.actions import Action, action, judged
from api_gateway.console.rest.base import refusals, router
from api_gateway.console.rest.replies import refused
from api_gateway.console.rest.waiting import Waits
from api_gateway.console.rest.workflow_models import (
    AggregateBody,
    AggregatesBody,
    CancelBody,
    RetriedItem,
    RetriedList,
    WorkflowList,
)
from api_gateway.edge.requests import Requests
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.failures import failure_of
from api_gateway.edge.rest.parts import ServedClock, ServedContainers, ServedReads, ServedRequests
from api_gateway.edge.slices import Slices
from sluice.domain.decision import Reader
from sluice.domain.status import DONE, Status
from sluice.domain.workflow import (
    NOTHING_RUNS,
    CancelWorkflow,
    RetryWorkflow,
    WorkflowKind,
    is_under_way,
    running,
    why_not_cancel,
    why_not_retry,
)
from sluice.engine.ports import Clock
from sluice.engine.retry import longest_delay_s
from sluice.exceptions import in_words
from sluice.insight.progress import Progress, progress_of
from sluice.insight.workflows import RunningWorkflow, WorkflowItem, work_shown

log = logging.getLogger(__name__)

routes = router("workflows")


class _Filter(msgspec.Struct, frozen=True):
    """Which workflows are wanted; an empty text, and None, are for all."""

    kind: str
    scope: str | None
    state: Progress | None
    text: str

    def takes(self, aggregate: str, state: Any, shown: RunningWorkflow) -> bool:
        return (
            self.kind in ("", shown.kind)
            and self.scope in (None, _scope_of(aggregate))
            and self.state in (None, progress_of(running(state)))
            and (not self.text or self.text in f"{aggregate} {shown.kind} {shown.step} {shown.last_error}".casefold())
        )


@routes.get(
    "/workflows", operation_id="listWorkflows", dependencies=[SCAN], response_model=WorkflowList, responses=refusals()
)
async def list_workflows(
    reads: ServedReads,
    clock: ServedClock,
    containers: ServedContainers,
    kind: Annotated[WorkflowKind | None, Query(description="Only those of this kind.")] = None,
    scope: Annotated[str | None, Query(description="Only those on this scope and what is in it.")] = None,
    state: Annotated[Progress | None, Query(description="Only those that get on like this.")] = None,
    q: Annotated[
        str, Query(max_length=200, description="Only those with this text in their aggregate, kind, step or error.")
    ] = "",
    sort: Annotated[
        Literal["aggregate", "since"], Query(description="By aggregate, or the longest under way first.")
    ] = "aggregate",
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List what is under way or queued, and what keeps it."""
    behind = position_in(after)
    wanted = _Filter(kind.value if kind is not None else "", scope, state, q.casefold())
    busy: list[str] = []
    found: list[tuple[str, str]] = []
    async for aggregate, present, _view in reads.at_work():
        busy.append(aggregate)
        shown = work_shown(present)
        order = aggregate if sort == "aggregate" else f"{shown.since:020d} {aggregate}"
        if order > behind and wanted.takes(aggregate, present, shown):
            found.append((order, aggregate))
    page = heapq.nsmallest(limit + 1, found)
    waits, items, slices = Waits(reads, containers, busy), [], Slices()
    for _, aggregate in page[:limit]:
        present, view = reads.known(aggregate)
        # What has ended since is left out.
        if is_under_way(present):
            items.append(_item(clock, waits, aggregate, present, view))
        if slices.is_over():
            await slices.pause()
    following = token_of(page[limit - 1][0]) if len(page) > limit else None
    return as_json(WorkflowList(items=items, next=following))


def _item(clock: Clock, waits: Waits, aggregate: str, state: Any, view: Reader) -> WorkflowItem:
    shown, workflow, why_not = work_shown(state), running(state), why_not_cancel(state)
    next_attempt = None
    if progress_of(workflow) is Progress.FAILING:
        next_attempt = clock.now_ms() + round(1000 * longest_delay_s(shown.attempts))
    return WorkflowItem(
        **vars(shown),
        aggregate=aggregate,
        state=progress_of(workflow),
        can_cancel=not why_not,
        cancel_why_not=why_not or None,
        next_attempt_at=next_attempt,
        waits_for=waits.of(view, state),
        allowed=judged(on_workflow(state), {}),
    )


def _scope_of(aggregate: str) -> str:
    return aggregate.partition(":")[2].partition("/")[0]


@routes.post(
    "/workflows/retry-each",
    operation_id="retryWorkflows",
    response_model=RetriedList,
    responses=refusals(is_change=True),
)
async def retry_many(requests: ServedRequests, body: AggregatesBody) -> Response:
    """Have many workflows try their steps again now; each is answered for itself."""
    aggregates = dict.fromkeys(body.aggregates)
    return as_json(RetriedList(items=await asyncio.gather(*(_retried(requests, one) for one in aggregates))))


async def _retried(requests: Requests, aggregate: str) -> RetriedItem:
    id = requests.new_id()
    try:
        reply = await requests.submit(RetryWorkflow(aggregate), id=id)
    except Exception as error:  # noqa: BLE001 - one that fails says nothing of the others
        failure = failure_of(error)
        log.log(failure.level, "retry failed", extra={"aggregate": aggregate, "request": id, "error": in_words(error)})
        return RetriedItem(aggregate=aggregate, status=Status.FAILURE, detail=failure.detail, request=id)
    detail = None if reply.status in DONE else reply.reason or None
    return RetriedItem(aggregate=aggregate, status=reply.status, detail=detail, request=id)


_on_one = partial(action, routes, about="{0.aggregate}", refused=(409,))


@_on_one("retry", "POST", "/workflows/retry", id="retryWorkflow", says="It tries its step again now.")
async def retry(body: AggregateBody) -> RetryWorkflow:
    """Have a workflow try its step again now instead of waiting any longer."""
    return RetryWorkflow(body.aggregate)


@_on_one("cancel", "POST", "/workflows/cancel", id="cancelWorkflow", says="It ends as if it had never begun.")
async def cancel(reads: ServedReads, body: CancelBody) -> CancelWorkflow:
    """Take a workflow back: a creation until it is done, a scale until its new epoch is named."""
    found = await reads.workflow(body.aggregate)
    if found is None:
        raise refused(NOTHING_RUNS, body.aggregate)
    return CancelWorkflow(body.aggregate, body.workflow or found.id)


def on_workflow(state: object) -> list[tuple[Action, str]]:
    """Retry and cancel of the workflow that changes an aggregate of this state, each with what forbids it."""
    return [(retry, why_not_retry(state)), (cancel, why_not_cancel(state))]
