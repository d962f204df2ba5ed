"""Calls on transactions, and what clients do to the segments of one.

Defaults as in `calls`. A case names its transactions; `begin` keeps the id under the name, all others look it up. An id
may also be given as it is, as the numbers (high, low), or as None to send none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from support.segments import content

from conformance import views
from conformance.answers import Such
from conformance.calls import info
from conformance.case import Step, call, step
from conformance.run import Run, ScopeName
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import segment_name, transaction_segment_name
from sluice.pravega.client import SegmentStoreClient
from sluice.pravega.errors import SegmentMissing, SegmentSealed, TryLater
from sluice.pravega.event_frames import split_events

LEAST_LEASE_MS, LEASE_MS, LONGEST_LEASE_MS = 10_000, 90_000, 600_000
NO_TIMESTAMP = -(2**63)
"""What clients send with a commit that says no time (controller-grpc-api 9.4)."""

NEVER_GIVEN = (0, 2**62)
"""An id that no controller has come to."""

NOT_WRITTEN = Such("is a refusal", lambda answer: answer in ("gone", "sealed", "not now"))
"""What a write into a transaction that has ended gives.

A store that has just merged the segment may still take the set-up of a writer and drop the connection at its first
event, until the merge has come to its long-term storage.
"""

Transaction = str | tuple[int, int] | None

_ENDS_IN_S = 60.0


def _id(run: Run, transaction: Transaction) -> pb.TxnId | None:
    if isinstance(transaction, str):
        return _begun(run, transaction).txnId
    return None if transaction is None else pb.TxnId(highBits=transaction[0], lowBits=transaction[1])


def _begun(run: Run, name: str) -> pb.CreateTxnResponse:
    answer: pb.CreateTxnResponse = run.answers[_key(name)]
    return answer


def _key(name: str) -> str:
    return f"transaction {name}"


# --- calls


def begin(
    name: str = "a", stream: str = "st", scope: ScopeName = "sc", *, lease: int = LEASE_MS, grace: int = 0
) -> Step:
    """createTransaction; gives the epoch in the id and the segments."""

    async def act(run: Run) -> Any:
        request = pb.CreateTxnRequest(streamInfo=info(run, stream, scope), lease=lease, scaleGracePeriod=grace)
        answer = await run.ask("createTransaction", request)
        if isinstance(answer, pb.CreateTxnResponse):
            run.answers[_key(name)] = answer
            return views.transaction(run, answer)
        return answer

    return step("createTransaction", act, _WELL_FORMED)


def _is_well_formed(begun: tuple[int, list[views.Range]]) -> bool:
    epoch, ranges = begun
    borders = [0.0, *(high for _, _, high in ranges)]
    return [(low, id >> 32) for id, low, _ in ranges] == [(low, epoch) for low in borders[:-1]] and borders[-1] == 1.0


_WELL_FORMED = Such("has one epoch and covers all keys in order", _is_well_formed)


def _request(
    run: Run, transaction: Transaction, stream: str, scope: ScopeName, writer: str = "", timestamp: int = 0
) -> pb.TxnRequest:
    return pb.TxnRequest(
        streamInfo=info(run, stream, scope), txnId=_id(run, transaction), writerId=writer, timestamp=timestamp
    )


def ping(transaction: Transaction = "a", stream: str = "st", scope: ScopeName = "sc", *, lease: int = LEASE_MS) -> Step:
    def build(run: Run) -> pb.PingTxnRequest:
        return pb.PingTxnRequest(streamInfo=info(run, stream, scope), txnId=_id(run, transaction), lease=lease)

    return call("pingTransaction", build, views.status, success="OK")


def commit(
    transaction: Transaction = "a",
    stream: str = "st",
    scope: ScopeName = "sc",
    *,
    writer: str = "",
    timestamp: int = 0,
) -> Step:
    return call(
        "commitTransaction",
        lambda run: _request(run, transaction, stream, scope, writer, timestamp),
        views.status,
    )


def abort(transaction: Transaction = "a", stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("abortTransaction", lambda run: _request(run, transaction, stream, scope), views.status)


def state(transaction: Transaction = "a", stream: str = "st", scope: ScopeName = "sc") -> Step:
    """Without more it has to be open."""
    return call(
        "checkTransactionState", lambda run: _request(run, transaction, stream, scope), views.status, success="OPEN"
    )


def committed(*transactions: Transaction) -> tuple[Step, ...]:
    """Wait until they are."""
    return tuple(state(one).until("COMMITTED", _ENDS_IN_S) for one in transactions)


def aborted(*transactions: Transaction) -> tuple[Step, ...]:
    """Wait until they are; also long enough for the least lease to run out."""
    return tuple(state(one).until("ABORTED", _ENDS_IN_S) for one in transactions)


def completed(stream: str = "st", scope: ScopeName = "sc") -> Step:
    """Gives the outcome of each by its name in the case, or by its id if it has none."""

    def build(run: Run) -> pb.ListCompletedTxnRequest:
        return pb.ListCompletedTxnRequest(streamInfo=info(run, stream, scope))

    def view(run: Run, answer: pb.ListCompletedTxnResponse) -> dict[str, str]:
        begun = {key: kept.txnId for key, kept in run.answers.items() if isinstance(kept, pb.CreateTxnResponse)}
        names = {(id.highBits, id.lowBits): key.removeprefix(_key("")) for key, id in begun.items()}
        found = {}
        for one in answer.response:
            id = one.txnId.highBits, one.txnId.lowBits
            found[names.get(id, str(id))] = views.status(run, one)
        return found

    return call("listCompletedTransactions", build, view)


def together(*steps: Step) -> Step:
    """Steps side by side; gives all answers in the order of the steps."""

    async def act(run: Run) -> list[Any]:
        return await asyncio.gather(*(one.act(run) for one in steps))

    return step(" | ".join(one.title for one in steps), act)


def twice_at_once(delete: Step, missing: str) -> Step:
    """A deletion by two callers side by side; the one that comes when all is done may find nothing."""
    fits = {("SUCCESS", "SUCCESS"), ("SUCCESS", missing), (missing, "SUCCESS")}
    return together(delete, delete).gives(Such("deletes it", lambda answers: tuple(answers) in fits))


def ids_are_right(*names: str) -> Step:
    """Whether all ids are different and read back by all clients (controller-grpc-api 6.2)."""

    async def act(run: Run) -> bool:
        ids = [_begun(run, name).txnId for name in names]
        distinct = {id.lowBits for id in ids}
        return len(distinct) == len(ids) and all(id.highBits >= 0 and id.lowBits >= 0 for id in ids)

    return step("ids", act, success=True)


# --- the data plane


def _segment(run: Run, transaction: str, stream: str, segment: int) -> str:
    id = _begun(run, transaction).txnId
    return transaction_segment_name(run.scope("sc"), stream, segment, id.highBits, id.lowBits)


async def _with_store(run: Run, stream: str, segment: int, use: Callable[[SegmentStoreClient], Awaitable[Any]]) -> Any:
    """What comes of using the store that has a segment and its transactions; `gone`, `sealed` or `not now` if not."""
    store = await run.target.store_of(run.scope("sc"), stream, segment)
    try:
        return await use(store)
    except SegmentMissing:
        return "gone"
    except SegmentSealed:
        return "sealed"
    except TryLater:
        return "not now"
    finally:
        await store.close()


def put(text: str, transaction: str = "a", segment: int = 0, stream: str = "st") -> Step:
    """Write one event in a transaction, for a segment; gives `written`, `gone`, `sealed` or `not now`."""

    async def act(run: Run) -> Any:
        async def append(store: SegmentStoreClient) -> str:
            await store.append(_segment(run, transaction, stream, segment), uuid4(), text.encode())
            return "written"

        return await _with_store(run, stream, segment, append)

    return step(f"write {text!r} in transaction {transaction}", act, success="written")


def part(transaction: str = "a", segment: int = 0, stream: str = "st") -> Step:
    """Gives what became of a transaction's segment: `open`, `sealed` or `gone`. Without more it has to be open."""

    async def act(run: Run) -> Any:
        async def look(store: SegmentStoreClient) -> str:
            info = await store.segment_info(_segment(run, transaction, stream, segment))
            return "sealed" if info.sealed else "open"

        return await _with_store(run, stream, segment, look)

    return step(f"segment {segment} of transaction {transaction}", act, success="open")


def events(segment: int = 0, stream: str = "st") -> Step:
    """Gives the texts of the events in a segment."""

    async def act(run: Run) -> Any:
        async def read(store: SegmentStoreClient) -> list[str]:
            data = await content(store, segment_name(run.scope("sc"), stream, segment))
            found = split_events(data, 0)
            assert found.end == len(data)
            return [event.data.decode() for event in found.events]

        return await _with_store(run, stream, segment, read)

    return step(f"events of segment {segment}", act)
