"""Transactions on the twins in memory: all or nothing, kept alive, ended elsewhere. In virtual time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from sluice.controller_api import controller_pb2 as pb
from sluice_client import (
    Client,
    Refused,
    ScalingPolicy,
    StreamConfig,
    StreamMissing,
    Transaction,
    TransactionEnded,
    TransactionStatus,
    Unavailable,
    open_client,
    split_events,
)

KEYS = [f"key-{number}" for number in range(20)]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_client("memory:") as client:
        await client.streams.create_scope("sc")
        await client.streams.create_stream("sc", "st", StreamConfig(ScalingPolicy(min_segments=2)))
        yield client


async def _begin(client: Client) -> Transaction:
    return await client.begin_transaction("sc", "st")


async def _read(client: Client) -> list[bytes]:
    """All events, those of the segments that came first at the beginning."""
    found, segments = list[bytes](), list(await client.controller.head("sc", "st"))
    for segment in segments:
        data = (await client.store.read_segment(segment, 0, 1 << 20)).data
        found += [event.data for event in split_events(data, 0).events]
        segments += sorted((await client.controller.successors(segment)).keys() - set(segments))
    return found


async def test_what_is_written_in_a_transaction_is_read_when_it_is_committed(client: Client) -> None:
    async with await _begin(client) as transaction:
        for key in KEYS:
            transaction.add(key, key.encode())
        await transaction.flush()
        assert await _read(client) == []
        assert await transaction.status() is TransactionStatus.OPEN
    assert sorted(await _read(client)) == sorted(key.encode() for key in KEYS)
    assert await transaction.status() is TransactionStatus.COMMITTED


async def test_the_events_of_a_key_go_where_other_writers_write_them(client: Client) -> None:
    writer = client.event_writer("sc", "st")
    writer.add("hello", b"1")
    await writer.flush()
    async with await _begin(client) as transaction:
        transaction.add("hello", b"2")
    assert await _read(client) == [b"1", b"2"]


async def test_an_error_in_the_block_aborts_the_transaction(client: Client) -> None:
    transaction = await _begin(client)

    async def fail() -> None:
        async with transaction:
            transaction.add("hello", b"1")
            await transaction.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await transaction.status() is TransactionStatus.ABORTED
    assert await _read(client) == []


async def test_what_ended_inside_the_block_is_not_ended_again(client: Client) -> None:
    async with await _begin(client) as transaction:
        transaction.add("hello", b"1")
        await transaction.abort()
    assert await _read(client) == []
    for call in (transaction.flush(), transaction.commit(), transaction.abort()):
        with pytest.raises(TransactionEnded):
            await call
    with pytest.raises(TransactionEnded):
        transaction.add("hello", b"2")


async def test_a_transaction_that_was_aborted_elsewhere_is_not_committed(client: Client) -> None:
    transaction = await _begin(client)
    other = await client.resume_transaction("sc", "st", transaction.id)
    await other.abort()
    with pytest.raises(TransactionEnded, match="commit FAILURE"):
        await transaction.commit()
    transaction = await _begin(client)
    other = await client.resume_transaction("sc", "st", transaction.id)
    await other.abort()
    transaction.add("hello", b"1")
    with pytest.raises(TransactionEnded):
        await transaction.flush()


async def test_a_block_whose_transaction_was_aborted_elsewhere_does_not_end_as_if_it_were_committed(
    client: Client,
) -> None:
    async def work() -> None:
        async with await _begin(client) as transaction:
            await (await client.resume_transaction("sc", "st", transaction.id)).abort()
            await asyncio.sleep(100.0)

    with pytest.raises(TransactionEnded):
        await work()


async def test_a_commit_whose_answer_is_lost_is_repeated_however_much_later(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, lost = client.controller.call, [Unavailable("the answer is lost")]

    async def lose(rpc: Any, request: Any) -> Any:
        answer = await call(rpc, request)
        if isinstance(request, pb.TxnRequest) and request.timestamp and lost:
            raise lost.pop()
        return answer

    transaction = await _begin(client)
    transaction.add("hello", b"1")
    monkeypatch.setattr(client.controller, "call", lose)
    with pytest.raises(Unavailable):
        await transaction.commit()
    await asyncio.sleep(100.0)
    with pytest.raises(TransactionEnded):
        transaction.add("hello", b"2")
    await transaction.commit()
    assert await _read(client) == [b"1"]


async def test_a_transaction_of_a_block_that_could_not_commit_is_not_kept_alive(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, pings = client.controller.call, 0

    async def refuse(rpc: Any, request: Any) -> Any:
        nonlocal pings
        if isinstance(request, pb.TxnRequest):
            raise Unavailable("no answer")
        pings += isinstance(request, pb.PingTxnRequest)
        return await call(rpc, request)

    monkeypatch.setattr(client.controller, "call", refuse)
    with pytest.raises(Unavailable):
        async with await _begin(client):
            pass
    await asyncio.sleep(100.0)
    assert not pings


async def test_a_transaction_is_finished_by_another_process(client: Client) -> None:
    transaction = await _begin(client)
    transaction.add("hello", b"1")
    await transaction.flush()
    async with await client.resume_transaction("sc", "st", transaction.id) as other:
        other.add("hello", b"2")
    assert await _read(client) == [b"1", b"2"]
    with pytest.raises(Refused, match="abort FAILURE"):
        await transaction.abort()


async def test_a_transaction_is_committed_although_its_stream_was_scaled(client: Client) -> None:
    transaction = await _begin(client)
    transaction.add("hello", b"1")
    await client.streams.scale(await client.controller.segments("sc", "st"), [(0.0, 1.0)])
    await transaction.commit()
    writer = client.event_writer("sc", "st")
    writer.add("hello", b"2")
    await writer.flush()
    assert await _read(client) == [b"1", b"2"]
    assert len(await client.controller.segments("sc", "st")) == 1


async def test_an_open_transaction_is_pinged_until_it_is_found_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So often as Java's client does: every 9.5 s for a lease of 90 s."""
    async with asyncio.timeout(100.0):
        transaction, pings = await _begin(client), 0
        ping = transaction.ping

        async def counted() -> bool:
            nonlocal pings
            pings += 1
            return await ping()

        monkeypatch.setattr(transaction, "ping", counted)
        await asyncio.sleep(60.0)
        assert pings == 6
        await (await client.resume_transaction("sc", "st", transaction.id)).abort()
        await asyncio.sleep(30.0)
        assert pings == 7
        with pytest.raises(TransactionEnded):
            transaction.add("hello", b"1")


async def test_there_is_no_transaction_on_a_stream_that_is_missing_or_sealed(client: Client) -> None:
    with pytest.raises(StreamMissing):
        await client.begin_transaction("sc", "nothing")
    unknown = await client.resume_transaction("sc", "st", UUID(int=7))
    assert await unknown.status() is TransactionStatus.UNKNOWN
    transaction = await _begin(client)
    await client.streams.seal_stream("sc", "st")
    assert await transaction.status() is TransactionStatus.ABORTED
