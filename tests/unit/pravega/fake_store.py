"""A segment store of a few lines that answers as a test says, over a real socket."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sluice.domain.host import Host
from sluice.pravega.wire.appends import AppendBlockEnd, AppendSetup, DataAppended, SetupAppend
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.frame import HEADER, decode, encode, payload_size
from sluice.pravega.wire.hello import Hello, KeepAlive
from sluice.pravega.wire.refusals import NoSuchSegment
from sluice.pravega.wire.segments import CreateSegment, SealSegment, SegmentCreated

CLOSE = b""
Answer = Callable[[Command], Sequence[Command | bytes]]
"""What to send for a request: commands, raw bytes, or CLOSE to hang up."""


def created(command: Command) -> Sequence[Command]:
    """What a store without segments answers."""
    if isinstance(command, CreateSegment):
        return [SegmentCreated(command.request_id, command.segment)]
    assert isinstance(command, SealSegment)
    return [NoSuchSegment(command.request_id, command.segment)]


def set_up_or_appended(command: Command) -> Sequence[Command]:
    """What a store answers to a writer."""
    if isinstance(command, SetupAppend):
        return [AppendSetup(command.request_id, command.segment, command.writer_id, 0)]
    assert isinstance(command, AppendBlockEnd)
    return [DataAppended(command.writer_id, command.last_event_number, 0, command.request_id, 9)]


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
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        self.writers.append(writer)
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
        """Sends what was not requested on the newest connection."""
        self.writers[-1].write(encode(command))

    def send_first(self, command: Command) -> None:
        """The same on the oldest one."""
        self.writers[0].write(encode(command))

    def _replies(self, command: Command) -> Sequence[Command | bytes]:
        if isinstance(command, Hello):
            return [self.hello] if self.hello is not None else []
        if isinstance(command, KeepAlive):
            return [command] if self.echo else []
        return self.answer(command)


@asynccontextmanager
async def fake_store(
    answer: Answer,
    hello: Hello | None = Hello(17, 5),  # noqa: B008
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[FakeStore]:
    store = FakeStore(answer, hello)
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0, ssl=tls)
    store.host = Host("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield store
    finally:
        server.close()
        for writer in store.writers:
            writer.close()
