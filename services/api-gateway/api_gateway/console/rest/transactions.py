"""Transactions of a stream: list, look at, begin, keep alive, commit, abort."""

from itertools import chain, islice
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.base import (
    INT64_MAX,
    Body,
    Model,
    ScopeName,
    StreamName,
    TransactionUuid,
    changed,
    refusals,
    router,
)
from api_gateway.console.rest.replies import done
from api_gateway.console.rest.segments_shown import Shown
from api_gateway.console.rest.stream_models import SegmentModel
from api_gateway.console.rest.workflow_models import RunningWorkflow, workflow_model
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, Submission, Submit
from api_gateway.edge.slices import Slices
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.status import Status
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, OpenTransaction, PingTransaction
from sluice.domain.transaction.state import NO_TIME, EndedTransaction, Transaction, TransactionState
from sluice.engine.fold import PartitionView

routes = router("transactions")

_ALL = "/scopes/{scope}/streams/{stream}/transactions"
_ONE = f"{_ALL}/{{txn}}"

Found = Transaction | EndedTransaction
Ending = CommitTransaction | AbortTransaction | PingTransaction


class TransactionModel(Model):
    """A transaction; of one that has ended only how and when is remembered. Times in epoch ms."""

    id: str = Field(examples=["00000000-0000-0000-0102-030405060708"])
    state: str = Field(description="OPEN, COMMITTING, ABORTING, COMMITTED or ABORTED.", examples=["OPEN"])
    opened_at: int | None = None
    lease_ms: int | None = Field(default=None, description="How long it lives after each ping.")
    last_activity_at: int | None = Field(default=None, description="Its last ping.")
    lease_ends_at: int | None = Field(default=None, description="When it may be aborted unless its client pings.")
    dies_at: int | None = Field(default=None, description="When it may be aborted in any case.")
    writer: str | None = Field(default=None, description="Who committed it, if the commit named a writer.")
    queue_position: int | None = Field(default=None, description="How many commits of the stream come before this one.")
    ended_at: int | None = None
    reason: str | None = Field(default=None, description="Why it was aborted: user, lease or seal.", examples=["lease"])
    workflow: RunningWorkflow | None = Field(default=None, description="Its abort, if that is under way.")


class TransactionList(Model):
    """A page of transactions: the earliest first of those that live, the latest first of those that have ended."""

    items: list[TransactionModel]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


class LeaseBody(Body):
    """For how long."""

    lease_ms: int = Field(
        description="How long it lives without a ping, within the limits that txn-manager has.",
        ge=0,
        le=INT64_MAX,
        examples=[30000],
    )


class CommitBody(Body):
    """Who commits, and the writer's own time."""

    writer: str = Field(default="", max_length=255, description="The writer's id; left out: no time is noted.")
    timestamp: int | None = Field(
        default=None,
        ge=0,
        le=INT64_MAX,
        description="The writer's own time: nothing it writes later is before. Left out: no time is noted.",
    )


class TransactionBegun(Model):
    """A transaction that was begun, and the segments to write to."""

    id: str
    segments: list[SegmentModel] = Field(description="Their ids have the transaction's epoch.")


class TransactionStateModel(Model):
    """What state the transaction is in."""

    state: str = Field(examples=["COMMITTING"])


