"""A segment store in memory that clients reach over sockets: the twin behind Pravega's wire protocol.

What is stored and what is answered is the twin's. Here stands what a connection adds (segment-store-wire-protocol 1.3
to 1.7, 2.4): Hello and KeepAlive, blocks of appends that come in two frames, reads that wait beside all else, and the
end where a segment store would hang up.

Concurrency: requests of a connection are answered one after the other, but for reads, which wait for data. One loop.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import cast

from sluice.addresses import bare
from sluice.domain.host import Host
from sluice.pravega.failure import ConnectionFailure
from sluice.pravega.memory import InMemorySegmentStore, Writers
from sluice.pravega.wire import appends, others, refusals, segments
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.frame import HEADER, MalformedFrame, WireError, decode, encode, payload_size
from sluice.pravega.wire.hello import OLDEST_COMPATIBLE_VERSION, WIRE_VERSION, Hello, KeepAlive

_BACKLOG = 1_024


class MemoryStoreServer:
    """Serves a store in memory; `host` is where, from the start on."""

    def __init__(self, store: InMemorySegmentStore) -> None:
        self.store = store
        self.host = Host("", 0)
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen; port 0 leaves it to the system. Raises OSError if the port is taken."""
        self._server = await asyncio.start_server(self._serve, bare(address), port, ssl=tls, backlog=_BACKLOG)
        self.host = Host(address, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no more, and hang up."""
        if self._server is not None:
            self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = cast("asyncio.Task[None]", asyncio.current_task())
        self._serving.add(serving)
        connection = _Connection(self.store, writer)
        try:
            while True:
                code, size = payload_size(await reader.readexactly(HEADER.size))
                await connection.receive(decode(code, await reader.readexactly(size)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ConnectionFailure, WireError, asyncio.CancelledError):
            # A segment store says nothing either when it hangs up.
            return
        finally:
            self._serving.discard(serving)
            await connection.end()
            writer.close()


class _Connection:
    """What is known of one connection: its writers, a block that has begun, its reads and its transient segments."""

    def __init__(self, store: InMemorySegmentStore, writer: asyncio.StreamWriter) -> None:
        self._store = store
        self._writer = writer
        self._writers: Writers = {}
        self._block: others.AppendBlock | None = None
        self._reads: set[asyncio.Task[None]] = set()
        self._transient: list[str] = []

    async def receive(self, command: Command) -> None:
        """Answer, now or later. Raises ConnectionFailure or WireError where the connection ends."""
        if isinstance(command, Hello):
            self._send(Hello(WIRE_VERSION, OLDEST_COMPATIBLE_VERSION))
            if command.low_version > WIRE_VERSION or command.high_version < OLDEST_COMPATIBLE_VERSION:
                raise MalformedFrame(f"it speaks {command.low_version} to {command.high_version}")
        elif isinstance(command, KeepAlive):
            self._send(command)
        elif isinstance(command, others.AppendBlock):
            self._block = command
        elif isinstance(command, appends.ReadSegment):
            read = asyncio.get_running_loop().create_task(self._read(command))
            self._reads.add(read)
            read.add_done_callback(self._reads.discard)
        elif not isinstance(command, others.Padding):
            await self._answer(self._joined(command))

    async def end(self) -> None:
        """It is closed, by whichever side."""
        for read in self._reads:
            read.cancel()
        await asyncio.gather(*self._reads, return_exceptions=True)
        for name in self._transient:
            self._store.segments.pop(name, None)

    def _joined(self, command: Command) -> Command:
        """An append with the block that came before it."""
        block, self._block = self._block, None
        if block is None:
            return command
        if not isinstance(command, appends.AppendBlockEnd) or command.writer_id != block.writer_id:
            raise MalformedFrame(f"{type(command).__name__} behind the block of {block.writer_id}")
        size = command.size_of_whole_events
        data, rest = block.data[:size], block.data[size:]
        if rest:
            code, _ = payload_size(rest)
            begun = decode(code, rest[HEADER.size :])
            data += begun.data + command.data if isinstance(begun, others.PartialEvent) else b""
        return appends.AppendBlockEnd(
            command.writer_id, size, data, command.num_events, command.last_event_number, command.request_id
        )

    async def _answer(self, command: Command) -> None:
        if not hasattr(command, "request_id"):
            raise MalformedFrame(f"{type(command).__name__} is no request")
        reply = await self._store.call(cast(Numbered, command), None, self._writers)
        self._send(reply)
        if isinstance(command, segments.CreateTransientSegment) and isinstance(reply, segments.SegmentCreated):
            self._transient.append(reply.segment)
        if isinstance(reply, refusals.InvalidEventNumber):
            raise MalformedFrame(f"event number {reply.event_number} of {reply.writer_id}")

    async def _read(self, request: appends.ReadSegment) -> None:
        with suppress(ConnectionFailure):
            self._send(await self._store.call(request, None, self._writers))
            return
        self._writer.close()

    def _send(self, command: Command) -> None:
        if not self._writer.is_closing():
            self._writer.write(encode(command))
