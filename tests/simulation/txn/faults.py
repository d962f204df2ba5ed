"""What goes wrong in a run, drawn from its seed."""

from random import Random

from simulation import faults
from simulation.processes import Process, WorkflowProcess
from simulation.txn.instances import TxnProcess
from simulation.txn.plant import Plant

DELAYS_S = (0.05, 0.3, 1.0, 3.0)


class Faults(faults.Faults):
    def __init__(self, plant: Plant, random: Random, pause_s: float) -> None:
        super().__init__(plant, plant.stores, random, pause_s)
        self.plant = plant
        self.kinds = (
            *(self._kill_txn,) * 2,
            self._kill_workflows,
            *(self._freeze_txn,) * 2,
            *(self._stores_fail,) * 2,
            self._stores_slow,
            *(self._containers_lost,) * 2,
            self._redis_emptied,
            self._redis_restarted,
            self._redis_away,
            self._redis_slow,
            self._redis_full,
            self._redis_clock,
            self._kafka_away,
            self._rebalance,
            self._another_txn,
        )

    def end(self) -> None:
        """See Faults; services that are down come back, too."""
        redis = self.plant.redis
        redis.failing = redis.away_until_s = redis.slow_s = 0.0
        redis.is_full = False
        super().end()
        if not self.plant.running(TxnProcess):
            self.plant.start_txn()
        if not self.plant.running(WorkflowProcess):
            self.plant.start_workflows()

    def _kill_txn(self) -> None:
        self.light(self.some(TxnProcess), self._kill)

    def _kill_workflows(self) -> None:
        self.light(self.some(WorkflowProcess), self._kill)

    def _kill(self, process: Process) -> None:
        self.kill(process)
        again = self.plant.start_txn if isinstance(process, TxnProcess) else self.plant.start_workflows
        self.later(self.random.choice((*DELAYS_S, 8.0)), again)

    def _freeze_txn(self) -> None:
        self.light(self.some(TxnProcess), self._freeze)

    def _freeze(self, process: Process) -> None:
        seconds = self.random.choice((0.5, 2.0, 5.0, 12.0, 20.0))
        self.freeze(process, seconds)
        if seconds > 1.0 and self.random.random() < 0.8:
            self.later(self.random.choice(DELAYS_S), self.plant.start_txn)

    def _stores_fail(self) -> None:
        store = self.store
        store.failing = self.random.choice((0.1, 0.4, 0.8))
        self.note(f"stores fail: {store.failing}")
        self.later(self.random.choice((0.2, 1.0, 5.0)), setattr, store, "failing", 0.0)

    def _stores_slow(self) -> None:
        store = self.store
        store.slow_s = self.random.choice((0.05, 1.0, 8.0))
        self.note(f"stores slow: {store.slow_s}")
        self.later(self.random.choice((0.2, 1.0, 5.0)), setattr, store, "slow_s", 0.0)

    def _containers_lost(self) -> None:
        self.note("containers are lost")
        self.store.lose_containers()
        self.later(self.random.choice((0.2, 1.0, 5.0)), self.store.find_containers)

    def _redis_emptied(self) -> None:
        self.note("redis emptied")
        self.plant.redis.empty()

    def _redis_restarted(self) -> None:
        """It comes back later with what it has now, which is whatever a file or a replica may have."""
        self.note("redis saved, to be restarted")
        self.plant.redis.save()
        self.later(self.random.choice((0.0, 1.0, 5.0, 15.0)), self._restart_redis)

    def _restart_redis(self) -> None:
        self.note("redis restarted")
        self.plant.redis.restart()

    def _redis_away(self) -> None:
        redis = self.plant.redis
        seconds = self.random.choice((0.2, 1.0, 5.0, 15.0))
        self.note(f"redis away for {seconds} s")
        redis.away_until_s = self.plant.loop.now + seconds
        if self.random.random() < 0.5:
            redis.empty()
        redis.failing = self.random.choice((0.0, 0.3))

    def _redis_slow(self) -> None:
        redis = self.plant.redis
        redis.slow_s = self.random.choice((0.001, 0.5, 1.9, 2.1, 6.0))
        self.note(f"redis slow: {redis.slow_s}")
        self.later(self.random.choice((0.5, 5.0, 15.0)), setattr, redis, "slow_s", 0.0)

    def _redis_full(self) -> None:
        self.note("redis full")
        self.plant.redis.is_full = True
        self.later(self.random.choice((0.5, 5.0, 15.0)), setattr, self.plant.redis, "is_full", False)

    def _redis_clock(self) -> None:
        by_ms = self.random.choice((-3_600_000, -3_600_000, -20_000, -4_000, 60_000))
        self.note(f"redis clock set by {by_ms} ms")
        self.plant.redis.clock_ms += by_ms

    def _kafka_away(self) -> None:
        seconds = self.kafka_away()
        self.plant.fell_s = self.plant.loop.now + seconds

    def _rebalance(self) -> None:
        self.note("rebalance")
        group = self.random.choice(list(self.plant.groups.all.values()))
        group.balance(bounce=self.random.random() < 0.5)

    def _another_txn(self) -> None:
        if len(self.plant.running(TxnProcess)) < 2:
            self.note("another txn-manager")
            self.plant.start_txn()