@routes.get(
    _ALL,
    operation_id="listTransactions",
    dependencies=[SCAN],
    response_model=TransactionList,
    responses=refusals(404),
)
async def list_transactions(
    reads: ServedReads,
    scope: ScopeName,
    stream: StreamName,
    state: Annotated[
        Literal["open", "waiting", "ended"] | None,
        Query(description="Open, waiting to be committed, or ended; left out: all that have not ended."),
    ] = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List transactions of a stream."""
    id = StreamId(scope, stream)
    index = (await reads.stream_in_full(id)).transactions
    behind = position_in(after)
    if state == "ended":
        shown = list(islice(index.ended(behind), limit + 1))
        page = shown[:limit]
        following = token_of(page[-1].uuid) if len(shown) > limit else None
        return as_json(TransactionList(items=[_model(one, None) for one in page], next=following))
    wanted = {"open": (index.open,), "waiting": (index.committing,)}.get(
        state or "", (index.open, index.committing, index.aborting)
    )
    living = await _by_age(reads.view(id.key), id, list(chain(*wanted)))
    rest = [order for order in living if order > behind]
    positions = {id: queue_position for queue_position, id in enumerate(index.committing)}
    # What has ended since is left out.
    found = (reads.transaction(id.transaction(order.partition(".")[2])) for order in rest[:limit])
    items = [_model(one, positions.get(one.uuid)) for one in found if isinstance(one, Transaction)]
    return as_json(TransactionList(items=items, next=token_of(rest[limit - 1]) if len(rest) > limit else None))


async def _by_age(view: PartitionView, stream: StreamId, uuids: list[str]) -> list[str]:
    """Those that have not ended, each by its place in the order: when it was opened, and its id."""
    found, slices = [], Slices()
    for uuid in uuids:
        state = view.peek(stream.transaction(uuid).aggregate)
        if isinstance(state, Transaction):
            found.append(f"{state.opened_at:020d}.{uuid}")
        if slices.is_over():
            await slices.pause()
    return sorted(found)


@routes.post(
    _ALL,
    operation_id="beginTransaction",
    status_code=201,
    responses={201: changed("It was begun.", TransactionBegun), **refusals(404, 409, is_change=True)},
)
async def begin_transaction(
    containers: ServedContainers, submit: Submit, scope: ScopeName, stream: StreamName, body: LeaseBody
) -> Response:
    """Begin a transaction."""
    reply = done(await submit(OpenTransaction(scope=scope, stream=stream, lease_ms=body.lease_ms)), f"{scope}/{stream}")
    segments = list(Shown(containers, StreamId(scope, stream)).models(reply.segments))
    return as_json(TransactionBegun(id=reply.transaction, segments=segments), 201)


@routes.get(_ONE, operation_id="getTransaction", response_model=TransactionModel, responses=refusals(404))
async def get_transaction(reads: ServedReads, scope: ScopeName, stream: StreamName, txn: TransactionUuid) -> Response:
    """Say what state a transaction is in."""
    found = await _known(reads, TransactionId(scope, stream, txn))
    return as_json(_model(found, None))


@routes.post(
    f"{_ONE}/commit",
    operation_id="commitTransaction",
    responses={
        200: changed("It will be committed, whatever happens.", TransactionStateModel),
        **refusals(404, 409, is_change=True),
    },
)
async def commit_transaction(
    reads: ServedReads,
    submit: Submit,
    scope: ScopeName,
    stream: StreamName,
    txn: TransactionUuid,
    body: CommitBody | None = None,
) -> Response:
    """Have a transaction committed; its position in the order of commits is fixed by that."""
    given = body or CommitBody()
    timestamp = NO_TIME if given.timestamp is None else given.timestamp
    command = CommitTransaction(scope=scope, stream=stream, transaction=txn, writer=given.writer, timestamp=timestamp)
    return await _end(reads, submit, command)


@routes.post(
    f"{_ONE}/abort",
    operation_id="abortTransaction",
    responses={
        200: changed("It will be aborted, whatever happens.", TransactionStateModel),
        **refusals(404, 409, is_change=True),
    },
)
async def abort_transaction(
    reads: ServedReads, submit: Submit, scope: ScopeName, stream: StreamName, txn: TransactionUuid
) -> Response:
    """Have a transaction aborted."""
    return await _end(reads, submit, AbortTransaction(scope=scope, stream=stream, transaction=txn))


@routes.post(
    f"{_ONE}/ping",
    operation_id="pingTransaction",
    responses={
        200: changed("It lives for that long from now on.", TransactionStateModel),
        **refusals(404, 409, is_change=True),
    },
)
async def ping_transaction(
    reads: ServedReads, submit: Submit, scope: ScopeName, stream: StreamName, txn: TransactionUuid, body: LeaseBody
) -> Response:
    """Keep a transaction alive."""
    command = PingTransaction(scope=scope, stream=stream, transaction=txn, lease_ms=body.lease_ms)
    return await _end(reads, submit, command)


async def _known(reads: Reads, id: TransactionId) -> Found:
    found = await reads.known_transaction(id)
    if found is None:
        raise RefusedError(404, f"transaction {id.transaction} of {id.stream_id} is not known", Status.UNKNOWN)
    return found


async def _end(reads: Reads, submit: Submission, command: Ending) -> Response:
    """Submit it, and answer with the state that it came to."""
    id = command.transaction_id
    await _known(reads, id)
    done(await submit(command), f"transaction {id.transaction} of {id.stream_id}")
    # The view has what the reply is about.
    found = reads.transaction(id)
    return as_json(
        TransactionStateModel(state=found.state.value if found is not None else TransactionState.UNKNOWN.value)
    )


def _model(found: Found, queue_position: int | None) -> TransactionModel:
    reason = found.reason.value if found.reason is not None else None
    if isinstance(found, EndedTransaction):
        return TransactionModel(id=found.uuid, state=found.state.value, ended_at=found.at, reason=reason)
    return TransactionModel(
        id=found.uuid,
        state=found.state.value,
        opened_at=found.opened_at,
        lease_ms=found.lease_ms,
        last_activity_at=found.last_activity_at,
        lease_ends_at=found.lease_ends_at,
        dies_at=found.dies_at,
        writer=found.writer or None,
        queue_position=queue_position,
        reason=reason,
        workflow=workflow_model(found.workflow),
    )
