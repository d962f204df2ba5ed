"""Links: the networks between processes of a test's system, which can be cut, made one-way, slow or lossy.

A client reaches a server by a relay that has two addresses of its own in 127.0.0.0/8: it listens on one with the
server's port, and calls the server from the other. So each packet says which link it is on and which way it goes, and
where the kernel lets us (root, or `unshare --map-root-user --net`), it drops them: no refusal, no reset, retries that
come ever later, as on a network that breaks. Elsewhere the relay keeps back what would be lost. It alone makes slow.

Concurrency: the relays run on a thread of their own; methods may be called from any other.
"""

import asyncio
import math
import random
import socket
import subprocess
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

_CHUNK = 16_384
_ON_THE_WAY = 64
_RESEND_S = (0.2, 0.4)
_STARTS_S = 10.0


class Way(NamedTuple):
    """What becomes of what goes one way: the share of packets that is lost, and how slow the others are."""

    loss: float = 0.0
    delay_s: float = 0.0
    bytes_per_s: float = math.inf


WELL = Way()
GONE = Way(loss=1.0)
SLOW = Way(delay_s=0.25, bytes_per_s=100_000)
LOSSY = Way(loss=0.1)


@dataclass(eq=False)
class Link:
    """From a client's process to a server's, by the addresses of its relay."""

    client: str
    server: str
    listens: str
    calls_from: str
    port: int
    target_port: int
    ways: dict[tuple[str, str], Way] = field(init=False)
    """By sender and receiver."""

    def __post_init__(self) -> None:
        self.ways = {(self.client, self.server): WELL, (self.server, self.client): WELL}

    @property
    def address(self) -> str:
        """Where the client finds the server."""
        return f"{self.listens}:{self.port}"

    def packets(self) -> Iterable[tuple[str, Way]]:
        """Which ones go which way, in the words of nftables: between client and relay, and between relay and server."""
        for way, (ours, theirs) in zip(self.ways.values(), (("daddr", "saddr"), ("saddr", "daddr")), strict=True):
            yield f"ip {ours} {self.listens}", way
            yield f"ip {theirs} {self.calls_from}", way


class Links:
    """All links of a system. Addresses are drawn at random: no two systems share any.

    Where the kernel `drops_packets` it does, if it may.
    """

    def __init__(self, *, drops_packets: bool = True) -> None:
        self.drops_packets = drops_packets
        self.all: list[Link] = []
        self._net = f"127.{random.randint(64, 254)}.{random.randint(0, 254)}"
        self._table = "links_" + self._net.replace(".", "_")
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)

    def add(self, client: str, server: str, port: int, target_port: int) -> Link:
        """A link that listens at once, at the port that the server has for others."""
        if not self.all:
            self._thread.start()
            self.drops_packets = self.drops_packets and _nft(f"add table ip {self._table}\n")
        number = 2 * len(self.all) + 1
        link = Link(client, server, f"{self._net}.{number}", f"{self._net}.{number + 1}", port, target_port)
        serve = asyncio.start_server(partial(self._relay, link), link.listens, link.port)
        self._servers.append(self._run(serve).result(_STARTS_S))
        self.all.append(link)
        return link

    def set(self, senders: Collection[str], receivers: Collection[str], way: Way) -> None:
        """Have everything from these processes to those go this way from now on. Raises ValueError if no link is."""
        found = [(link, way) for link in self.all for way in link.ways if way[0] in senders and way[1] in receivers]
        if not found:
            raise ValueError(f"no link from {sorted(senders)} to {sorted(receivers)}")
        for link, ends in found:
            link.ways[ends] = way
        if self.drops_packets:
            self._drop([(which, way.loss) for link in self.all for which, way in link.packets() if way.loss])

    def close(self) -> None:
        """All relays end, and what was on its way is lost."""
        if not self.all:
            return
        self._run(self._end()).result(_STARTS_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STARTS_S)
        self._loop.close()
        if self.drops_packets:
            self._drop(())

    def _drop(self, lossy: Iterable[tuple[str, float]]) -> None:
        """Have the kernel drop of these packets so many, and none of others."""
        rules = "".join(f"  {which} numgen random mod 1000 <= {loss * 1000 - 1:.0f} drop\n" for which, loss in lossy)
        table = f"table ip {self._table}"
        chain = f"{table} {{\n chain on_arrival {{\n  type filter hook input priority 0;\n{rules} }}\n}}\n"
        assert _nft(f"add {table}\ndelete {table}\n{chain if rules else ''}"), "nft does not take the rules any more"

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _relay(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection's bytes until both sides have ended it, or one broke it off."""
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        writers = [writer]
        try:
            there, to_server = await asyncio.open_connection(
                "127.0.0.1", link.target_port, local_addr=(link.calls_from, 0)
            )
            writers.append(to_server)
            for each in writers:
                _notice_its_end(each.get_extra_info("socket"))
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, to_server, lambda: link.ways[link.client, link.server]))
                both.create_task(self._carry(there, writer, lambda: link.ways[link.server, link.client]))
        except (OSError, BaseExceptionGroup):
            # As the network would: the other side learns it by a reset.
            for each in writers:
                each.transport.abort()
        finally:
            for each in writers:
                each.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Callable[[], Way]) -> None:
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
                if not self.drops_packets:
                    await _resent(way)
                writer.write(data)
                await writer.drain()
            writer.write_eof()

        async with asyncio.TaskGroup() as both:
            both.create_task(enters())
            both.create_task(leaves())


async def _resent(way: Callable[[], Way]) -> None:
    """Take the time that a sender takes to send once more what was lost."""
    while random.random() < way().loss:  # noqa: ASYNC110 - nothing tells a sender that the next one will come through
        await asyncio.sleep(random.uniform(*_RESEND_S))


def _notice_its_end(connection: socket.socket) -> None:
    """A side that went while nothing came through must not be kept up by the relay."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 127)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _nft(commands: str) -> bool:
    """Whether the kernel took them; without nft, or the right to, it does not."""
    try:
        done = subprocess.run(["nft", "-f", "-"], input=commands, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0
