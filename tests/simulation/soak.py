"""Many seeds: `make soak`. `SOAK_SEEDS` says how many, `SOAK_SECONDS` for how long, `SOAK_FROM` where to begin.

`SOAK_WORLD` says of what: `transactions`, `scopes`, `snapshots`, or all, one after the other. Ends with status 1 and
the seeds that failed, if any did.
"""

import os
import sys
import time

from simulation.scopes import run as scopes
from simulation.seeds import RunSeed, run_seeds
from simulation.snapshots import run as snapshots
from simulation.txn import run as transactions
from simulation.violation import Violation

EACH = 500
WORLDS: dict[str, RunSeed] = {
    "transactions": transactions.run_seed,
    "scopes": scopes.run_seed,
    "snapshots": snapshots.run_seed,
}


def soak(name: str, first: int, seeds: int, until_s: float) -> int:
    """How many failed."""
    began_s, failed, last = time.monotonic(), 0, first
    while last < first + seeds and time.monotonic() < until_s:
        left = iter(range(last, min(last + EACH, first + seeds)))
        while True:
            try:
                run_seeds(WORLDS[name], left, until_s)
                break
            except Violation as violation:
                failed += 1
                print(violation, flush=True)
        last = next(left, min(last + EACH, first + seeds))
        print(f"{name}: {last - first} seeds, {failed} failed, {time.monotonic() - began_s:.0f} s", flush=True)
    return failed


def main() -> None:
    first = int(os.environ.get("SOAK_FROM", time.time_ns() // 1_000_000_000 * 1_000_000))
    seeds = int(os.environ.get("SOAK_SEEDS", 10_000))
    seconds = float(os.environ.get("SOAK_SECONDS", 3600))
    chosen = os.environ.get("SOAK_WORLD")
    names = [chosen] if chosen else list(WORLDS)
    failed = sum(soak(name, first, seeds, time.monotonic() + seconds / len(names)) for name in names)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
