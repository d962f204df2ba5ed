"""The connections of an HTTP server: bounded in number, and in the time for which one may keep the server waiting.

Who connects and says nothing, sends the head of a request slowly, or does not read its answer, needs no credentials for
it. So a connection that has no request under way is cut after a while, and before others when there are too many.

An answer leaves in pieces, and none is written while too much of those before still waits. So of an answer that is not
read little is here, with TLS and without, and a connection is cut where that stays for long. Belongs to the event loop.
"""

import asyncio
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
"""How long the head of the first request may take, from the connection on."""

READ_S = 30.0
"""How long what waits to be read may take, and the head of a further request: the answer before may still be read."""

PIECE_BYTES = 32 * 1024
"""Beyond this the server waits. So 64 KiB wait at most; with TLS, which buffers by itself, 128 KiB."""


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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(PIECE_BYTES)
        self._begin_idle(HEAD_S)
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
        if not self._is_busy():
            # The end of the answer may still be on its way, also where the connection closes behind it.
            self._begin_idle(READ_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_due = self.loop.call_later(READ_S, self.cut)

    def resume_writing(self) -> None:
        self._end_unread()
        super().resume_writing()

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin_idle(self, most_s: float) -> None:
        self._end_idle()
        self._idle[self] = None
        self._head_due = self.loop.call_later(most_s, self.cut)

    def _end_idle(self) -> None:
        self._idle.pop(self, None)
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _end_unread(self) -> None:
        if self._read_due is not None:
            self._read_due.cancel()
            self._read_due = None

    def cut(self) -> None:
        """End it, whatever is not sent yet."""
        self._end_idle()
        self.transport.abort()


class InPieces:
    """ASGI middleware: a large part of an answer is sent as several, so that the server waits between them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body, at = message.get("body", b""), 0
            while len(body) - at > PIECE_BYTES:
                await send({"type": message["type"], "body": body[at : at + PIECE_BYTES], "more_body": True})
                at += PIECE_BYTES
            await send({**message, "body": body[at:]} if at else message)

        await self._app(scope, receive, send_pieces)
