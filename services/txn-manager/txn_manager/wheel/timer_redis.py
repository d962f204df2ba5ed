"""Redis as the timers use it: one script, `turn.lua`, on one key at a time.

A Redis Cluster is used like one server: a node that does not have the key names the one that has. So any node will do
as the first; if it fails, another one that was named is asked first from then on.

Concurrency: any number of tasks of one event loop. A call is attempted once and ends within `timeout_s`.
"""

import asyncio
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Protocol

import msgspec
from redis.asyncio import Redis
from redis.exceptions import MovedError, RedisError

from sluice.exceptions import in_words
from txn_manager.wheel.errors import WheelLostError, WheelUnavailableError

MAX_BATCH = 1_000
"""The most timers that one script writes, and that it returns: about two milliseconds of Redis."""

EXPIRY_S = 3_600
"""After which a wheel that gets no turn any more is forgotten."""

Address = tuple[str, int]
Connect = Callable[[Address | None], Redis]
"""Gives a client of this node of Redis; of the one that the settings name, if it is None."""


class TimerClients(Protocol):
    """See RedisAccess."""

    def client(self, address: Address | None = None) -> Redis: ...


_SCRIPT = (files("txn_manager.wheel") / "turn.lua").read_text(encoding="utf-8")


class Turn(msgspec.Struct, frozen=True):
    """What a turn brought: the run of the server, its time, and at most MAX_BATCH of the timers that are due."""

    run: str
    at_ms: int
    due: list[str]


class TimerRedis:
    """Belongs to one event loop."""

    def __init__(self, connect: Connect, timeout_s: float = 2.0) -> None:
        self.timeout_s = timeout_s
        self._connect = connect
        self._first: Address | None = None
        self._nodes: dict[Address | None, Redis] = {None: connect(None)}

    async def close(self) -> None:
        """End the connections."""
        for node in self._nodes.values():
            await node.aclose()

    async def turn(self, wheel: str, former: str, run: str, delays_ms: Mapping[str, int | None]) -> Turn:
        """Put in timers with their delays from now, take out those without one, and return what is due.

        Without a `run` the wheel is begun, and `former` removed; both lie on the same node of a Redis Cluster. Raises
        WheelLostError, WheelUnavailableError.
        """
        args: list[str | int] = [run, EXPIRY_S, MAX_BATCH]
        for timer, delay_ms in delays_ms.items():
            args += (timer, "" if delay_ms is None else delay_ms)
        answer = await self._call([wheel, former or wheel], args)
        if not answer:
            raise WheelLostError("lost")
        return Turn(*answer)

    async def _call(self, keys: list[str], args: list[str | int]) -> Any:
        address = self._first
        try:
            async with asyncio.timeout(self.timeout_s):
                try:
                    return await self._nodes[address].eval(_SCRIPT, len(keys), *keys, *args)
                except MovedError as moved:
                    address = moved.node_addr
                    return await self._node(address).eval(_SCRIPT, len(keys), *keys, *args)
        except (RedisError, OSError) as error:
            # Its name may stand for another server by now, of which it is a replica.
            await self._nodes[address].connection_pool.disconnect(inuse_connections=False)
            if address == self._first:
                nodes = list(self._nodes)
                self._first = nodes[(nodes.index(address) + 1) % len(nodes)]
            if isinstance(error, TimeoutError):
                raise WheelUnavailableError(f"Redis did not answer within {self.timeout_s:g} s") from error
            raise WheelUnavailableError(in_words(error)) from error

    def _node(self, address: Address) -> Redis:
        if address not in self._nodes:
            self._nodes[address] = self._connect(address)
        return self._nodes[address]
