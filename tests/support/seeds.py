"""Whether a seed says everything: the same run in another process leaves the same record.

The other process orders its sets of strings otherwise.
"""

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping

World = tuple[Callable[[int], list[str]], Iterable[int]]
"""What is left by a run of a seed, and the seeds that are compared."""


def digests(worlds: Mapping[str, World]) -> list[str]:
    """One for each world and seed. What is logged meanwhile is not put together."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return [
            f"{world} {seed} {hashlib.sha256(chr(10).join(left(seed)).encode()).hexdigest()}"
            for world, (left, seeds) in worlds.items()
            for seed in seeds
        ]
    finally:
        logging.disable(before)


def digests_elsewhere(module: str) -> list[str]:
    """The digests of the `WORLDS` of a module, as another process finds them."""
    code = f"from {module} import WORLDS; from support.seeds import digests; print(*digests(WORLDS), sep='\\n')"
    order = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=240,
        check=True,
    )
    return elsewhere.stdout.splitlines()
