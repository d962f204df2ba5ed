"""A segment store of a few lines that answers as a test tells it, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sluice.pravega.host import Host
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.frame import HEADER, decode, encode, payload_size
from sluice.pravega.wire.hello import Hello, KeepAlive

CLOSE = b""
Answer = Callable[[Command], Sequence[Command | bytes]]
"""What to send for a request: commands, raw bytes, or CLOSE to hang up."""


class FakeStore:
    """Records what it gets; `hello` is what it says of its versions, None for nothing."""

    def __init__(self, answer: Answer, hello: Hello | None) -> None:
        self.answer = answer
        self.hello = hello
        self.echo = True
        self.received: list[Command] = []
        self.connections = 0
        self.open_connections = 0
        self.host = Host("127.0.0.1", 0)
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        self._writers.append(writer)
        try:
            while True:
                code, size = payload_size(await reader.readexactly(HEADER.size))
                command = decode(code, await reader.readexactly(size))
                self.received.append(command)
                for reply in self._replies(command):
                    if reply == CLOSE:
                        return
                    writer.write(reply if isinstance(reply, bytes) else encode(reply))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open_connections -= 1
            writer.close()

    def send(self, command: Command) -> None:
        """Sends something nobody asked for on the newest connection."""
        self._writers[-1].write(encode(command))

    def send_first(self, command: Command) -> None:
        """The same on the oldest one."""
        self._writers[0].write(encode(command))

    def _replies(self, command: Command) -> Sequence[Command | bytes]:
        if isinstance(command, Hello):
            return [self.hello] if self.hello is not None else []
        if isinstance(command, KeepAlive):
            return [command] if self.echo else []
        return self.answer(command)


@asynccontextmanager
async def fake_store(answer: Answer, hello: Hello | None = Hello(17, 5)) -> AsyncIterator[FakeStore]:  # noqa: B008
    store = FakeStore(answer, hello)
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    store.host = Host("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield store
    finally:
        server.close()
        for writer in store._writers:
            writer.close()
