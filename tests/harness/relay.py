"""The relay of a system's links, a process of its own: clients of the tests keep Python's lock while they wait.

It is sent each link as it is from then on, and ends with the process that sends them.
"""

import asyncio
import math
import random
import socket
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

_CHUNK = 16_384
_ON_THE_WAY = 64
_RESEND_S = (0.2, 0.4)


class Way(NamedTuple):
    """What becomes of what goes one way: the share of packets that is lost, and how slow the others are."""

    loss: float = 0.0
    delay_s: float = 0.0
    bytes_per_s: float = math.inf


WELL = Way()


@dataclass(eq=False)
class Link:
    """From a client's process to a server's, by the addresses of its relay."""

    client: str
    server: str
    listens: str
    calls_from: str
    port: int
    target_port: int
    to_server: Way = WELL
    to_client: Way = WELL

    @property
    def address(self) -> str:
        """Where the client finds the server."""
        return f"{self.listens}:{self.port}"

    def packets(self) -> Iterable[tuple[str, Way]]:
        """Which ones go which way, in the words of nftables: between client and relay, and between relay and server."""
        for way, ours, theirs in ((self.to_server, "daddr", "saddr"), (self.to_client, "saddr", "daddr")):
            yield f"ip {ours} {self.listens}", way
            yield f"ip {theirs} {self.calls_from}", way


def run(links: Connection, *, drops_packets: bool) -> None:
    """Carry what goes over the links until no more can come. Each is acknowledged by its address."""
    asyncio.run(_Relay(drops_packets).run(links))


class _Relay:
    def __init__(self, drops_packets: bool) -> None:
        self._drops_packets = drops_packets
        self._links: dict[str, Link] = {}
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None] | None] = set()

    async def run(self, links: Connection) -> None:
        try:
            while True:
                link: Link = await asyncio.to_thread(links.recv)
                is_new = link.address not in self._links
                self._links[link.address] = link
                if is_new:
                    serve = partial(self._relay, link.address)
                    self._servers.append(await asyncio.start_server(serve, link.listens, link.port))
                links.send(link.address)
        except EOFError:
            pass

    def _way(self, address: str, *, to_server: bool) -> Way:
        link = self._links[address]
        return link.to_server if to_server else link.to_client

    async def _relay(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection's bytes until both sides have ended it, or one broke it off."""
        link = self._links[address]
        writers, carrying = [writer], list[asyncio.Task[None]]()
        # The loop alone does not keep a task.
        self._carrying.add(this := asyncio.current_task())
        try:
            there, to_server = await asyncio.open_connection(
                "127.0.0.1", link.target_port, local_addr=(link.calls_from, 0)
            )
            writers.append(to_server)
            for each in writers:
                _notice_its_end(each.get_extra_info("socket"))
            carried = (
                *self._carry(reader, to_server, partial(self._way, address, to_server=True)),
                *self._carry(there, writer, partial(self._way, address, to_server=False)),
            )
            carrying = [asyncio.create_task(each) for each in carried]
            await asyncio.gather(*carrying)
        except OSError:
            # As the network would: the other side learns it by a reset.
            for each in writers:
                each.transport.abort()
        finally:
            for each in writers:
                each.close()
            for task in carrying:
                task.cancel()
            await asyncio.gather(*carrying, return_exceptions=True)
            self._carrying.discard(this)

    def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Callable[[], Way]
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """One way of a connection: how it enters the network, and how it leaves it."""
        loop = asyncio.get_running_loop()
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_ON_THE_WAY)

        async def enters() -> None:
            free_at, data = 0.0, b"-"
            while data:
                data = await reader.read(_CHUNK)
                free_at = max(free_at, loop.time()) + len(data) / way().bytes_per_s
                await on_the_way.put((free_at + way().delay_s, data))

        async def leaves() -> None:
            data = b"-"
            while data:
                arrives, data = await on_the_way.get()
                await asyncio.sleep(max(0.0, arrives - loop.time()))
                if not self._drops_packets:
                    await _resent(way)
                writer.write(data)
                await writer.drain()
            writer.write_eof()

        return enters(), leaves()


async def _resent(way: Callable[[], Way]) -> None:
    """Take the time that a sender takes to send once more what was lost."""
    while random.random() < way().loss:  # noqa: ASYNC110 - nothing tells a sender that the next one will come through
        await asyncio.sleep(random.uniform(*_RESEND_S))


def _notice_its_end(connection: socket.socket) -> None:
    """A side that went while nothing came through must not be kept up by the relay."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 127)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
