"""What goes wrong in a run, drawn from its seed."""

import asyncio
from random import Random

from simulation.processes import Process, WorkflowProcess
from simulation.txn.instances import TxnProcess
from simulation.txn.plant import Plant

DELAYS_S = (0.05, 0.3, 1.0, 3.0)


class Faults:
    """`run` lets things fail now and then, `end` has everything healthy again."""

    def __init__(self, plant: Plant, random: Random, pause_s: float) -> None:
        self.plant = plant
        self.random = random
        self.pause_s = pause_s
        self.log: list[str] = []
        self._over = False
        self._kinds = (
            self._kill_txn,
            self._kill_txn,
            self._kill_workflows,
            self._freeze_txn,
            self._freeze_txn,
            self._stores_fail,
            self._stores_fail,
            self._stores_slow,
            self._redis_emptied,
            self._redis_away,
            self._kafka_away,
            self._rebalance,
            self._another_txn,
        )

    async def run(self, number: int) -> None:
        """So many faults, one after the other or overlapping."""
        for _ in range(number):
            await asyncio.sleep(self.random.choice((0.0, 0.05, 0.5, 2.0)) * self.pause_s)
            self.random.choice(self._kinds)()

    def end(self) -> None:
        """No more faults; whoever is down comes back."""
        plant = self.plant
        self._over = True
        plant.stores.failing = plant.stores.slow_s = plant.redis.failing = 0.0
        plant.redis.away_until = 0.0
        plant.broker.come_back()
        for process in plant.processes:
            process.fuse = None
        for process in list(plant.frozen()):
            plant.thaw(process, 0.0)
        if not plant.running(TxnProcess):
            plant.start_txn()
        if not plant.running(WorkflowProcess):
            plant.start_workflows()

    def _note(self, what: str) -> None:
        self.log.append(f"{self.plant.now_ms()} {what}")

    def _later(self, seconds: float, action: object, *args: object) -> None:
        def unless_over() -> None:
            if not self._over:
                assert callable(action)
                action(*args)

        loop = self.plant.loop
        loop.call_later(seconds, unless_over, context=loop.outside)

    def _some(self, kind: type[Process]) -> Process | None:
        living = self.plant.running(kind)
        return self.random.choice(living) if living else None

    def _light(self, process: Process | None, action: str) -> None:
        """Something happens to it a few touches from now, in the middle of whatever it does."""
        if process is not None:
            process.fuse = (self.random.randint(0, 12), getattr(self, action))

    def _kill_txn(self) -> None:
        self._light(self._some(TxnProcess), "_kill")

    def _kill_workflows(self) -> None:
        self._light(self._some(WorkflowProcess), "_kill")

    def _kill(self, process: Process) -> None:
        self._note(f"{process.source} killed")
        self.plant.kill(process)
        again = self.plant.start_txn if isinstance(process, TxnProcess) else self.plant.start_workflows
        self._later(self.random.choice((*DELAYS_S, 8.0)), again)

    def _freeze_txn(self) -> None:
        self._light(self._some(TxnProcess), "_freeze")

    def _freeze(self, process: Process) -> None:
        seconds = self.random.choice((0.5, 2.0, 5.0, 12.0, 20.0))
        self._note(f"{process.source} frozen for {seconds} s")
        self.plant.freeze(process)
        self._later(seconds, self._thaw, process)
        if seconds > 1.0 and self.random.random() < 0.8:
            self._later(self.random.choice(DELAYS_S), self.plant.start_txn)

    def _thaw(self, process: Process) -> None:
        self._note(f"{process.source} thawed")
        self.plant.thaw(process, self.random.choice((0.0, 0.005, 0.2, 1.0)))

    def _stores_fail(self) -> None:
        store = self.plant.stores
        store.failing = self.random.choice((0.1, 0.4, 0.8))
        self._note(f"stores fail: {store.failing}")
        self._later(self.random.choice((0.2, 1.0, 5.0)), setattr, store, "failing", 0.0)

    def _stores_slow(self) -> None:
        store = self.plant.stores
        store.slow_s = self.random.choice((0.05, 1.0, 8.0))
        self._note(f"stores slow: {store.slow_s}")
        self._later(self.random.choice((0.2, 1.0, 5.0)), setattr, store, "slow_s", 0.0)

    def _redis_emptied(self) -> None:
        self._note("redis emptied")
        self.plant.redis.empty()

    def _redis_away(self) -> None:
        redis = self.plant.redis
        seconds = self.random.choice((0.2, 1.0, 5.0, 15.0))
        self._note(f"redis away for {seconds} s")
        redis.away_until = self.plant.loop.now + seconds
        if self.random.random() < 0.5:
            redis.empty()
        redis.failing = self.random.choice((0.0, 0.3))

    def _kafka_away(self) -> None:
        seconds = self.random.choice((0.05, 0.5, 2.0, 6.0, 14.0))
        self._note(f"kafka away for {seconds} s")
        self.plant.broker.go_away(seconds)
        self.plant.fell_s = self.plant.loop.now + seconds

    def _rebalance(self) -> None:
        self._note("rebalance")
        group = self.random.choice(list(self.plant.groups.all.values()))
        group.balance(bounce=self.random.random() < 0.5)

    def _another_txn(self) -> None:
        if len(self.plant.running(TxnProcess)) < 2:
            self._note("another txn-manager")
            self.plant.start_txn()
