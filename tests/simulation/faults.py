"""What the faults of all simulations have in common: when they come, what was done, and their end."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from simulation.processes import Process, System
from simulation.stores import Stores

P = TypeVar("P", bound=Process)


class Faults:
    """`run` lets things fail now and then, each of `kinds` as likely as the others; `log` says what was done."""

    kinds: tuple[Callable[[], None], ...]

    def __init__(self, system: System, store: Stores, random: Random, pause_s: float) -> None:
        self.system = system
        self.store = store
        self.random = random
        self.pause_s = pause_s
        self.log: list[str] = []
        self.is_over = False

    async def run(self, number: int) -> None:
        """So many faults, one after the other or overlapping."""
        for _ in range(number):
            await asyncio.sleep(self.random.choice((0.0, 0.05, 0.5, 2.0)) * self.pause_s)
            self.random.choice(self.kinds)()

    def end(self) -> None:
        """No more faults; what is frozen or away comes back."""
        self.is_over = True
        self.store.failing = self.store.slow_s = 0.0
        self.store.find_containers()
        self.system.broker.come_back()
        for process in self.system.processes:
            process.fuse = None
        for process in list(self.system.frozen()):
            self.system.thaw(process, 0.0)

    def note(self, what: str) -> None:
        self.log.append(f"{self.system.now_ms()} {what}")

    def later(self, seconds: float, action: Callable[..., object], *args: Any) -> None:
        """Unless the faults have ended by then."""

        def unless_over() -> None:
            if not self.is_over:
                action(*args)

        self.system.loop.call_later(seconds, unless_over, context=self.system.loop.outside)

    def some(self, kind: type[P]) -> P | None:
        running = self.system.running(kind)
        return self.random.choice(running) if running else None

    def light(self, process: Process | None, action: Callable[[Process], None]) -> None:
        """Something happens to a process a few touches from now, in the middle of whatever it does."""
        if process is not None:
            process.fuse = (self.random.randint(0, 12), action)

    def kill(self, process: Process) -> None:
        self.note(f"{process.source} killed")
        self.system.kill(process)

    def freeze(self, process: Process, seconds: float) -> None:
        self.note(f"{process.source} frozen for {seconds} s")
        self.system.freeze(process)
        self.later(seconds, self._thaw, process)

    def _thaw(self, process: Process) -> None:
        self.note(f"{process.source} thawed")
        self.system.thaw(process, self.random.choice((0.0, 0.005, 0.2, 1.0)))

    def kafka_away(self) -> float:
        """For how many seconds."""
        seconds = self.random.choice((0.05, 0.5, 2.0, 6.0, 14.0))
        self.note(f"kafka away for {seconds} s")
        self.system.broker.go_away(seconds)
        return seconds
