"""Chance and clocks: within a simulated run, what services draw and what they read off a clock follows from its seed.

Services draw pauses from the module `random` and make ids by `uuid` and `secrets`; here all of these begin anew from
the seed. The order of a set of strings is of the process alone: what services do must not depend on it.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import UUID


class _Clock:
    """Stands for the module `time` where services read the clock."""

    @staticmethod
    def time_ns() -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    @staticmethod
    def monotonic() -> float:
        return asyncio.get_running_loop().time()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it all follows from the seed and from the time of the event loop. It may be entered anew within itself."""
    before, ids = random.getstate(), random.Random(seed)
    random.seed(seed)
    try:
        with (
            patch("sluice.journal.journal.time", _Clock),
            patch("uuid.uuid4", lambda: UUID(int=ids.getrandbits(128), version=4)),
            patch("secrets.token_hex", lambda count: ids.randbytes(count).hex()),
        ):
            yield
    finally:
        random.setstate(before)
