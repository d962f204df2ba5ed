"""A seed says everything: the same run in another process leaves the same record, byte by byte, ids and times too.

The other process orders its sets of strings otherwise.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from simulation import test_crossing
from simulation.coordination import test_board, test_lock
from simulation.txn import run

TESTS = Path(__file__).parents[1]


def crossing(seed: int) -> list[str]:
    return test_crossing.run_seed(seed)


def transactions(seed: int) -> list[str]:
    logs = run.run_seed(seed).plant.broker.all_logs()
    return [f"{message.timestamp()[1]} {message.value().decode()}" for log in logs for message in log]


def board(seed: int) -> list[str]:
    return test_board.run(seed).world.server.written


def lock(seed: int) -> list[str]:
    plan = [("kill", 8.0, 0, 0.0), ("freeze", 20.0, 1, 15.0), ("away", 30.0, 0, 9.0)]
    return test_lock.run(seed, plan, 0.05, 0.3, 0.3).world.server.written


WORLDS: dict[str, tuple[Callable[[int], list[str]], range]] = {
    "crossing": (crossing, range(4)),
    "transactions": (transactions, range(6)),
    "board": (board, range(1)),
    "lock": (lock, range(2)),
}
"""What is left by a run of a seed, and the seeds that are compared."""


def digests() -> list[str]:
    """One for each world and seed."""
    with run.quiet():
        return [
            f"{world} {seed} {hashlib.sha256(chr(10).join(left(seed)).encode()).hexdigest()}"
            for world, (left, seeds) in WORLDS.items()
            for seed in seeds
        ]


def test_a_seed_says_everything() -> None:
    order = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    elsewhere = subprocess.run(
        [sys.executable, "-c", "from simulation.test_seeds import digests; print(*digests(), sep='\\n')"],
        env={**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=240,
        check=True,
    )
    assert elsewhere.stdout.splitlines() == digests()


def test_another_seed_says_something_else() -> None:
    for left in (crossing, transactions, lock):
        assert left(1) != left(2)
