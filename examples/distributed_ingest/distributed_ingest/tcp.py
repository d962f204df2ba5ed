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

from distributed_ingest.feed import Scene
from distributed_ingest.receiver import deliver_patiently
from distributed_ingest.records import MAX_EVENT_BYTES, LineSplitter, Splitter
from distributed_ingest.settle import together
from sluice import addresses
from sluice.exceptions import in_words
from sluice_coordination import TaskContext

READ_BYTES = 256 * 1024
CONNECT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
MAX_CONNECTIONS = 256
PROBE_AFTER_S, PROBE_EVERY_S, PROBES = 60, 10, 6


async def receive(scene: Scene, context: TaskContext, host: str, port: int) -> None:
    """Listen, or connect, as the job says, until stopped. Raises StreamEndedError, LockLostError, OSError."""
    await (serve if "listen" in scene.job.definition.options else _connect)(scene, context, host, port)


async def _connect(scene: Scene, context: TaskContext, host: str, port: int) -> None:
    """Read one connection after the other, with a pause that grows while there is none."""
    pause_s, address = FIRST_PAUSE_S, addresses.address_of(host, port)
    while True:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(host, port, limit=READ_BYTES)
        except (OSError, TimeoutError) as error:
            scene.outlet.tally.problem(f"cannot connect to {address}: {in_words(error)}")
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
            continue
        pause_s = FIRST_PAUSE_S
        probe(writer)
        scene.tell(f"connected to {address}")
        await copy(scene, context, reader, writer, address, LineSplitter())
        scene.tell(f"{address} has closed the connection")
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
