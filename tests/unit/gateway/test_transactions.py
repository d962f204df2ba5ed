"""The six RPCs on transactions: each reply with its status or its gRPC code, and what is read from the view."""

from typing import Any

import grpc
import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, create_scope, create_stream, failure

from api_gateway.handlers.transactions import LISTED_MOST, REASON
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
from sluice.domain.transaction.ids import text_of, transaction_id
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS

KEY = "sc/st"
LEASE_MS = 10_000
STREAM = pb.StreamInfo(scope="sc", stream="st")
NOBODYS = pb.TxnId(highBits=0, lowBits=77)
CODES = grpc.StatusCode


async def opened(gateway: Gateway) -> pb.TxnId:
    """A transaction of a stream with two segments."""
    await create_scope(gateway)
    await create_stream(gateway)
    return (await open_one(gateway)).txnId


async def open_one(gateway: Gateway, lease: int = LEASE_MS) -> pb.CreateTxnResponse:
    return await gateway.stub.createTransaction(pb.CreateTxnRequest(streamInfo=STREAM, lease=lease))


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


# What clients ask.


async def test_one_that_is_opened_says_its_id_and_the_segments_to_write_to(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    answer = await open_one(gateway)
    assert answer.txnId.lowBits >= 0 and answer.txnId.highBits >> 32 == 0
    assert [(s.segmentId.segmentId, s.minKey, s.maxKey) for s in answer.activeSegments] == [
        (0, 0.0, 0.5),
        (1, 0.5, 1.0),
    ]
    assert {s.segmentId.streamInfo.stream for s in answer.activeSegments} == {"st"}
    topic, sent = gateway.sent[-1]
    assert topic == REQUESTS_TRANSACTIONS.name
    assert sent.command == OpenTransaction(scope="sc", stream="st", lease_ms=LEASE_MS)
    assert text(answer.txnId) == transaction_id(0, sent.id)


async def test_each_command_goes_into_its_topic_with_the_streams_key(gateway: Gateway) -> None:
    id = await opened(gateway)
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


async def test_a_transaction_that_commits(gateway: Gateway) -> None:
    id = await opened(gateway)
    assert await state(gateway, id) == "OPEN"
    assert (await gateway.stub.pingTransaction(ping_request(id))).status == pb.PingTxnStatus.OK
    for _ in range(2):
        assert await said(gateway.stub.commitTransaction(request(id))) == (pb.TxnStatus.SUCCESS, {})
    assert await state(gateway, id) == "COMMITTING"
    refused, why = await said(gateway.stub.abortTransaction(request(id)))
    assert refused == pb.TxnStatus.FAILURE and "COMMITTING" in why[REASON]
    await gateway.system.append(KEY, TransactionCommitted(scope="sc", stream="st", transaction=text(id), at=5))
    assert await state(gateway, id) == "COMMITTED"
    assert (await gateway.stub.pingTransaction(ping_request(id))).status == pb.PingTxnStatus.COMMITTED


async def test_a_transaction_that_is_aborted(gateway: Gateway) -> None:
    id = await opened(gateway)
    for _ in range(2):
        assert await said(gateway.stub.abortTransaction(request(id))) == (pb.TxnStatus.SUCCESS, {})
    assert await state(gateway, id) == "ABORTING"
    refused, why = await said(gateway.stub.commitTransaction(request(id)))
    assert refused == pb.TxnStatus.FAILURE and "its client asked for that" in why[REASON]
    told, why = await said(gateway.stub.pingTransaction(ping_request(id)))
    assert told == pb.PingTxnStatus.ABORTED and "its client asked for that" in why[REASON]
    await gateway.system.append(KEY, TransactionAborted(scope="sc", stream="st", transaction=text(id), at=5))
    assert await state(gateway, id) == "ABORTED"


async def test_one_that_nobody_knows(gateway: Gateway) -> None:
    await opened(gateway)
    assert (await said(gateway.stub.pingTransaction(ping_request(NOBODYS))))[0] == pb.PingTxnStatus.UNKNOWN
    for call in (gateway.stub.commitTransaction, gateway.stub.abortTransaction):
        status, why = await said(call(request(NOBODYS)))
        assert status == pb.TxnStatus.FAILURE and "no such transaction" in why[REASON]
    assert await state(gateway, NOBODYS) == "UNKNOWN"


async def test_the_state_in_a_stream_that_is_not_there_is_unknown(gateway: Gateway) -> None:
    assert await state(gateway, NOBODYS) == "UNKNOWN"


@pytest.mark.parametrize("lease", [0, 9_999, 600_001, -1])
async def test_a_lease_out_of_bounds_is_an_argument_error(gateway: Gateway, lease: int) -> None:
    await opened(gateway)
    code, details = await failure(open_one(gateway, lease))
    assert code is CODES.UNKNOWN and str(lease) in (details or "")


async def test_a_stream_that_is_not_there_is_not_found(gateway: Gateway) -> None:
    assert await failure(open_one(gateway)) == (CODES.NOT_FOUND, "no such stream")


async def test_a_sealed_stream_is_an_error_of_its_state(gateway: Gateway) -> None:
    await create_scope(gateway)
    await create_stream(gateway)
    await gateway.stub.sealStream(STREAM)
    assert await failure(open_one(gateway)) == (CODES.INTERNAL, "the stream is SEALED")


# Every reply there is.


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("STREAM_NOT_FOUND", CODES.NOT_FOUND),
        ("LEASE_OUT_OF_BOUNDS", CODES.UNKNOWN),
        ("STREAM_SEALED", CODES.INTERNAL),
        ("ENDED", CODES.INTERNAL),
        ("FAILURE", CODES.INTERNAL),
        ("TOO_MANY_OPEN", CODES.RESOURCE_EXHAUSTED),
    ],
)
async def test_refusals_to_open(gateway: Gateway, status: str, code: grpc.StatusCode) -> None:
    await gateway.system.answer_all(Reply(Status(status), "that is why"))
    assert await failure(open_one(gateway)) == (code, "that is why")


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("OK", pb.PingTxnStatus.OK),
        ("LEASE_TOO_LARGE", pb.PingTxnStatus.LEASE_TOO_LARGE),
        ("MAX_EXECUTION_TIME_EXCEEDED", pb.PingTxnStatus.MAX_EXECUTION_TIME_EXCEEDED),
        ("COMMITTED", pb.PingTxnStatus.COMMITTED),
        ("ABORTED", pb.PingTxnStatus.ABORTED),
        ("UNKNOWN", pb.PingTxnStatus.UNKNOWN),
    ],
)
async def test_replies_to_a_ping(gateway: Gateway, reply: str, status: int) -> None:
    await gateway.system.answer_all(Reply(Status(reply)))
    assert await said(gateway.stub.pingTransaction(ping_request(NOBODYS))) == (status, {})
    await gateway.system.answer_all(Reply(Status(reply), "that is why"))
    assert await said(gateway.stub.pingTransaction(ping_request(NOBODYS))) == (status, {REASON: "that is why"})


