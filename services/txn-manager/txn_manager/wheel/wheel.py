"""The timer wheel: a sorted set in Redis for each partition, a *slot*, holds timers by the time at which they are due.

The journal is the truth and Redis only the alarm clock. A timer that fires too early or twice is harmless, one that
never fires is not; so everything here is built to notice when a slot may lack a timer. A slot holds a marker with the
fill that completed it and the run of the server it was completed in. Without one, or with one of another run (Redis
came back from its files, a replica took over), the slot counts as lost and its owner fills it from the journal. A fill
is put aside and replaces the slot in one step, and only if it is whole and none began after it: neither half a
fill nor one that a frozen process sends late can ever look complete.

Concurrency: any number of instances and tasks may use the same slots. Scripts are atomic, take no more than MAX_BATCH
timers at a time, and are attempted once; all times are those of Redis's own clock. `refill` replaces what others set in
the meantime, so what changes after its content was put together has to be set again once it is done.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from sluice.exceptions import in_words
from txn_manager.wheel.errors import SlotLostError, WheelUnavailableError
from txn_manager.wheel.lua import Scripts

FORMAT = 1
MAX_BATCH = 1_000
"""The most timers one script works on: about two milliseconds of Redis, and what Lua can pass to one command."""

Change = int | None
"""A delay in ms from now, after which the timer is due; None cancels it."""

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

_CONNECTIONS = 8
_STAGED_MS = 60_000


class Claimed(msgspec.Struct, frozen=True):
    """What a claim brought.

    `due`: partitions and timers. `lost`: partitions whose slots are not complete; nothing was taken from those.
    `fills`: the fill that completed each of the other slots. `at_ms`: Redis's time of the claim.
    """

    due: list[tuple[int, str]]
    lost: list[int]
    fills: dict[int, str]
    at_ms: int


class TimerWheel:
    """The slots of one Sluice cluster, named by `prefix`. Belongs to one event loop.

    A claimed timer is due again after `claim_ms`. A call waits at most `timeout_s` for Redis; one that takes several
    scripts, for each of them. `options` are for each connection; see `redis_access`.
    """

    def __init__(
        self,
        redis_url: str,
        prefix: str,
        claim_ms: int = 10_000,
        timeout_s: float = 2.0,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        self.claim_ms = claim_ms
        # The braces keep all keys of a cluster on one node of a Redis Cluster.
        self._prefix = f"sluice:{{{prefix}}}:timers:v{FORMAT}"
        self.timeout_s = timeout_s
        # Attempted once: the caller decides what is to be written after a failure. The deadline of a call is ours:
        # with a socket timeout the client sends inside `wait_for`, which in Python 3.11 can swallow a cancellation.
        self._pool = BlockingConnectionPool.from_url(
            redis_url,
            max_connections=_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=None,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            decode_responses=True,
            **options,
        )
        self._scripts = Scripts(Redis(connection_pool=self._pool))

    async def close(self) -> None:
        """End the connections."""
        await self._pool.aclose()

    async def change(
        self, changes: Mapping[int, Mapping[str, Change]], fills: Mapping[int, str] | None = None
    ) -> list[int]:
        """Set and cancel timers of many partitions; return those whose slots are lost.

        With `fills` a slot that another instance filled since counts as lost: what a process that was frozen has to
        change may be older than that fill. Raises WheelUnavailableError; a part may be done then.
        """
        lost: set[int] = set()
        for partitions, args in _batches(changes, fills or {}):
            answer = await self.run_script(self._scripts.change, [self._slot(each) for each in partitions], args)
            lost.update(partitions[position - 1] for position in answer)
        return sorted(lost)

    async def refill(self, partition: int, delays_ms: Mapping[str, int]) -> str:
        """Replace the whole slot; return the name of this fill, as claims report it.

        Until it is done the slot stays what it was. Raises SlotLostError if another fill of the slot began or Redis
        forgot this one; WheelUnavailableError.
        """
        fill, staging, members = secrets.token_hex(8), f"{self._slot(partition)}:fill", 0
        now_s, timers = asyncio.get_running_loop().time, iter(delays_ms.items())
        began_s = now_s()
        while (batch := list(islice(timers, MAX_BATCH))) or members == 0:
            late_ms = int((now_s() - began_s) * 1000)
            args: list[str | int] = [fill, members, _STAGED_MS]
            for timer, delay_ms in batch:
                args += (timer, delay_ms - late_ms)
            members = await self.run_script(self._scripts.stage, [staging], args)
            if members < 0:
                raise SlotLostError(partition)
        if (
            await self.run_script(self._scripts.publish, [staging, self._slot(partition)], [fill, len(delays_ms) + 1])
            < 0
        ):
            raise SlotLostError(partition)
        return fill

    async def claim(self, partitions: Collection[int], limit: int = MAX_BATCH) -> Claimed:
        """Take at most `limit` timers that are due; for `claim_ms` no other instance gets them.

        Partitions are served in their order. Raises WheelUnavailableError; some may be taken then, and are due again
        later.
        """
        if not 0 < limit <= MAX_BATCH:
            raise ValueError(f"a claim takes 1 to {MAX_BATCH} timers, not {limit}")
        slots = [self._slot(partition) for partition in partitions]
        at_ms, *answers = await self.run_script(self._scripts.claim, slots, [limit, self.claim_ms])
        due: list[tuple[int, str]] = []
        fills: dict[int, str] = {}
        for partition, (fill, *timers) in zip(partitions, answers, strict=True):
            if fill:
                fills[partition] = fill
            due.extend((partition, timer) for timer in timers)
        return Claimed(due, [each for each in partitions if each not in fills], fills, at_ms)

    def _slot(self, partition: int) -> str:
        return f"{self._prefix}:{partition}"

    async def run_script(self, script: AsyncScript, keys: list[str], args: list[str | int]) -> Any:
        """What one script answers. Raises WheelUnavailableError."""
        async with self._deadline():
            return await script(keys, args)

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """Whatever goes wrong with Redis ends as WheelUnavailableError."""
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError as error:
            raise WheelUnavailableError(f"Redis did not answer within {self.timeout_s:g} s") from error
        except (RedisError, OSError) as error:
            raise WheelUnavailableError(in_words(error)) from error


def _batches(
    changes: Mapping[int, Mapping[str, Change]], fills: Mapping[int, str]
) -> Iterator[tuple[list[int], list[str | int]]]:
    """Cut changes into calls of at most MAX_BATCH: the partitions of each, and the arguments of the script."""
    partitions: list[int] = []
    args: list[str | int] = []
    room = MAX_BATCH
    for partition, of_partition in changes.items():
        rest = iter(of_partition.items())
        while part := list(islice(rest, room)):
            partitions.append(partition)
            args += (len(part), fills.get(partition, ""))
            for timer, delay_ms in part:
                args += (timer, "" if delay_ms is None else delay_ms)
            room -= len(part)
            if room == 0:
                yield partitions, args
                partitions, args, room = [], [], MAX_BATCH
    if partitions:
        yield partitions, args
