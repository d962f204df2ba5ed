"""The stream as a sink: each call writes with a writer of the client library that no other call uses meanwhile.

Writers are kept and used again, because a segment remembers for ever each writer that has written to it. One whose call
has failed, or was cancelled, is dropped: it holds events of which only that call knew.

Concurrency: belongs to one event loop; there are as many writers as calls have ever overlapped.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from uuid import UUID

from distributed_ingest.records import Event
from distributed_ingest.sink import Sink, SinkError, StreamEndedError, Transaction
from sluice_client import (
    Client,
    ClientError,
    EventWriter,
    Refused,
    SegmentStoreError,
    StreamMissing,
    StreamSealed,
    TransactionStatus,
)
from sluice_client import Transaction as BegunTransaction

PATIENCE_S = 30.0
"""For how long a block of events is sent again while the stream does not take it."""


class StreamSink:
    """See Sink."""

    def __init__(self, client: Client, scope: str, stream: str, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._names = scope, stream
        self._name = f"{scope}/{stream}"
        self._ranges = partial(client.controller.key_ranges, scope, stream)
        self._patience_s = patience_s
        self._idle: list[EventWriter] = []

    async def write(self, events: Sequence[Event]) -> None:
        """See Sink."""
        writer = self._idle.pop() if self._idle else EventWriter(self._client.store, self._ranges, self._patience_s)
        with _failures(self._name):
            for event in events:
                writer.add(event.key, event.data)
            await writer.flush()
        self._idle.append(writer)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """See Sink."""
        with _failures(self._name):
            begun = await self._client.begin_transaction(*self._names)
        async with begun:
            yield _StreamTransaction(begun, self._name)

    async def is_committed(self, id: str) -> bool:
        """See Sink."""
        with _failures(self._name):
            found = await self._client.resume_transaction(*self._names, UUID(id))
            async with found:
                try:
                    await found.abort()
                except Refused:
                    return await found.status() in (TransactionStatus.COMMITTING, TransactionStatus.COMMITTED)
        return False


class _StreamTransaction:
    """See Transaction."""

    def __init__(self, begun: BegunTransaction, stream: str) -> None:
        self._begun = begun
        self._stream = stream

    @property
    def id(self) -> str:
        return str(self._begun.id)

    async def write(self, events: Sequence[Event]) -> None:
        """See Transaction."""
        with _failures(self._stream):
            for event in events:
                self._begun.add(event.key, event.data)
            await self._begun.flush()

    async def commit(self) -> None:
        """See Transaction."""
        with _failures(self._stream):
            await self._begun.commit()


@contextmanager
def _failures(stream: str) -> Iterator[None]:
    """Turn what the client raises into what a Sink does."""
    try:
        yield
    except (StreamSealed, StreamMissing) as error:
        raise StreamEndedError(f"the stream {stream} takes nothing any more: {error}") from error
    except (ClientError, SegmentStoreError) as error:
        raise SinkError(f"{error} (`sluice stream show {stream}` may say why)") from error


@asynccontextmanager
async def opened(client: AbstractAsyncContextManager[Client], scope: str, stream: str) -> AsyncIterator[Sink]:
    """Open a client, and close it at the end of the block."""
    async with client as each:
        yield StreamSink(each, scope, stream)
