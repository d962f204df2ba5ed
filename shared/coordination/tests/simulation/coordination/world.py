"""Processes in virtual time that share a document store in memory, with clocks and a network that cannot be trusted.

The store's server is outside all processes: what was sent may be done late, or after its sender has died, or answered
to no one. Each process has clocks of its own: one that runs a little too fast or too slow, and one on the wall that
shows anything and is set now and then.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar, cast

from simulation.coordination.chance import seeded
from simulation.lives import Life, Living, SimulationLoop

from sluice_coordination.document import Body, Document, Version
from sluice_coordination.errors import CoordinationError, StoreUnavailableError
from sluice_coordination.memory import MemoryStore

T = TypeVar("T")


@contextmanager
def simulation(seed: int) -> Iterator[SimulationLoop]:
    """An event loop for one run, in which everything follows from the seed."""
    loop = SimulationLoop()
    try:
        with seeded(seed):
            yield loop
    finally:
        loop.end()


class SkewedClock:
    """The clocks of one process. `rate`: how many of its seconds pass in one true second."""

    def __init__(self, loop: SimulationLoop, rate: float, offset_s: float) -> None:
        self._loop, self._rate, self._offset_s = loop, rate, offset_s
        self.wall_offset_ms = 0

    def now(self) -> float:
        return self._loop.time() * self._rate + self._offset_s

    def wall_ms(self) -> int:
        return int(self._loop.time() * 1000) + self.wall_offset_ms

    def loop_time(self, at: float) -> float:
        return (at - self._offset_s) / self._rate


class Network:
    """How calls fare. Chances are of each call; times in seconds."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lost = 0.0
        self.answer_lost = 0.0
        self.slow = 0.0
        self.slow_s = 10.0
        self.away = False

    def heal(self) -> None:
        self.lost = self.answer_lost = self.slow = 0.0
        self.away = False

    def way_s(self) -> float | None:
        """How long a message takes; None: it is lost."""
        if self.away or self.random.random() < self.lost:
            return None
        if self.random.random() < self.slow:
            return self.random.uniform(0.0, self.slow_s)
        return self.random.uniform(0.001, 0.01)


class Server(MemoryStore):
    """Remembers what was written, and when."""

    def __init__(self, loop: SimulationLoop) -> None:
        super().__init__()
        self.written: list[str] = []
        self._loop = loop

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """See DocumentStore."""
        version = await super().put(id, body, expected)
        self.written.append(f"{self._loop.time()} {id} {version}: {body}")
        return version

    async def delete(self, id: str, expected: Version) -> None:
        """See DocumentStore."""
        await super().delete(id, expected)
        self.written.append(f"{self._loop.time()} {id} deleted")


class DistantStore:
    """A document store as one process reaches it: see DocumentStore. Frozen processes get their answers late."""

    def __init__(self, server: MemoryStore, network: Network, loop: SimulationLoop, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.cut = False
        """Whether nothing gets through between this process and the store."""
        self._server, self._network, self._loop = server, network, loop

    async def get(self, id: str) -> Document | None:
        return await self._call(lambda: self._server.get(id))

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        return await self._call(lambda: self._server.put(id, body, expected))

    async def delete(self, id: str, expected: Version) -> None:
        await self._call(lambda: self._server.delete(id, expected))

    async def under(self, prefix: str) -> dict[str, Document]:
        return await self._call(lambda: self._server.under(prefix))

    async def close(self) -> None:
        """See DocumentStore."""

    async def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        outside = self._loop.outside
        if (there_s := self._network.way_s()) is not None and not self.cut:
            self._loop.call_later(there_s, self._serve, work, answer, context=outside)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await answer
        except TimeoutError as error:
            raise StoreUnavailableError("no answer") from error

    def _serve(self, work: Callable[[], Coroutine[Any, Any, T]], answer: "asyncio.Future[T]") -> None:
        result, error = done_at_once(work())
        back_s = self._network.way_s()
        if back_s is not None and not self.cut and self._network.random.random() >= self._network.answer_lost:
            self._loop.call_later(back_s, lambda: _answer(answer, result, error), context=self._loop.outside)


def done_at_once(work: Coroutine[Any, Any, T]) -> tuple[T | None, CoordinationError | None]:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value, None
    except CoordinationError as error:
        return None, error
    raise AssertionError("the store in memory waits")


def _answer(answer: "asyncio.Future[T]", result: T | None, error: CoordinationError | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(cast("T", result))


class Process:
    """One process: a life, clocks, a way to the store. `begin` starts what it does."""

    def __init__(self, name: str, loop: SimulationLoop, store: DistantStore, clock: SkewedClock) -> None:
        self.name, self.loop, self.store, self.clock = name, loop, store, clock
        self.life = Life(name, lambda _what: None)

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start something as this process."""
        task: asyncio.Task[None] = self.life.context.run(self.loop.create_task, work)
        return task

    def kill(self) -> None:
        self.loop.kill(self.life)

    def freeze(self) -> None:
        self.loop.freeze(self.life)

    def thaw(self) -> None:
        self.loop.thaw(self.life)

    @property
    def is_running(self) -> bool:
        return self.life.living is Living.RUNNING

    @property
    def is_dead(self) -> bool:
        return self.life.living is Living.DEAD


class World:
    """All there is in one run; everything follows from the seed."""

    def __init__(self, loop: SimulationLoop, seed: int, drift: float, timeout_s: float) -> None:
        self.loop = loop
        self.random = Random(seed)
        self.server = Server(loop)
        self.network = Network(Random(self.random.random()))
        self.drift, self.timeout_s = drift, timeout_s

    def process(self, name: str) -> Process:
        """Make a process with clocks as wrong as they may be."""
        rate = self.random.choice((1 - self.drift, 1.0, 1 + self.drift, self.random.uniform(1 - self.drift, 1)))
        clock = SkewedClock(self.loop, rate, self.random.uniform(-1000, 1000))
        clock.wall_offset_ms = self.random.choice((0, self.random.randint(-(10**9), 10**9)))
        return Process(name, self.loop, DistantStore(self.server, self.network, self.loop, self.timeout_s), clock)
