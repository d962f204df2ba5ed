"""One run for the judge: clients on three gateways, whose views lag, while everything else fails too.

Nothing is judged here but what the clients write down.
"""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, TextIO

from simulation.judged.gateways import GatewayProcess
from simulation.lives import run
from simulation.seeds import quiet
from simulation.txn import faults
from simulation.txn.plant import PARTITIONS, Plant
from support.judged_clients import Clients

from api_gateway.settings import GatewaySettings

GATEWAYS = 3
CLIENTS = 6
MAX_S = 600.0
SETTINGS = GatewaySettings(instance="0", partitions=PARTITIONS)


class Faults(faults.Faults):
    """Those of transactions; and gateways die, stand still, and follow one partition later than the other."""

    def __init__(self, gateways: list[GatewayProcess], plant: Plant, random: Random) -> None:
        super().__init__(plant, random, pause_s=0.5)
        self._gateways = gateways
        self.kinds = (*self.kinds, self._kill_gateway, self._freeze_gateway, *(self._hold_gateway,) * 6)

    def end(self) -> None:
        """See Faults."""
        for process in self.plant.processes:
            process.connections.log.thaw()
        super().end()

    def _kill_gateway(self) -> None:
        self.light(self.some(GatewayProcess), self._replace)

    def _replace(self, process: Any) -> None:
        # In the same place before the old one ends, for that may be in the middle of what it does.
        number = self._gateways.index(process)
        self.plant.loop.call_soon(self._begin, number, context=self.plant.loop.outside)
        self.kill(process)

    def _begin(self, number: int) -> None:
        self._gateways[number] = self.plant.start(GatewayProcess, SETTINGS)

    def _freeze_gateway(self) -> None:
        process = self.some(GatewayProcess)
        if process is not None:
            self.freeze(process, self.random.choice((0.2, 1.0, 5.0)))

    def _hold_gateway(self) -> None:
        process = self.some(GatewayProcess)
        if process is not None:
            partition = self.random.randrange(PARTITIONS)
            process.connections.log.freeze(partition)
            self.later(self.random.choice((0.03, 0.3, 2.0)), process.connections.log.thaw, partition)


async def _run(seed: int, history: TextIO, operations: int) -> None:
    random = Random(seed)
    plant = Plant(Random(random.random()), {})
    plant.start_workflows()
    plant.start_txn()
    gateways = [plant.start(GatewayProcess, SETTINGS) for _ in range(GATEWAYS)]

    def caller(number: int) -> Callable[[str, Any], Any]:
        return lambda rpc, request: gateways[number].call(rpc, request)

    async def pause() -> None:
        await asyncio.sleep(pauses.choice((0.0, 0.0, 0.01, 0.1)))

    pauses = Random(random.random())
    callers = {f"gateway-{number}": caller(number) for number in range(GATEWAYS)}
    clients = Clients(callers, history, Random(random.random()), itertools.count(1).__next__)
    breaking = Faults(gateways, plant, Random(random.random()))
    failing = asyncio.ensure_future(breaking.run(1_000_000))
    # A product that is broken may never answer.
    with suppress(TimeoutError):
        async with asyncio.timeout(MAX_S):
            await clients.run(CLIENTS, operations, pause)
    failing.cancel()
    breaking.end()


def write_history(seed: int, history: TextIO, operations: int) -> None:
    """Write so many operations, which all follow from the seed."""
    with quiet():
        run(_run(seed, history, operations))
