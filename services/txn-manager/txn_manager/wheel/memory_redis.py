"""Redis in memory, as far as timers use it: the twin of a server and of `turn.lua`, with all that can happen to either.

One suite of tests runs over it and over the real one. A request that has been sent is carried out whatever becomes of
the process that sent it, and when it arrives: also behind the time-out of its caller.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from copy import deepcopy
from itertools import count
from random import Random
from typing import Any

from redis import exceptions as redis_errors


class _Key:
    """A sorted set that is forgotten at a time."""

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self.expires_ms = float("inf")


class MemoryRedis:
    """The server. `failing` is the share of calls that fail, half of them behind their effect; `clock_ms` is by how
    much its clock is ahead; `turns` counts what it has carried out, `written` the timers that were put in or taken out.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.keys: dict[str, _Key] = {}
        self.turns = 0
        self.written = 0
        self.away_until_s = 0.0
        self.slow_s = 0.0
        self.failing = 0.0
        self.is_full = False
        self.clock_ms = 0
        self._runs = count(1)
        self._saved: dict[str, _Key] = {}
        self._run = "run-0"

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) + self.clock_ms

    def empty(self) -> None:
        """Lose all keys, as by FLUSHALL or eviction; the server runs on."""
        self.keys.clear()

    def save(self) -> None:
        """Write the file that the server would come back from."""
        self._saved = deepcopy(self.keys)

    def restart(self) -> None:
        """Come back with what the file has, or as a replica that had not got the last writes."""
        self._run = f"run-{next(self._runs)}"
        self.keys = deepcopy(self._saved)

    def is_away(self) -> bool:
        return asyncio.get_running_loop().time() < self.away_until_s

    def timers(self) -> dict[str, dict[str, float]]:
        """By wheel, in ms from now; a wheel without its marker is none."""
        now_ms = self.now_ms()
        return {
            name: {timer: score * 1000 - now_ms for timer, score in key.scores.items() if not timer.startswith("*")}
            for name, key in self.keys.items()
            if f"*{self._run}" in key.scores
        }

    def turn(self, wheel: str, former: str, run: str, expiry_s: int, limit: int, *changes: str | int) -> list[Any]:
        """What the script does, command by command."""
        self.turns += 1
        now_ms, marker = self.now_ms(), f"*{self._run}"
        self.keys = {name: key for name, key in self.keys.items() if key.expires_ms > now_ms}
        # Redis refuses for want of memory only until a script has written something.
        is_refused = self.is_full and run != "" and changes[1:2] not in ((), ("",))
        if run == "":
            self.keys.pop(former, None)
            self._add(wheel, marker, float("inf"))
        elif run != self._run or wheel not in self.keys or marker not in self.keys[wheel].scores:
            return []
        if is_refused:
            raise redis_errors.ResponseError("OOM command not allowed when used memory > 'maxmemory'.")
        self.written += len(changes) // 2
        for timer, delay_ms in zip(changes[::2], changes[1::2], strict=True):
            if delay_ms == "":
                self.keys[wheel].scores.pop(str(timer), None)
            else:
                self._add(wheel, str(timer), -(-(now_ms + int(delay_ms)) // 1000))
        self.keys[wheel].expires_ms = now_ms + 1000 * expiry_s
        scores = sorted((score, timer) for timer, score in self.keys[wheel].scores.items())
        return [self._run, now_ms, [timer for score, timer in scores if score <= now_ms // 1000][:limit]]

    def _add(self, name: str, member: str, score: float) -> None:
        self.keys.setdefault(name, _Key()).scores[member] = score


class MemoryRedisAccess:
    """One process's way to the server, in place of RedisAccess; `touch` is called with every call, and may not
    return.
    """

    watched = ()

    def __init__(self, server: MemoryRedis, touch: Callable[[str], None] = lambda _what: None) -> None:
        self._server = server
        self._touch = touch
        self.connection_pool = self

    async def disconnect(self, *, inuse_connections: bool) -> None:
        """See redis.asyncio.ConnectionPool: there are no connections here."""

    def client(self, _address: object = None) -> Any:
        return self

    async def aclose(self) -> None:
        """See redis.asyncio.Redis."""

    async def eval(self, _script: str, _keys: int, *args: Any) -> list[Any]:
        """See redis.asyncio.Redis."""
        self._touch("redis turn")
        answered: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        if self._server.slow_s:
            loop = asyncio.get_running_loop()
            # Of no process: one that is frozen or dead by then has sent it all the same.
            loop.call_later(self._server.slow_s, self._arrive, answered, args, context=Context())
        else:
            self._arrive(answered, args)
        answer = await answered
        self._touch("redis turned")
        return answer

    def _arrive(self, answered: "asyncio.Future[list[Any]]", args: tuple[Any, ...]) -> None:
        server = self._server
        fails = server.random.random() < server.failing
        try:
            if server.is_away():
                raise redis_errors.ConnectionError("refused")
            if fails and server.random.random() < 0.5:
                raise redis_errors.ConnectionError("closed before")
            answer = server.turn(*args)
            if fails:
                raise redis_errors.ConnectionError("closed behind")
        except redis_errors.RedisError as error:
            if not answered.done():
                answered.set_exception(error)
            return
        if not answered.done():
            answered.set_result(answer)
