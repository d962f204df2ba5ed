"""One run: everything it does follows from its seed. First anything may fail; then nothing does, and all must end."""

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Any

from simulation.processes import LOOK_S
from simulation.seeds import run_one
from simulation.txn import contents
from simulation.txn.administration import Administration
from simulation.txn.clients import Clients
from simulation.txn.epoch_rules import EpochRules
from simulation.txn.faults import Faults
from simulation.txn.lease_rules import LeaseRules
from simulation.txn.plant import Plant
from simulation.txn.prepared_rules import PreparedRules
from simulation.txn.turn_rules import TurnRules
from simulation.violation import Violation

from sluice.domain.scope import commands as c
from txn_manager.skipped_segments import RECORD_AFTER_S

SCOPE = "sc"
QUIET_S = 120.0
"""How long after the last fault everything that was requested may take to end, leases apart."""


class Run:
    """`seed` decides on everything."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.calm = random.random() < 0.2
        tick_s = random.choice((0.5, 1.0))
        grace_s = random.choice((1.0, 2.0))
        settings = {"tick_s": tick_s, "grace_s": grace_s, "batch": 5, **_prepared(random)}
        self.plant = plant = Plant(Random(random.random()), settings)
        self.streams = [(SCOPE, name) for name in ("a", "b", "c")[: random.choice((1, 1, 2, 3))]]
        self.pause_s = random.choice((0.05, 0.3, 2.0))
        self.clients = Clients(plant, Random(random.random()), self.streams, self.pause_s)
        self.administration = Administration(plant, Random(random.random()), self.streams, self.pause_s)
        self.faults = Faults(plant, Random(random.random()), self.pause_s)
        self.turns = TurnRules(plant)
        self.epochs = EpochRules(plant)
        self.prepared = PreparedRules(plant)
        self.leases = LeaseRules(plant, int(grace_s * 1000), int(tick_s * 1000))

    async def go(self) -> None:
        """Raises Violation."""
        random, plant = self.random, self.plant
        plant.start_workflows()
        plant.start_txn()
        if random.random() < 0.2:
            plant.start_txn()
        await self._within(10.0, plant.ask(c.CreateScope(SCOPE)))
        for scope, stream in self.streams:
            await self._within(10.0, self.administration.create(random.randint(1, 4), scope, stream))
        doing = [self.clients.run(random.randint(2, 5)) for _ in range(random.randint(1, 4))]
        doing.append(self.administration.run(random.randint(0, 5)))
        if not self.calm:
            self.turns.faulty = True
            doing.append(self.faults.run(random.randint(1, 5)))
        await plant.run_all(doing)
        self.faults.end()
        await self._all_ends()
        contents.check(plant, self.clients)
        self.epochs.check()
        if self.seed % 8 == 0:
            await self._comes_to_rest()

    async def _within(self, seconds: float, work: Awaitable[Any]) -> None:
        async with asyncio.timeout(seconds):
            await work

    async def _all_ends(self) -> None:
        """Every request has its reply, everything begun is done, every lease that no client keeps has run out."""
        plant, model = self.plant, self.plant.auditor.model
        calm_ms = 0 if self.calm else plant.now_ms()
        until_s = plant.loop.now + QUIET_S
        while True:
            await asyncio.sleep(LOOK_S)
            self.plant.look()
            now = plant.now_ms()
            for txn in model.live.values():
                if txn.state == "OPEN" and now > self.leases.latest_end_ms(txn, calm_ms) and txn.ready:
                    raise Violation(f"{txn} is open at {now}, faults ended at {calm_ms}")
            ended = not model.live and not model.working and not plant.unanswered() and not plant.stores.under_way
            left = self.prepared.left_over() or contents.left_over(plant)
            if ended and not left:
                break
            if plant.loop.now > until_s and not ended:
                raise Violation(
                    f"never ended: {list(model.live.values())}, {model.working} workflows, "
                    f"unanswered: {[plant.posted[id] for id in plant.unanswered()]}"
                )
            if plant.loop.now > until_s and left:
                raise Violation(left)
        await asyncio.sleep(3.0)
        self.plant.look()

    async def _comes_to_rest(self) -> None:
        """What was skipped is recorded as deleted, once, and nothing more."""
        model = self.plant.auditor.model
        await asyncio.sleep(3 * RECORD_AFTER_S)
        self.plant.look()
        if any(model.to_delete.values()):
            raise Violation(f"never recorded as deleted: batches {model.to_delete}")


def _prepared(random: Random) -> dict[str, Any]:
    """How many transactions are prepared, and until when; at times none is."""
    most = random.choice((0, 1, 4, 8, 8))
    return {"max_prepared_transactions": most, "prepared_idle_s": random.choice((2.0, 8.0, 20.0))}


def run_seed(seed: int) -> Run:
    """Raises Violation."""
    return run_one(Run, seed, "tests/simulation/test_transactions.py")
