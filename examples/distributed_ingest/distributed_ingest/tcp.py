"""Lines that come over TCP, into the stream. It cannot be divided: one node at a time connects, or listens.

A connection has no position that could be gone back to, and its sender learns nothing. So lines that a node has
received and not yet written are lost when it dies: of each connection up to 768 KiB, the beginning of a line that has
not ended (8 MiB at most), and what the kernel has received for it. When it is stopped it writes what it has read. While
the stream is slow nothing is read, and the sender waits.

A peer that vanishes without a word is noticed by the kernel's probes, within about two minutes.

Concurrency: belongs to one event loop; the lines of a connection are written in their order.
"""

import asyncio
import socket
from collections.abc import Callable

from distributed_ingest.feed import Reach, Scene
from distributed_ingest.records import MAX_EVENT_BYTES, Event, LineSplitter, Splitter
from distributed_ingest.settle import together
from distributed_ingest.sink import SinkError
from sluice import addresses
from sluice.exceptions import in_words
from sluice_cli.errors import UsageError
from sluice_coordination import Functions, SingleSource, SourceState, Task, TaskContext

NAME = "tcp"
_FUNCTION = "read-lines"
READ_BYTES = 256 * 1024
CONNECT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
MAX_CONNECTIONS = 256
PROBE_AFTER_S, PROBE_EVERY_S, PROBES = 60, 10, 6


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[::1]:port`. Raises UsageError."""
    try:
        host, port = addresses.host_and_port(text.removeprefix("tcp://"))
        if not 0 <= port < 65536:
            raise ValueError("no port")
    except ValueError as error:
        raise UsageError(f"{text!r} is no address", "write it as HOST:PORT, an IPv6 address in brackets") from error
    return host, port


class Tcp:
    """See Feed. `listen`: wait for connections at the address, and not connect to it."""

    def __init__(self, scene: Scene, address: str, *, listen: bool) -> None:
        self._scene = scene
        self._host, self._port = address_of(address)
        self._address = addresses.address_of(self._host, self._port)
        self._listen = listen

    async def open(self) -> None:
        """See Feed. Nothing is checked: the other end may come later."""

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._read)

    def source(self) -> SingleSource:
        """See Feed."""
        return SingleSource(NAME, Task(_FUNCTION))

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - there is nothing to reach
        """See Feed."""
        return Reach(0, None, "bytes", finished=False)

    async def close(self) -> None:
        """See Feed."""

    async def _read(self, context: TaskContext) -> None:
        """Read until stopped."""
        try:
            await (serve(self._scene, context, self._host, self._port) if self._listen else self._connect(context))
        except OSError as error:
            self._scene.outlet.tally.problem(f"{self._address}: {error}")
            raise

    async def _connect(self, context: TaskContext) -> None:
        """Read one connection after the other, with a pause that grows while there is none."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with asyncio.timeout(CONNECT_S):
                    reader, writer = await asyncio.open_connection(self._host, self._port, limit=READ_BYTES)
            except (OSError, TimeoutError) as error:
                self._scene.outlet.tally.problem(f"cannot connect to {self._address}: {in_words(error)}")
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
                continue
            pause_s = FIRST_PAUSE_S
            probe(writer)
            self._scene.tell(f"connected to {self._address}")
            await copy(self._scene, context, reader, writer, self._address, LineSplitter())
            self._scene.tell(f"{self._address} has closed the connection")
            await asyncio.sleep(pause_s)


async def serve(
    scene: Scene, context: TaskContext, host: str, port: int, splitter: Callable[[], Splitter] = LineSplitter
) -> None:
    """Listen, and read every connection in a task of its own."""
    connections: set[asyncio.Task[None]] = set()
    async with together() as group:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sender = str((writer.get_extra_info("peername") or ("unknown",))[0])
            if len(connections) >= MAX_CONNECTIONS:
                scene.outlet.tally.problem(f"{sender} is turned away: there are {MAX_CONNECTIONS} connections")
                writer.close()
                return
            probe(writer)
            copying = group.create_task(copy(scene, context, reader, writer, sender, splitter()))
            connections.add(copying)
            copying.add_done_callback(connections.discard)

        server = await asyncio.start_server(accept, host, port, limit=READ_BYTES)
        try:
            own = server.sockets[0].getsockname()[1]
            scene.tell(f"listening on {addresses.address_of(host, own)}")
            await asyncio.Event().wait()
        finally:
            # Not as a context: from Python 3.12 on its end waits until every connection has been closed.
            server.close()


async def copy(
    scene: Scene,
    context: TaskContext,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    origin: str,
    splitter: Splitter,
) -> None:
    """Write the lines of a connection, until the other end closes it. A last line without an end counts."""
    outlet, skipped = scene.outlet, 0
    try:
        ended = False
        while not ended:
            try:
                piece = await reader.read(READ_BYTES)
            except OSError as error:
                outlet.tally.problem(f"{origin}: {error}")
                piece = b""
            ended = not piece
            lines = splitter.finish() if ended else splitter.feed(piece)
            await deliver_patiently(scene, context, origin, [outlet.event(line, origin) for line in lines])
            if splitter.skipped > skipped:
                why = f"{origin}: a line has more than {MAX_EVENT_BYTES} bytes"
                outlet.skipped(origin, splitter.skipped - skipped, why)
                skipped = splitter.skipped
    finally:
        writer.close()


async def deliver_patiently(scene: Scene, context: TaskContext, origin: str, events: list[Event]) -> None:
    """Write events, however long that takes: there is no other copy. Raises StreamEndedError, LockLostError."""
    while events:
        try:
            await scene.outlet.deliver(context, origin, events)
            return
        except SinkError:
            # The outlet has reported it.
            continue


def probe(writer: asyncio.StreamWriter) -> None:
    """Have the kernel ask now and then whether the other end is still there, and end the connection if it is not."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, PROBE_AFTER_S),
        (socket.TCP_KEEPINTVL, PROBE_EVERY_S),
        (socket.TCP_KEEPCNT, PROBES),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
