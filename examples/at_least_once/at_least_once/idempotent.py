"""The output whose effects happen exactly once, although events are processed at least once: keyed writes to Redis.

The key of a result is where its event lies: segment and offset. One script looks whether the key is there, and if it is
not, writes it together with the effect; Redis runs a script as a whole. So a result that comes again, from another
worker or from one that was taken for dead, changes nothing but a counter. The effect here is an entry at the end of a
list, which would show every repetition; what is stored survives as much as that Redis is set up to survive.

The keys are kept for ever, because another group may read the stream from its beginning. So an output takes about 100
bytes for each result, beside the result itself.

Concurrency: one task adds and flushes; any number of processes write to the same output.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from redis.asyncio import Redis

from at_least_once.functions import Result
from at_least_once.patience import patiently

PAGE = 1000
_AT_ONCE = 500
_APPLY = """
local fresh = 0
for i = 1, #ARGV, 2 do
    if redis.call('HSETNX', KEYS[1], ARGV[i], 1) == 1 then
        redis.call('RPUSH', KEYS[2], ARGV[i + 1])
        fresh = fresh + 1
    end
end
redis.call('INCRBY', KEYS[3], #ARGV / 2 - fresh)
return fresh
"""


class KeyedStore:
    """The results of one output, each once."""

    def __init__(self, redis: Redis, scope: str, output: str) -> None:
        # The braces keep the three on one node of a Redis cluster.
        base = f"at-least-once:{{{scope}/{output}}}"
        self._done, self._applied, self._refused = (f"{base}:{part}" for part in ("done", "applied", "refused"))
        self._redis = redis
        self._apply = redis.register_script(_APPLY)

    async def apply(self, results: Sequence[tuple[str, bytes]]) -> int:
        """Writes each result whose key is new, together with its effect; returns how many were."""
        arguments: list[str | bytes] = [part for result in results for part in result]
        return int(await self._apply(keys=[self._done, self._applied, self._refused], args=arguments))

    async def results(self, first: int = 0) -> list[bytes]:
        """The effects in the order they happened, from number `first` on: up to `PAGE` of them."""
        found = await self._redis.lrange(self._applied, first, first + PAGE - 1)
        return [result.encode() if isinstance(result, str) else result for result in found]

    async def refused(self) -> int:
        """How many results came again."""
        return int(await self._redis.get(self._refused) or 0)


class RedisOutput:
    """Writes to a KeyedStore. See `output.Output`."""

    def __init__(self, store: KeyedStore, patience_s: float) -> None:
        self._store = store
        self._patience_s = patience_s
        self._waiting: list[tuple[str, bytes]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, scope: str, output: str, patience_s: float) -> AsyncIterator["RedisOutput"]:
        """The output in the Redis at a URL."""
        async with Redis.from_url(url) as redis:
            yield cls(KeyedStore(redis, scope, output), patience_s)

    def add(self, segment: str, offset: int, result: Result) -> None:
        self._waiting.append((f"{segment}@{offset}", result.data))

    async def flush(self) -> None:
        while self._waiting:
            part = self._waiting[:_AT_ONCE]
            await patiently(partial(self._store.apply, part), self._patience_s)
            del self._waiting[: len(part)]

    def discard(self) -> None:
        self._waiting = []
