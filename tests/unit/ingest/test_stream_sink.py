"""The stream as a sink, on a cluster in memory: what is acknowledged is stored; a failure leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from support.wait import SOON_S

from distributed_ingest import stream_sink
from distributed_ingest.records import Event
from distributed_ingest.sink import SinkError, StreamEndedError
from distributed_ingest.stream_sink import StreamSink
from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice_client import Client, EventWriter, open_client, split_events


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_client("memory:") as client:
        await client.controller.create_scope("demo")
        await client.controller.create_stream("demo", "lines", segments=2)
        yield client


@pytest.fixture
def store(client: Client) -> InMemorySegmentStore:
    assert isinstance(client.store, InMemorySegmentStore)
    return client.store


def sink_of(client: Client, patience_s: float = SOON_S) -> StreamSink:
    return StreamSink(client, "demo", "lines", patience_s)


def events(*texts: str) -> list[Event]:
    return [Event(text.encode(), "k") for text in texts]


def stored_in_stream(store: InMemorySegmentStore) -> list[str]:
    """Without what open transactions have."""
    return stored(store, lambda name: "transaction" not in name)


def stored(store: InMemorySegmentStore, wanted: Callable[[str], bool] = lambda _: True) -> list[str]:
    return [
        event.data.decode()
        for name, segment in sorted(store.segments.items())
        if name.startswith("demo/lines/") and wanted(name)
        for event in split_events(segment.data, 0).events
    ]


async def test_what_is_acknowledged_is_stored_in_order_by_few_writers(
    client: Client, store: InMemorySegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment remembers every writer, so there are no more than calls that overlap."""
    made: list[EventWriter] = []

    class Counted(EventWriter):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(stream_sink, "EventWriter", Counted)
    sink = sink_of(client)
    for group in range(10):
        await asyncio.gather(*(sink.write(events(f"{group}-{n}a", f"{group}-{n}b")) for n in range(3)))
    found = stored(store)
    assert sorted(found) == sorted(f"{group}-{n}{part}" for group in range(10) for n in range(3) for part in "ab")
    assert all(found.index(f"{text[:-1]}a") < found.index(text) for text in found if text.endswith("b"))
    assert len(made) == 3
    await sink.write([Event(b"x" * 3_000_000, None)])
    assert sum(len(text) == 3_000_000 for text in stored(store)) == 1


async def test_a_batch_whose_answer_is_lost_is_stored_once(client: Client, store: InMemorySegmentStore) -> None:
    def lost(moment: str, request: str, segment: str) -> None:
        if (moment, request) == ("after", "AppendBlockEnd"):
            store.fault = None
            raise ConnectionFailure(Failure.LOST, segment)

    store.fault = lost
    await sink_of(client).write(events("one", "two"))
    assert stored(store) == ["one", "two"]


async def test_a_failed_write_is_reported_and_the_next_one_has_nothing_of_it(
    client: Client, store: InMemorySegmentStore
) -> None:
    def away(_moment: str, _request: str, segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED, segment)

    sink = sink_of(client, patience_s=0.05)
    store.fault = away
    with pytest.raises(SinkError, match=r"`sluice stream show demo/lines` may say why"):
        await sink.write(events("one"))
    store.fault = None
    await sink.write(events("two"))
    assert stored(store) == ["two"]


async def test_a_cancelled_write_begins_no_further_attempt(client: Client, store: InMemorySegmentStore) -> None:
    """Its lock is lost, so the task that wrote is cancelled; the next holder writes these events."""
    under_way = asyncio.Event()

    async def hang(_moment: str, _request: str, _segment: str) -> None:
        under_way.set()
        await asyncio.Event().wait()

    sink = sink_of(client)
    store.fault = hang
    writing = asyncio.create_task(sink.write(events("one")))
    await under_way.wait()
    writing.cancel()
    await asyncio.wait((writing,))
    store.fault = None
    await sink.write(events("two"))
    assert writing.cancelled() and stored(store) == ["two"]


async def test_a_transaction_is_in_the_stream_with_its_commit(client: Client, store: InMemorySegmentStore) -> None:
    sink = sink_of(client)
    async with sink.transaction() as transaction:
        await transaction.write(events("one"))
        await transaction.write(events("two"))
        assert not {"one", "two"} & set(stored_in_stream(store))
        await transaction.commit()
    assert stored_in_stream(store) == ["one", "two"] and await sink.is_committed(transaction.id)


async def test_a_transaction_that_is_asked_about_while_it_is_open_never_commits(
    client: Client, store: InMemorySegmentStore
) -> None:
    """Its holder was frozen; the next one asked."""
    sink = sink_of(client)
    async with sink.transaction() as transaction:
        await transaction.write(events("one"))
        assert not await sink.is_committed(transaction.id)
        with pytest.raises(SinkError, match="The transaction is not open any more"):
            await transaction.commit()
    assert stored_in_stream(store) == [] and not await sink.is_committed(transaction.id)
    assert not await sink.is_committed("00000000-0000-0000-8000-000000000009")


async def test_a_stream_that_is_sealed_or_gone_has_ended(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        StreamEndedError, match="the stream demo/none takes nothing any more: The stream does not exist"
    ):
        await StreamSink(client, "demo", "none").write(events("one"))

    async def no_ranges(_scope: str, _stream: str) -> list[tuple[float, str]]:
        return []

    monkeypatch.setattr(client.controller, "key_ranges", no_ranges)
    with pytest.raises(StreamEndedError, match="the stream demo/lines takes nothing any more: The stream is sealed"):
        await sink_of(client).write(events("one"))
