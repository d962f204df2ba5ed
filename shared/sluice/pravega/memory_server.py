"""A segment store in memory that clients reach over sockets: the twin behind Pravega's wire protocol.

What is stored and what is answered is the twin's. Here stands what a connection adds (segment-store-wire-protocol 1.3
to 1.7, 2.4): Hello and KeepAlive, blocks of appends that come in two frames, requests that wait beside others, tokens,
and the end where a segment store would hang up.

Concurrency: what appends is answered in its order, all other requests of a connection side by side. One loop.
"""

import asyncio
import logging
import math
import ssl
import time
from typing import cast

from sluice.addresses import bare
from sluice.domain.host import Host
from sluice.pravega.failure import ConnectionFailure
from sluice.pravega.memory import Append, InMemorySegmentStore, Writers
from sluice.pravega.memory_tokens import TokenVerifier
from sluice.pravega.tokens import expiry_of
from sluice.pravega.wire import appends, others, refusals, segments
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.frame import HEADER, MalformedFrame, UnknownCommand, decode, encode, payload_size
from sluice.pravega.wire.hello import OLDEST_COMPATIBLE_VERSION, WIRE_VERSION, Hello, KeepAlive
from sluice.telemetry.listening import listen

log = logging.getLogger(__name__)

_BACKLOG = 1_024


class MemoryStoreServer:
    """Serves a store in memory; `host` is where, from the start on."""

    def __init__(self, store: InMemorySegmentStore) -> None:
        self.store = store
        self.host = Host("", 0)
        self._serving: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._verifier: TokenVerifier | None = None

    async def start(
        self,
        address: str,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        verifier: TokenVerifier | None = None,
    ) -> None:
        """Listen; port 0 leaves it to the system. Without a verifier tokens are not looked at.

        Raises OSError if the port is taken.
        """
        self._verifier = verifier
        sockets = listen(bare(address), port)
        self.host = Host(address, sockets[0].getsockname()[1])
        for one in sockets:
            self._servers.append(await asyncio.start_server(self._serve, sock=one, ssl=tls, backlog=_BACKLOG))

    async def stop(self) -> None:
        """Listen no more, and hang up."""
        for server in self._servers:
            server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = cast("asyncio.Task[None]", asyncio.current_task())
        self._serving.add(serving)
        connection = _Connection(self.store, writer, self._verifier)
        try:
            async with asyncio.TaskGroup() as answers:
                while True:
                    code, size = payload_size(await reader.readexactly(HEADER.size))
                    await connection.receive(decode(code, await reader.readexactly(size)), answers)
                    await writer.drain()
        except* (asyncio.IncompleteReadError, ConnectionError, ConnectionFailure, MalformedFrame, UnknownCommand):
            # A segment store says nothing either when it hangs up.
            pass
        except* Exception:
            log.exception("connection ended")
        finally:
            self._serving.discard(serving)
            connection.end()
            writer.close()


class _Connection:
    """What is known of one connection: its writers, a block that has begun, and its transient segments.

    It ends when the token of one of its writers does (security 4.7).
    """

    def __init__(
        self, store: InMemorySegmentStore, writer: asyncio.StreamWriter, verifier: TokenVerifier | None
    ) -> None:
        self._store = store
        self._writer = writer
        self._verifier = verifier
        self._expiries: list[asyncio.TimerHandle] = []
        self._writers: Writers = {}
        self._block: others.AppendBlock | None = None
        self._transient: list[str] = []

    async def receive(self, command: Command, answers: asyncio.TaskGroup) -> None:
        """Answer, now or as one of the `answers`; raises where the connection ends."""
        if isinstance(command, Hello):
            self._send(Hello(WIRE_VERSION, OLDEST_COMPATIBLE_VERSION))
            if command.low_version > WIRE_VERSION or command.high_version < OLDEST_COMPATIBLE_VERSION:
                raise MalformedFrame(f"it speaks {command.low_version} to {command.high_version}")
        elif isinstance(command, KeepAlive):
            self._send(command)
        elif isinstance(command, others.AppendBlock):
            self._block = command
        elif not isinstance(command, others.Padding):
            request = self._joined(command)
            if isinstance(request, appends.SetupAppend | Append):
                await self._answer(request)
            else:
                answers.create_task(self._answer(request))

    def end(self) -> None:
        """It is closed, by whichever side."""
        for expiry in self._expiries:
            expiry.cancel()
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
        request = cast(Numbered, command)
        refusal = None if self._verifier is None else self._verifier.refusal(command)
        if refusal is not None:
            self._refuse(request, refusal)
            return
        reply = await self._store.call(request, None, self._writers)
        self._send(reply)
        if self._verifier is not None and isinstance(reply, appends.AppendSetup):
            self._end_with(cast(appends.SetupAppend, command).token)
        if isinstance(command, segments.CreateTransientSegment) and isinstance(reply, segments.SegmentCreated):
            self._transient.append(reply.segment)
        if isinstance(reply, refusals.InvalidEventNumber):
            raise MalformedFrame(f"event number {reply.event_number} of {reply.writer_id}")

    def _refuse(self, request: Numbered, error_code: int) -> None:
        self._send(refusals.AuthTokenCheckFailed(request.request_id, "", error_code))
        if error_code == refusals.TOKEN_EXPIRED and isinstance(request, appends.SetupAppend):
            raise MalformedFrame(f"writer {request.writer_id} has a token that has expired")

    def _end_with(self, token: str) -> None:
        left_s = expiry_of(token) - time.time()
        if left_s < math.inf:
            self._expiries.append(asyncio.get_running_loop().call_later(left_s, self._writer.close))

    def _send(self, command: Command) -> None:
        if not self._writer.is_closing():
            self._writer.write(encode(command))
