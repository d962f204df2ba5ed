"""`python -m bench.judged --operations 200000`: clients of two gateways under faults, and a judge of what they saw.

A system of its own, with two of each service that takes requests. Groups of clients, each with few streams, write down
what they did and were answered (`tests/support/judged_clients.py`), while a process at a time is killed or frozen:
services, the segment store, Kafka, Redis. Then the judge (`tests/judge`) decides. Exit code 1 if a stream was not
linearizable; its folder, with histories and drawings, is kept. `--broken` runs gateways without the read barrier, which
must be found guilty.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import grpc
from support.judge import verdict
from support.judged_clients import Clients, RefusedError

from harness import System
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice_local.settings import LocalSettings

GROUPS = 4
CLIENTS = 4
DEADLINE_S = 8.0
KILLED = (
    "api-gateway-0",
    "api-gateway-1",
    "stream-workflows-0",
    "stream-workflows-1",
    "txn-manager-0",
    "txn-manager-1",
)
FROZEN = (*KILLED, "segment-store-0", "kafka", "redis")
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
)
_BROKEN = """
from sluice.engine.journal import Journal

async def passed(*_):
    pass

Journal.barrier = passed
"""


def caller(address: str) -> Callable[[str, Any], Any]:
    stub = ControllerServiceStub(grpc.aio.insecure_channel(address, options=_OPTIONS))

    async def call(rpc: str, request: Any) -> Any:
        try:
            return await getattr(stub, rpc)(request, timeout=DEADLINE_S, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            raise RefusedError(error.code().name, error.details() or "") from None

    return call


async def _fail(system: System, random: Random, seen: Counter[str]) -> None:
    """One fault at a time; what was hit is ready again before the next one."""
    while True:
        await asyncio.sleep(random.uniform(1.0, 6.0))
        if random.random() < 0.5:
            name = random.choice(KILLED)
            seen[f"{name} killed"] += 1
            await asyncio.to_thread(system.kill, name)
            await asyncio.sleep(random.choice((0.0, 1.0, 3.0)))
            await asyncio.to_thread(system.start, name)
        else:
            name = random.choice(FROZEN)
            seen[f"{name} frozen"] += 1
            await asyncio.to_thread(system.freeze, name)
            try:
                await asyncio.sleep(random.choice((0.5, 2.0, 5.0)))
            finally:
                system.thaw(name)


async def record(system: System, folder: Path, operations: int, seed: int, *, faults: bool) -> list[Path]:
    """The histories of the groups."""
    gateways = {address: caller(address) for address in system.grpc_addresses}
    paths = [folder / f"history-{group}.jsonl" for group in range(GROUPS)]
    seen: Counter[str] = Counter()
    failing = asyncio.create_task(_fail(system, Random(seed), seen)) if faults else None
    began, groups = time.monotonic(), []

    async def group(number: int) -> None:
        with paths[number].open("w") as history:
            random = Random(f"{seed}-{number}")
            clients = Clients(gateways, history, random, time.monotonic_ns, prefix=f"group-{number}")
            groups.append(clients)
            await clients.run(CLIENTS, operations // GROUPS)

    doing = asyncio.gather(*(group(number) for number in range(GROUPS)))
    while not doing.done():
        waiting: list[asyncio.Future[Any]] = [doing, *([failing] if failing is not None else [])]
        await asyncio.wait(waiting, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        if failing is not None and failing.done():
            failing.result()
        done, unknown = sum(c.operations for c in groups), sum(c.unknown for c in groups)
        _say(f"{time.monotonic() - began:.0f} s: {done} operations, {unknown} of unknown end, {seen.total()} faults")
    if failing is not None:
        failing.cancel()
        await asyncio.gather(failing, return_exceptions=True)
    doing.result()
    _say(", ".join(f"{name} {count}" for name, count in sorted(seen.items())))
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(prog="make judge", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--broken", action="store_true", help="gateways read without the barrier")
    options = parser.parse_args()
    folder = LocalSettings().home
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(mkdtemp(prefix="judged-", dir=folder))
    _say(f"seed {options.seed}, in {home}")
    system = System(home, segment_stores=1, api_gateways=2, stream_workflows=2, txn_managers=2)
    if options.broken:
        (home / "broken").mkdir()
        (home / "broken" / "sitecustomize.py").write_text(_BROKEN)
        for name in ("api-gateway-0", "api-gateway-1"):
            system.configure(name, {"PYTHONPATH": str(home / "broken")})
    with system:
        paths = asyncio.run(record(system, home, options.operations, options.seed, faults=not options.calm))
    found = verdict(paths, home)
    print(found.text, end="")
    if found.is_linearizable:
        rmtree(home)
    return 0 if found.is_linearizable else 1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
