"""One connection to one segment store, shared by everyone who calls it.

A store answers requests in any order (segment-store-wire-protocol 1.5), so requests are sent as they come and replies
are matched by request id. The first exchange is Hello; KeepAlive finds out when the other side fell silent (1.3, 1.4).

Concurrency: everything runs on one event loop and no state changes across an `await`. Frames of one turn of the loop
go out in one write. At most `max_in_flight` requests are unanswered and `max_waiting` callers wait for a slot; a
caller past that is refused at once. Every call has a deadline; a reply that comes later finds no caller and is dropped.
"""

import asyncio
import itertools
import math
import socket
import ssl
from collections.abc import Callable
from typing import cast
from uuid import UUID

import msgspec

from sluice.addresses import bare
from sluice.domain.host import Host
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.wire.appends import (
    AppendBlockEnd,
    ConditionalAppend,
    ConditionalCheckFailed,
    DataAppended,
    ReadSegment,
    SetupAppend,
)
from sluice.pravega.wire.command import NO_REQUEST_ID, Command, Numbered
from sluice.pravega.wire.frame import HEADER, Unencodable, WireError, decode, encode, payload_size
from sluice.pravega.wire.hello import OLDEST_COMPATIBLE_VERSION, WIRE_VERSION, Hello, KeepAlive
from sluice.pravega.wire.refusals import AuthTokenCheckFailed, InvalidEventNumber

# Far above any offset: a store that fails a read's token sends the read's offset instead of its request id.
_request_ids = itertools.count(1 << 62)


def next_request_id() -> int:
    """A request id that no other call of this process has."""
    return next(_request_ids)


class ConnectionLimits(msgspec.Struct, frozen=True):
    """The bounds of one connection, in seconds and requests."""

    connect_timeout_s: float = 5.0
    keep_alive_s: float = 10.0
    silence_limit_s: float = 30.0
    network_limit_s: float = 5.0
    """For so long the other machine may leave unacknowledged that it received something: the network is gone then.

    TCP itself would try once more ever later, and come back as long after a cut as that had lasted.
    """
    idle_limit_s: float = 60.0
    max_in_flight: int = 1024
    max_waiting: int = 8192
    max_setups: int = 2000
    """A store remembers every writer set up on a connection for as long as the connection exists (7.1, point 10)."""


class _Call(msgspec.Struct):
    request: Numbered
    reply: asyncio.Future[Command]
    deadline: float


