"""Many seeds: `make soak`. `SOAK_SEEDS` says how many, `SOAK_SECONDS` for how long, `SOAK_FROM` where to begin.

Ends with status 1 and the seeds that failed, if any did.
"""

import os
import sys
import time
from itertools import count

from simulation.txn.model import Violation
from simulation.txn.run import run_seeds

EACH = 500


def main() -> None:
    first = int(os.environ.get("SOAK_FROM", time.time_ns() // 1_000_000_000 * 1_000_000))
    seeds = int(os.environ.get("SOAK_SEEDS", 10_000))
    until_s = time.monotonic() + float(os.environ.get("SOAK_SECONDS", 3600))
    began_s, failed, last = time.monotonic(), 0, first
    left = (seed for seed in count(first) if seed < first + seeds)
    while last < first + seeds and time.monotonic() < until_s:
        batch = []
        for seed in left:
            batch.append(seed)
            if len(batch) == EACH or seed == first + seeds - 1:
                break
        rest = iter(batch)
        while True:
            try:
                run_seeds(rest, until_s)
                break
            except Violation as violation:
                failed += 1
                print(violation, flush=True)
        last = batch[-1] + 1
        print(f"{last - first} seeds, {failed} failed, {time.monotonic() - began_s:.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
