"""Transactions of a stream: list, look at, begin, keep alive, commit, abort."""

from functools import partial
from itertools import chain, islice
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.actions import action
from api_gateway.console.rest.base import (
    INT64_MAX,
    Body,
    Model,
    Page,
    ScopeName,
    StreamName,
    TransactionUuid,
    refusals,
    router,
)
from api_gateway.edge.containers import Containers
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import Parts, ServedReads
from api_gateway.edge.slices import Slices
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.status import Status
from sluice.domain.transaction.commands import (
    AbortTransaction,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
    TransactionCommand,
)
from sluice.domain.transaction.state import NO_TIME, EndedTransaction, Transaction, TransactionState
from sluice.engine.fold import PartitionView
from sluice.insight.streams import SegmentModel, segments_shown
from sluice.insight.workflows import RunningWorkflow, workflow_shown

routes = router("transactions")

_ALL = "/scopes/{scope}/streams/{stream}/transactions"
_ONE = f"{_ALL}/{{txn}}"

Found = Transaction | EndedTransaction


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


class TransactionList(Page[TransactionModel]):
    """A page of transactions: the earliest first of those that live, the latest first of those that have ended."""


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


def _begun(parts: Parts, command: OpenTransaction, reply: Reply) -> TransactionBegun:
    segments = segments_shown(command.stream_id, reply.segments, parts[Containers].placement())
    return TransactionBegun(id=reply.transaction, segments=segments)


@action(
    routes,
    "begin",
    "POST",
    _ALL,
    id="beginTransaction",
    about="{0.scope}/{0.stream}",
    says="It was begun.",
    status=201,
    answer=_begun,
)
async def begin_transaction(scope: ScopeName, stream: StreamName, body: LeaseBody) -> OpenTransaction:
    """Begin a transaction."""
    return OpenTransaction(scope, stream, body.lease_ms)


@routes.get(_ONE, operation_id="getTransaction", response_model=TransactionModel, responses=refusals(404))
async def get_transaction(reads: ServedReads, scope: ScopeName, stream: StreamName, txn: TransactionUuid) -> Response:
    """Say what state a transaction is in."""
    found = await _known(reads, TransactionId(scope, stream, txn))
    return as_json(_model(found, None))


def _state(parts: Parts, command: TransactionCommand, _reply: Reply) -> TransactionStateModel:
    # The view has what the reply is about.
    found = parts[Reads].transaction(command.transaction_id)
    return TransactionStateModel(state=found.state.value if found is not None else TransactionState.UNKNOWN.value)


_on_one = partial(action, routes, about="transaction {0.transaction} of {0.stream_id}", answer=_state)


@_on_one("commit", "POST", f"{_ONE}/commit", id="commitTransaction", says="It will be committed, whatever happens.")
async def commit_transaction(
    reads: ServedReads, scope: ScopeName, stream: StreamName, txn: TransactionUuid, body: CommitBody | None = None
) -> CommitTransaction:
    """Have a transaction committed; its position in the order of commits is fixed by that."""
    await _known(reads, TransactionId(scope, stream, txn))
    given = body or CommitBody()
    return CommitTransaction(scope, stream, txn, given.writer, NO_TIME if given.timestamp is None else given.timestamp)


@_on_one("abort", "POST", f"{_ONE}/abort", id="abortTransaction", says="It will be aborted, whatever happens.")
async def abort_transaction(
    reads: ServedReads, scope: ScopeName, stream: StreamName, txn: TransactionUuid
) -> AbortTransaction:
    """Have a transaction aborted."""
    await _known(reads, TransactionId(scope, stream, txn))
    return AbortTransaction(scope, stream, txn)


@_on_one("ping", "POST", f"{_ONE}/ping", id="pingTransaction", says="It lives for that long from now on.")
async def ping_transaction(
    reads: ServedReads, scope: ScopeName, stream: StreamName, txn: TransactionUuid, body: LeaseBody
) -> PingTransaction:
    """Keep a transaction alive."""
    await _known(reads, TransactionId(scope, stream, txn))
    return PingTransaction(scope, stream, txn, body.lease_ms)


async def _known(reads: Reads, id: TransactionId) -> Found:
    found = await reads.known_transaction(id)
    if found is None:
        raise RefusedError(404, f"transaction {id.transaction} of {id.stream_id} is not known", Status.UNKNOWN)
    return found


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
        workflow=workflow_shown(found.workflow),
    )
