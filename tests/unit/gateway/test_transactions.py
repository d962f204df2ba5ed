"""The six RPCs on transactions: each reply with its status or its gRPC code, and what is read from the view."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, failure

from api_gateway.pravega.handlers.submitting import REASON
from api_gateway.pravega.handlers.transactions import MAX_LISTED
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.status import Status
from sluice.domain.transaction.commands import (
    AbortReason,
    AbortTransaction,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
)
from sluice.domain.transaction.events import TransactionAborted, TransactionCommitted, TransactionOpened
from sluice.domain.transaction_ids import text_of, transaction_id
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS

KEY = "sc/st"
LEASE_MS = 10_000
STREAM = pb.StreamInfo(scope="sc", stream="st")
UNKNOWN_ID = pb.TxnId(highBits=0, lowBits=77)
CODES = grpc.StatusCode


@pytest.fixture
async def id(gateway: Gateway, stream: pb.StreamInfo) -> pb.TxnId:
    """That of a transaction of a stream with two segments."""
    return (await open_one(gateway)).txnId


async def open_one(gateway: Gateway) -> pb.CreateTxnResponse:
    return await gateway.stub.createTransaction(pb.CreateTxnRequest(streamInfo=STREAM, lease=LEASE_MS))


def request(id: pb.TxnId, **more: Any) -> pb.TxnRequest:
    return pb.TxnRequest(streamInfo=STREAM, txnId=id, **more)


def ping_request(id: pb.TxnId, lease: int = LEASE_MS) -> pb.PingTxnRequest:
    return pb.PingTxnRequest(streamInfo=STREAM, txnId=id, lease=lease)


async def state(gateway: Gateway, id: pb.TxnId) -> str:
    return pb.TxnState.State.Name((await gateway.stub.checkTransactionState(request(id))).state)


async def said(call: Any) -> tuple[int, dict[str, str]]:
    """The status of an answer and the metadata that came with it."""
    answer = await call
    return answer.status, {key: value for key, value in await call.trailing_metadata() if key == REASON}


def text(id: pb.TxnId) -> str:
    return text_of(id.highBits, id.lowBits)


@pytest.mark.usefixtures("stream")
async def test_a_transaction_is_opened_with_its_id_and_the_segments_to_write_to(gateway: Gateway) -> None:
    answer = await open_one(gateway)
    assert answer.txnId.lowBits >= 0 and answer.txnId.highBits >> 32 == 0
    assert [(s.segmentId.segmentId, s.minKey, s.maxKey) for s in answer.activeSegments] == [
        (0, 0.0, 0.5),
        (1, 0.5, 1.0),
    ]
    assert all(s.segmentId.streamInfo == STREAM for s in answer.activeSegments)
    topic, sent = gateway.sent[-1]
    assert topic == REQUESTS_TRANSACTIONS.name
    assert sent.command == OpenTransaction(scope="sc", stream="st", lease_ms=LEASE_MS)
    assert text(answer.txnId) == transaction_id(0, sent.id)


async def test_each_command_goes_into_its_topic_with_the_streams_key(gateway: Gateway, id: pb.TxnId) -> None:
    sent = gateway.sent
    del sent[:]
    await gateway.stub.pingTransaction(ping_request(id, 20_000))
    await gateway.stub.commitTransaction(request(id, writerId="w", timestamp=-(2**63)))
    await gateway.stub.abortTransaction(request(id))
    facts = {"scope": "sc", "stream": "st", "transaction": text(id)}
    assert [(topic, sent.command) for topic, sent in sent] == [
        (REQUESTS_TRANSACTIONS.name, PingTransaction(**facts, lease_ms=20_000)),
        (COMMIT.name, CommitTransaction(**facts, writer="w", timestamp=-(2**63))),
        (ABORT.name, AbortTransaction(**facts, reason=AbortReason.USER, version=None)),
    ]
    assert {sent.command.key for _, sent in sent} == {KEY}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("STREAM_NOT_FOUND", CODES.NOT_FOUND),
        ("LEASE_OUT_OF_BOUNDS", CODES.INVALID_ARGUMENT),
        ("STREAM_SEALED", CODES.INTERNAL),
        ("ENDED", CODES.INTERNAL),
        ("FAILURE", CODES.INTERNAL),
        ("TOO_MANY_OPEN", CODES.RESOURCE_EXHAUSTED),
    ],
)
async def test_refusals_to_open(gateway: Gateway, status: str, code: grpc.StatusCode) -> None:
    await gateway.system.answer_all(Reply(Status(status), "that is why"))
    assert await failure(open_one(gateway)) == (code, "that is why")


async def test_a_ping_that_became_a_dead_letter_is_an_error_and_no_status(gateway: Gateway) -> None:
    """DISCONNECTED would be the end of the transaction for clients; INTERNAL has them try again."""
    await gateway.system.answer_all(Reply(Status.FAILURE, "kept as a dead letter"))
    call = gateway.stub.pingTransaction(ping_request(UNKNOWN_ID))
    assert await failure(call) == (CODES.INTERNAL, "kept as a dead letter")


async def test_too_many_that_wait_for_their_commit_exhaust_a_resource(gateway: Gateway) -> None:
    await gateway.system.answer_all(Reply(Status.TOO_MANY_WAITING, "that is why"))
    call = gateway.stub.commitTransaction(request(UNKNOWN_ID))
    assert await failure(call) == (CODES.RESOURCE_EXHAUSTED, "that is why")


@pytest.mark.parametrize("rpc", ["createTransaction", "pingTransaction", "commitTransaction", "abortTransaction"])
async def test_an_unforeseen_reply_is_a_defect(gateway: Gateway, rpc: str) -> None:
    await gateway.system.answer_all(Reply(Status.GENERATION_MISMATCH))
    message: Any = {
        "createTransaction": pb.CreateTxnRequest(streamInfo=STREAM, lease=LEASE_MS),
        "pingTransaction": ping_request(UNKNOWN_ID),
    }.get(rpc, request(UNKNOWN_ID))
    assert await failure(getattr(gateway.stub, rpc)(message)) == SYNC_INTERNAL


async def test_a_reason_may_be_any_text_and_is_bounded(gateway: Gateway) -> None:
    await gateway.system.answer_all(Reply(Status.FAILURE, "Grüße\nand more: 'x'" + "." * 100_000))
    status, why = await said(gateway.stub.commitTransaction(request(UNKNOWN_ID)))
    assert status == pb.TxnStatus.FAILURE
    assert why[REASON].startswith("Gr??e?and more: 'x'...") and len(why[REASON]) == 500


async def test_the_latest_ended_transactions_are_listed_up_to_the_limit(gateway: Gateway) -> None:
    ids = [transaction_id(0, f"r{i}") for i in range(MAX_LISTED + 20)]
    events: list[Event] = []
    for i, id in enumerate(ids):
        end = TransactionCommitted("sc", "st", id, at=i) if i % 2 else TransactionAborted("sc", "st", id, at=i)
        events += [TransactionOpened("sc", "st", id, lease_ms=1, at=i, dies_at=10**15), end]
    never = TransactionOpened(
        scope="sc", stream="st", transaction=transaction_id(0, "never"), lease_ms=1, at=0, dies_at=10**15
    )
    await gateway.system.append(KEY, *events, never)
    answer = await gateway.stub.listCompletedTransactions(pb.ListCompletedTxnRequest(streamInfo=STREAM))
    listed = [(text(t.txnId), t.status) for t in answer.response]
    committed, aborted = pb.TxnResponse.COMMITTED, pb.TxnResponse.ABORTED
    assert listed == [(ids[i], committed if i % 2 else aborted) for i in reversed(range(20, MAX_LISTED + 20))]
