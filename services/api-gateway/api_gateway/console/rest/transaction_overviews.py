"""Overviews of transactions: how they ended over time, the streams that have any, and the queue of one stream."""

from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.paging import DEFAULT, Limit
from api_gateway.console.rest.base import INT64_MAX, Model, ScopeName, StreamName, refusals, router
from api_gateway.console.transaction_overviews import commit_queue, most_waiting, outcomes, streams_with_any
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.parts import ServedClock, ServedReads
from sluice.domain.ids import StreamId
from sluice.insight.workflows import RunningWorkflow, workflow_shown
from sluice.security.resources import mapped_resource

routes = router("transactions")

_STREAM = "/scopes/{scope}/streams/{stream}"

DAY_MS = 24 * 3600 * 1000
MIN_BUCKET_MS, MAX_BUCKET_MS = 60_000, DAY_MS
MAX_BUCKETS = 3_000
MAX_STREAMS = 100


class OutcomeCounts(Model):
    """How many transactions ended in one bucket of time, by outcome."""

    at: int = Field(description="When the bucket begins, epoch ms.")
    committed: int
    aborted_by_user: int
    aborted_by_lease: int = Field(description="Their lease ran out.")
    aborted_by_seal: int = Field(description="Their stream was sealed.")
    aborted_by_restore: int = Field(description="They were open in a back-up that was restored.")


class TransactionsSummary(Model):
    """Outcomes by bucket; buckets in which nothing ended are left out."""

    bucket_ms: int
    from_: int = Field(serialization_alias="from", description="When the first bucket begins, epoch ms.")
    to: int
    items: list[OutcomeCounts]
    first_at: int | None = Field(
        default=None,
        description="When the first transaction that is still remembered ended. Of what ended before, two days ago or "
        "50,000 transactions ago, some may be forgotten.",
    )


class WaitingStreamModel(Model):
    """A stream with transactions that have not ended, or ended within a day."""

    stream: str = Field(examples=["demo/orders"])
    open: int
    waiting: int = Field(description="How many wait for their commit, those that are being merged included.")
    aborting: int
    oldest_waiting_at: int | None = Field(default=None, description="When the first of those commits was requested.")
    ended: int = Field(description="How many ended within the last day, as far as they are remembered.")
    ended_at: int | None = Field(default=None, description="When the last one ended that is remembered.")


class WaitingStreamList(Model):
    """Those with the most transactions that wait for their commit come first."""

    items: list[WaitingStreamModel]


class CommitBatchModel(Model):
    """The transactions that are being merged together, in order."""

    ids: list[str]
    step: str = Field(description="The step that is being tried again; empty before that.")
    since: int
    workflow: RunningWorkflow


class QueuedCommitModel(Model):
    """A commit that waits behind the batch."""

    id: str
    waits_since: int | None = Field(default=None, description="When it was requested, epoch ms.")
    position: int = Field(description="How many commits of the stream come before this one.")


class CommitQueueModel(Model):
    """The commits of a stream, in their order."""

    batch: CommitBatchModel | None = Field(default=None, description="Left out while none is being merged.")
    queue: list[QueuedCommitModel] = Field(description="The first of those behind the batch.")
    waiting: int = Field(description="How many wait behind the batch in all.")
    waits_for: str | None = Field(default=None, description="What keeps them from going on, in words.")


@routes.get(
    f"{_STREAM}/transactions/summary",
    operation_id="summarizeTransactions",
    dependencies=[SCAN],
    response_model=TransactionsSummary,
    responses=refusals(404),
)
async def summary(
    reads: ServedReads,
    clock: ServedClock,
    scope: ScopeName,
    stream: StreamName,
    bucket: Annotated[
        int,
        Query(ge=MIN_BUCKET_MS, le=MAX_BUCKET_MS, description="How long a bucket is, ms; the first is rounded down."),
    ] = 300_000,
    from_: Annotated[
        int | None, Query(alias="from", ge=0, le=INT64_MAX, description="Epoch ms; left out: a day before `to`.")
    ] = None,
    to: Annotated[int | None, Query(ge=0, le=INT64_MAX, description="Epoch ms; left out: now.")] = None,
) -> Response:
    """Count how the transactions of a stream ended, by bucket of time."""
    id = StreamId(scope, stream)
    until = clock.now_ms() + 1 if to is None else to
    since = max(until - DAY_MS, 0) if from_ is None else from_
    since -= since % bucket
    if not 0 < until - since <= MAX_BUCKETS * bucket:
        raise BadRequestError(f"from must be before to, and {MAX_BUCKETS} buckets before it at most")
    await reads.stream_in_full(id)
    found = await outcomes(reads.view(id.key), id, since, until, bucket)
    items = [OutcomeCounts.model_validate(one, from_attributes=True) for one in found.buckets]
    return as_json(TransactionsSummary(bucket_ms=bucket, from_=since, to=until, items=items, first_at=found.first_at))


@routes.get("/transactions", operation_id="listWaitingStreams", response_model=WaitingStreamList, responses=refusals())
async def waiting_streams(
    reads: ServedReads,
    clock: ServedClock,
    sort: Annotated[Literal["waiting"], Query(description="Those with the most waiting commits first.")] = "waiting",  # noqa: ARG001 - there is one order as yet
    limit: Annotated[int, Query(ge=1, le=MAX_STREAMS, description="How many streams at most.")] = MAX_STREAMS,
) -> Response:
    """List the streams with transactions now or within a day, those with the most waiting commits first."""
    since = clock.now_ms() - DAY_MS
    found = [one async for one in streams_with_any(reads, since) if may_read(mapped_resource(*one.stream))]
    items = [
        WaitingStreamModel(
            stream=str(one.stream),
            open=one.open,
            waiting=one.waiting,
            aborting=one.aborting,
            oldest_waiting_at=one.oldest_waiting_at,
            ended=one.ended,
            ended_at=one.ended_at,
        )
        for one in most_waiting(found, limit)
    ]
    return as_json(WaitingStreamList(items=items))


@routes.get(f"{_STREAM}/commits", operation_id="showCommits", response_model=CommitQueueModel, responses=refusals(404))
async def commits(
    reads: ServedReads, clock: ServedClock, scope: ScopeName, stream: StreamName, limit: Limit = DEFAULT
) -> Response:
    """Show the batch of commits that is being merged, and those that wait behind it."""
    id = StreamId(scope, stream)
    await reads.stream_in_full(id)
    found = commit_queue(reads.view(id.key), id, clock.now_ms(), limit)
    batch, workflow = found.batch, workflow_shown(found.batch)
    return as_json(
        CommitQueueModel(
            batch=CommitBatchModel(ids=list(batch.transactions), step=batch.step, since=batch.since, workflow=workflow)
            if batch is not None and workflow is not None
            else None,
            queue=[QueuedCommitModel(id=one.id, waits_since=one.since, position=one.position) for one in found.queue],
            waiting=found.waiting,
            waits_for=found.waits_for or None,
        )
    )