async def test_a_ping_that_nobody_could_handle_is_an_error_and_no_status(gateway: Gateway) -> None:
    """DISCONNECTED would be the end of the transaction for clients; INTERNAL has them try again."""
    await gateway.system.answer_all(Reply(Status.FAILURE, "kept as a dead letter"))
    assert await failure(gateway.stub.pingTransaction(ping_request(NOBODYS))) == (
        CODES.INTERNAL, "kept as a dead letter",
    )  # fmt: skip


@pytest.mark.parametrize("rpc", ["commitTransaction", "abortTransaction"])
@pytest.mark.parametrize(("reply", "status"), [("SUCCESS", pb.TxnStatus.SUCCESS), ("FAILURE", pb.TxnStatus.FAILURE)])
async def test_replies_to_an_end(gateway: Gateway, rpc: str, reply: str, status: int) -> None:
    await gateway.system.answer_all(Reply(Status(reply), "that is why"))
    assert await said(getattr(gateway.stub, rpc)(request(NOBODYS))) == (status, {REASON: "that is why"})


async def test_too_many_that_wait_for_their_commit_are_to_come_again(gateway: Gateway) -> None:
    await gateway.system.answer_all(Reply(Status.TOO_MANY_WAITING, "that is why"))
    call = gateway.stub.commitTransaction(request(NOBODYS))
    assert await failure(call) == (CODES.RESOURCE_EXHAUSTED, "that is why")


@pytest.mark.parametrize("rpc", ["createTransaction", "pingTransaction", "commitTransaction", "abortTransaction"])
async def test_a_reply_that_nobody_foresaw_is_a_defect(gateway: Gateway, rpc: str) -> None:
    await gateway.system.answer_all(Reply(Status.GENERATION_MISMATCH))
    message: Any = {
        "createTransaction": pb.CreateTxnRequest(streamInfo=STREAM, lease=LEASE_MS),
        "pingTransaction": ping_request(NOBODYS),
    }.get(rpc, request(NOBODYS))
    assert await failure(getattr(gateway.stub, rpc)(message)) == SYNC_INTERNAL


async def test_what_is_said_for_people_may_be_any_text(gateway: Gateway) -> None:
    await gateway.system.answer_all(Reply(Status.FAILURE, "Grüße\nand more: 'x'" + "." * 100_000))
    status, why = await said(gateway.stub.commitTransaction(request(NOBODYS)))
    assert status == pb.TxnStatus.FAILURE
    assert why[REASON].startswith("Gr??e?and more: 'x'...") and len(why[REASON]) == 500


# Reading.


async def test_the_latest_that_have_ended_are_listed_and_no_more_than_that(gateway: Gateway) -> None:
    ids = [transaction_id(0, f"r{i}") for i in range(LISTED_MOST + 20)]
    events: list[Event] = []
    for i, id in enumerate(ids):
        facts = {"scope": "sc", "stream": "st", "transaction": id}
        end = TransactionCommitted(**facts, at=i) if i % 2 else TransactionAborted(**facts, at=i)
        events += [TransactionOpened(**facts, lease_ms=1, at=i), end]
    never = TransactionOpened(scope="sc", stream="st", transaction=NEVER, lease_ms=1, at=0)
    await gateway.system.append(KEY, *events, never)
    answer = await gateway.stub.listCompletedTransactions(pb.ListCompletedTxnRequest(streamInfo=STREAM))
    listed = [(text(t.txnId), t.status) for t in answer.response]
    committed, aborted = pb.TxnResponse.COMMITTED, pb.TxnResponse.ABORTED
    assert listed == [(ids[i], committed if i % 2 else aborted) for i in reversed(range(20, LISTED_MOST + 20))]


NEVER = transaction_id(0, "never ended")


async def test_a_stream_without_any_has_an_empty_list(gateway: Gateway) -> None:
    answer = await gateway.stub.listCompletedTransactions(pb.ListCompletedTxnRequest(streamInfo=STREAM))
    assert list(answer.response) == []


async def test_halves_of_any_sign_name_one_transaction(gateway: Gateway) -> None:
    for high, low in ((-1, -1), (2**63 - 1, -(2**63)), (0, 0)):
        assert await state(gateway, pb.TxnId(highBits=high, lowBits=low)) == "UNKNOWN"
