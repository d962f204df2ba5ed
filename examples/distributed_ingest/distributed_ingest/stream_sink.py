"""The stream as a sink: each call writes with a writer of the client library that no other call uses meanwhile.

Writers are kept and used again, because a segment remembers for ever each writer that has written to it. One whose call
has failed, or was cancelled, is dropped: it holds events of which only that call knew.

Concurrency: belongs to one event loop; there are as many writers as calls have ever overlapped.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from distributed_ingest.records import Event
from distributed_ingest.sink import Sink, SinkError, StreamEndedError
from sluice_client import Client, ClientError, EventWriter, SegmentStoreError, StreamMissing, StreamSealed

PATIENCE_S = 30.0
"""For how long a block of events is sent again while the stream does not take it."""


class StreamSink:
    """See Sink."""

    def __init__(self, client: Client, scope: str, stream: str, patience_s: float = PATIENCE_S) -> None:
        self._store = client.store
        self._ranges = partial(client.controller.key_ranges, scope, stream)
        self._patience_s = patience_s
        self._idle: list[EventWriter] = []
        self._name = f"{scope}/{stream}"

    async def write(self, events: Sequence[Event]) -> None:
        """See Sink."""
        writer = self._idle.pop() if self._idle else EventWriter(self._store, self._ranges, self._patience_s)
        try:
            for event in events:
                writer.add(event.key, event.data)
            await writer.flush()
        except (StreamSealed, StreamMissing) as error:
            raise StreamEndedError(f"the stream {self._name} takes nothing any more: {error}") from error
        except (ClientError, SegmentStoreError) as error:
            raise SinkError(f"{error} (`sluice stream show {self._name}` may say why)") from error
        self._idle.append(writer)


@asynccontextmanager
async def opened(client: AbstractAsyncContextManager[Client], scope: str, stream: str) -> AsyncIterator[Sink]:
    """Open a client, and close it at the end of the block."""
    async with client as each:
        yield StreamSink(each, scope, stream)