class Connection(asyncio.Protocol):
    """A multiplexed connection; `open` makes one.

    `on_gone` is called when no new call should use it any more, and when it is lost, which may be the same moment.
    """

    def __init__(self, host: Host, limits: ConnectionLimits, on_gone: Callable[["Connection"], None]) -> None:
        self.host = host
        self.dropped_replies = 0
        """Replies that came after their call had ended."""
        self._limits = limits
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._greeted: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._lost: tuple[Failure, str] | None = None
        self._pending: dict[int, _Call] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._expires_at = math.inf
        self._slots = asyncio.Semaphore(limits.max_in_flight)
        self._waiting = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._outbox: list[bytes] = []
        self._inbox = bytearray()
        self._awaited_bytes = HEADER.size
        self._setups = 0
        self._retired = False
        self._last_received_at = self._used_at = self._loop.time()
        self._ticker: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls,
        host: Host,
        limits: ConnectionLimits,
        on_gone: Callable[["Connection"], None],
        tls: ssl.SSLContext | None = None,
    ) -> "Connection":
        """Connects and exchanges Hello within `connect_timeout_s`.

        Raises ConnectionFailure: CONNECT_FAILED, INCOMPATIBLE, or what ended the connection meanwhile.
        """
        connection = cls(host, limits, on_gone)
        try:
            async with asyncio.timeout(limits.connect_timeout_s):
                await connection._loop.create_connection(lambda: connection, bare(host.address), host.port, ssl=tls)
                await connection._greeted
        except (OSError, OverflowError, ValueError) as error:
            # A store may have published what is neither a name nor a port.
            connection._lose(Failure.CONNECT_FAILED, str(error) or "no answer in time")
            raise ConnectionFailure(Failure.CONNECT_FAILED, str(error) or "no answer in time") from error
        except asyncio.CancelledError:
            connection._lose(Failure.CLOSED, "no caller waits for it any more")
            raise
        return connection

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._lost is not None

    async def call(self, request: Numbered, timeout_s: float) -> Command:
        """Sends a request and returns its reply, whatever it says.

        Raises ConnectionFailure if there is none within `timeout_s`, the wait for a free slot included.
        """
        deadline = self._loop.time() + timeout_s
        if self._slots.locked() or not self._writable.is_set():
            await self._wait_for_slot(deadline)
        else:
            await self._slots.acquire()
        try:
            if self._lost is not None:
                raise ConnectionFailure(*self._lost)
            return await self._submit(request, deadline)
        finally:
            self._pending.pop(request.request_id, None)
            self._slots.release()
            self._end_if_worn_out(request)

    def _end_if_worn_out(self, last: Numbered) -> None:
        """Ends a retired connection with its last call; not with a set-up, because the append is to follow.

        If it does not follow, the connection ends when it was idle for long.
        """
        busy = bool(self._pending) or self._waiting > 0 or isinstance(last, SetupAppend)
        if self._retired and not busy and self._lost is None:
            self._lose(Failure.CLOSED, "as many writers were set up on it as may be")

    async def close(self) -> None:
        """Ends the connection and the calls on it, and returns when the socket is closed."""
        self._lose(Failure.CLOSED, "")
        if self._transport is not None:
            await self._ended

    async def _wait_for_slot(self, deadline: float) -> None:
        """Waits for a free slot on a connection that takes bytes; the slot is the caller's on return."""
        if self._waiting >= self._limits.max_waiting:
            raise ConnectionFailure(Failure.OVERLOADED, f"{self._waiting} calls wait already")
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._writable.wait()
                await self._slots.acquire()
        except TimeoutError:
            raise ConnectionFailure(Failure.OVERLOADED, "no free slot in time") from None
        finally:
            self._waiting -= 1

    def _submit(self, request: Numbered, deadline: float) -> "asyncio.Future[Command]":
        try:
            frame = encode(cast(Command, request))
        except Unencodable as error:
            raise ConnectionFailure(Failure.UNENCODABLE, str(error)) from error
        if isinstance(request, SetupAppend):
            self._count_setup()
        self._used_at = self._loop.time()
        reply: asyncio.Future[Command] = self._loop.create_future()
        self._pending[request.request_id] = _Call(request, reply, deadline)
        if deadline < self._expires_at:
            self._expire_at(deadline)
        self._send(frame)
        return reply

    def _count_setup(self) -> None:
        self._setups += 1
        if self._setups >= self._limits.max_setups and not self._retired:
            self._retired = True
            self._on_gone(self)

    def _expire_at(self, deadline: float) -> None:
        """One timer, for the earliest deadline: nearly no call reaches its own, and a timer costs more than to look."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expires_at = deadline
        self._expiry = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._expiry, self._expires_at = None, math.inf
        now = self._loop.time()
        for call in self._pending.values():
            if call.deadline <= now and not call.reply.done():
                call.reply.set_exception(ConnectionFailure(Failure.TIMED_OUT, type(call.request).__name__))
        left = [call.deadline for call in self._pending.values() if not call.reply.done()]
        if left:
            self._expire_at(min(left))

    # Sending

    def _send(self, frame: bytes) -> None:
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(frame)

    def _flush(self) -> None:
        frames, self._outbox = self._outbox, []
        if self._transport is not None and self._lost is None:
            self._transport.write(b"".join(frames) if len(frames) > 1 else frames[0])

    def pause_writing(self) -> None:
        """The socket is full: calls wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The socket takes bytes again."""
        self._writable.set()

    # Receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends Hello, the first message of either side."""
        self._transport = cast(asyncio.Transport, transport)
        if self._lost is not None:
            self._transport.abort()
            return
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self._limits.network_limit_s * 1000))
        self._send(encode(Hello(WIRE_VERSION, OLDEST_COMPATIBLE_VERSION)))
        self._ticker = self._loop.call_later(self._limits.keep_alive_s, self._tick)

    def data_received(self, data: bytes) -> None:
        """Takes whole frames off the stream of bytes and hands each to the call it answers."""
        self._last_received_at = self._loop.time()
        inbox = self._inbox
        inbox += data
        if len(inbox) < self._awaited_bytes:
            return
        at = 0
        try:
            while len(inbox) - at >= HEADER.size:
                code, size = payload_size(inbox, at)
                start = at + HEADER.size
                if start + size > len(inbox):
                    break
                at = start + size
                self._receive(decode(code, bytes(inbox[start:at])))
            del inbox[:at]
            self._awaited_bytes = HEADER.size + (payload_size(inbox)[1] if len(inbox) >= HEADER.size else 0)
        except WireError as error:
            self._lose(Failure.MALFORMED, f"{type(error).__name__}: {error}")

    def _receive(self, command: Command) -> None:
        if isinstance(command, Hello):
            self._greet(command)
        elif not isinstance(command, KeepAlive):
            call = self._call_of(command)
            if call is None:
                self.dropped_replies += 1
            elif not call.reply.done():
                call.reply.set_result(command)

    def _greet(self, hello: Hello) -> None:
        if hello.low_version > WIRE_VERSION or hello.high_version < OLDEST_COMPATIBLE_VERSION:
            self._lose(Failure.INCOMPATIBLE, f"it speaks {hello.low_version} to {hello.high_version}")
        elif not self._greeted.done():
            self._greeted.set_result(None)

    def _call_of(self, reply: Command) -> _Call | None:
        request_id: int = getattr(reply, "request_id", NO_REQUEST_ID)
        if isinstance(reply, DataAppended | ConditionalCheckFailed | InvalidEventNumber):
            return self._append_of(reply, request_id)
        call = self._pending.get(request_id)
        if call is None and isinstance(reply, AuthTokenCheckFailed):
            return next((c for c in self._pending.values() if _reads_from(c.request, request_id)), None)
        return call

    def _append_of(
        self, reply: DataAppended | ConditionalCheckFailed | InvalidEventNumber, request_id: int
    ) -> _Call | None:
        """The append of the reply's writer; by writer alone if the store is too old to say which request it answers."""
        if request_id != NO_REQUEST_ID:
            call = self._pending.get(request_id)
            return call if call is not None and _appends_for(call.request, reply.writer_id) else None
        return next((c for c in self._pending.values() if _appends_for(c.request, reply.writer_id)), None)

    # The end

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed, by whichever side."""
        if exc is None:
            self._lose(Failure.CLOSED_BY_PEER, "")
        else:
            self._lose(Failure.LOST, str(exc) or type(exc).__name__)
        self._ended.set_result(None)

    def _tick(self) -> None:
        limits, now = self._limits, self._loop.time()
        silent_s = now - self._last_received_at
        if silent_s >= limits.silence_limit_s:
            self._lose(Failure.SILENT, f"nothing for {silent_s:.1f} s")
            return
        if not self._pending and now - self._used_at >= limits.idle_limit_s:
            self._lose(Failure.CLOSED, "no caller used the connection")
            return
        if silent_s >= limits.keep_alive_s:
            self._send(encode(KeepAlive()))
        self._ticker = self._loop.call_later(limits.keep_alive_s, self._tick)

    def _lose(self, failure: Failure, detail: str) -> None:
        """Ends the connection for the first reason given; all calls on it end with that."""
        if self._lost is not None:
            return
        self._lost = (failure, detail)
        for timer in (self._ticker, self._expiry):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._writable.set()
        pending, self._pending = self._pending, {}
        for call in pending.values():
            if not call.reply.done():
                call.reply.set_exception(ConnectionFailure(failure, detail))
        if not self._greeted.done():
            self._greeted.set_exception(ConnectionFailure(failure, detail))
            self._greeted.exception()
        self._on_gone(self)


def _reads_from(request: Numbered, offset: int) -> bool:
    return isinstance(request, ReadSegment) and request.offset == offset


def _appends_for(request: Numbered, writer_id: UUID) -> bool:
    return isinstance(request, AppendBlockEnd | ConditionalAppend) and request.writer_id == writer_id
