"""The connections of an HTTP server: bounded in number, and in the time for which one may keep the server waiting.

Who connects and says nothing, sends the head of a request slowly, or does not read its answer, needs no credentials for
it. So a connection that has no request under way is cut after a while, and before others when there are too many; one
whose answer is not read is cut when too little of it leaves. Belongs to the event loop.
"""

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
"""How long the head of a request may take, from the connection or the last answer on."""

READ_S = 30.0
MIN_READ_BYTES = 64 * 1024
"""As much of an answer that waits to be read must leave in each `READ_S`."""


class HttpBounds(msgspec.Struct, frozen=True):
    """`connections` bounds how many there are, `head_bytes` the head of a request."""

    connections: int = 1000
    head_bytes: int = 16 * 1024


class BoundedConnection(H11Protocol):
    """One connection of a server that may have `most`: one more cuts the one that has been idle longest, or itself.

    `idle` are the server's connections without a request under way, the longest idle first.
    """

    def __init__(self, most: int, idle: "dict[BoundedConnection, None]", *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._most = most
        self._idle = idle
        self._head_due: asyncio.TimerHandle | None = None
        self._read_due: asyncio.TimerHandle | None = None
        self._unread = 0
        self._left = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_idle()
        if len(self.connections) > self._most:
            next(iter(self._idle)).cut()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_idle()
        self._end_unread()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_busy():
            self._end_idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_busy() and not self.transport.is_closing():
            self._begin_idle()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._read_due = self.loop.call_later(READ_S, self._look_unread)

    def resume_writing(self) -> None:
        self._end_unread()
        super().resume_writing()

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin_idle(self) -> None:
        self._end_idle()
        self._idle[self] = None
        self._left = 0
        self._head_due = self.loop.call_later(HEAD_S, self._look_head)

    def _end_idle(self) -> None:
        self._idle.pop(self, None)
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _look_head(self) -> None:
        """No request has come; but the last answer may still be on its way."""
        left, before = self.transport.get_write_buffer_size(), self._left
        if left in (0, before):
            self.cut()
        else:
            self._left = left
            self._head_due = self.loop.call_later(HEAD_S, self._look_head)

    def _look_unread(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if self._unread - unread < MIN_READ_BYTES:
            self.cut()
        else:
            self._unread = unread
            self._read_due = self.loop.call_later(READ_S, self._look_unread)

    def _end_unread(self) -> None:
        if self._read_due is not None:
            self._read_due.cancel()
            self._read_due = None

    def cut(self) -> None:
        """End it, whatever is not sent yet."""
        self._end_idle()
        self.transport.abort()
