"""Load on a system with two gateways while faults happen to it, which is judged in the end.

Clients whose histories the judge gets, writers of events, and transactional writers. Belongs to one event loop.
"""

import asyncio
import json
import time
from pathlib import Path
from random import Random
from typing import Any, Self

from typer.testing import CliRunner

from harness import System, eventually_async
from sluice_cli.main import app
from support.answers import CALM_S, Answers, Effect, Happened
from support.controller import Controller
from support.event_traffic import EventTraffic
from support.faults import Event, Faults
from support.judge import Verdict, verdict
from support.judged_clients import Clients
from support.txn_traffic import TxnTraffic

GROUPS, CLIENTS = 4, 2
TXN_WRITERS = 2
PAUSES_S = (0.05, 0.2, 0.5)
UNDISTURBED = 200
CALM_AFTER_S = 120.0
ENDS_S = 300.0
LEFT_OVER = "left-over"
"""The problem of a segment that should be gone: a store that ends right behind a merge keeps the source's name."""
_ENDLESS = 1 << 62


class Load:
    """What it writes goes to `folder`. Entered on a system that is ready."""

    def __init__(self, system: System, folder: Path, seed: int) -> None:
        self.faults = Faults(system)
        self.answers = Answers(system.settings.partitions)
        self.groups: list[Clients] = []
        self._system, self._folder, self._seed = system, folder, seed
        self._running: list[asyncio.Task[None]] = []
        self._paths = [folder / f"history-{group}.jsonl" for group in range(GROUPS)]

    async def __aenter__(self) -> Self:
        first, last = self._system.grpc_addresses[0], self._system.grpc_addresses[-1]
        gateway = await asyncio.to_thread(Controller, first)
        self._events = await asyncio.to_thread(EventTraffic, gateway, first)
        self._transactions = await asyncio.to_thread(TxnTraffic, gateway, last, TXN_WRITERS)
        gateways = {address: self.answers.caller(address) for address in self._system.grpc_addresses}
        for number, path in enumerate(self._paths):
            random = Random(f"{self._seed}-{number}")
            self._running.append(asyncio.create_task(self._judged(gateways, path, random, f"group-{number}")))
        await eventually_async(lambda: len(self.answers.ended) >= UNDISTURBED, CALM_AFTER_S, "calls are answered")
        self.answers.nothing_happened(CALM_AFTER_S)
        await self.calm()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        self._events.__exit__()
        self._transactions.__exit__()

    async def _judged(self, gateways: Any, path: Path, random: Random, prefix: str) -> None:
        async def pause() -> None:
            await asyncio.sleep(pauses.choice(PAUSES_S))

        pauses = Random(random.random())
        with path.open("w") as history:
            clients = Clients(gateways, history, random, time.monotonic_ns, prefix=prefix)
            self.groups.append(clients)
            await clients.run(CLIENTS, _ENDLESS, pause)

    async def calm(self) -> None:
        """Return when for a while, which begins now or later, every call has been prompt."""
        since = time.monotonic()

        def calm() -> bool:
            for task in self._running:
                if task.done():
                    task.result()
            return self.answers.is_calm(since)

        await eventually_async(calm, CALM_AFTER_S, "calls are prompt")

    async def survives(self, event: Event, lasts_s: float) -> Effect:
        """It happens; afterwards all is well, and everyone who writes goes on."""
        fault = event.fault()
        began = time.monotonic()
        await asyncio.to_thread(fault.__enter__)
        await asyncio.sleep(began + lasts_s - time.monotonic())
        ended = time.monotonic()
        await asyncio.to_thread(fault.__exit__, None, None, None)
        await self.calm()
        self.answers.nothing_happened(CALM_S)
        happened = Happened(event.name, began, ended, time.monotonic(), event.waits)
        await asyncio.to_thread(self._writers_go_on)
        await asyncio.to_thread(self.faults.heal)
        return self.answers.effect(happened)

    def _writers_go_on(self) -> None:
        self._events.goes_on()
        self._transactions.goes_on()
        self._transactions.scale()

    async def ends(self) -> Verdict:
        """All that was acknowledged is there once, nothing is left half done, nothing differs; what the judge says."""
        await self._stop()
        count = await self._events.ends_exactly_once(ENDS_S)
        ended = await self._transactions.ends_exactly_once(ENDS_S)
        print(f"{count} events and transactions, {dict(ended)}, are read exactly once")
        await eventually_async(self._is_whole, ENDS_S, "nothing is under way")
        return await asyncio.to_thread(verdict, self._paths, self._folder)

    async def _is_whole(self) -> bool:
        *found, summary = await asyncio.to_thread(verified, self._system)
        assert summary["notAnswered"] == 0
        differences = [line for line in found if line["type"] == "finding"]
        if not all(line["problem"] == LEFT_OVER and "#transaction." in line["segment"] for line in differences):
            raise SystemExit(f"sluice verify: {differences}")
        if differences:
            print(f"left by a segment store, and removed: {[line['segment'] for line in differences]}")
            await asyncio.to_thread(verified, self._system, "--repair")
            return False
        return not found

    async def _stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


def verified(system: System, *options: str) -> list[dict[str, Any]]:
    """What `sluice verify` prints of a whole system."""
    settings = {
        "SLUICE_API": system.rest_url,
        "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
        "SLUICE_CONTROLLER": f"tcp://{system.grpc_address}",
    }
    result = CliRunner().invoke(app, ["verify", "--json", *options], env=settings)
    lines = result.stdout.splitlines()
    assert result.exit_code in (0, 1) and lines, f"{result.stdout} {result.stderr} {result.exception!r}"
    return [json.loads(line) for line in lines]
