"""Waiting between two attempts: exponential, with jitter, bounded."""

from collections.abc import Iterator

from sluice.engine.ports import Chance, SystemChance

_SYSTEM = SystemChance()


def delays(first_s: float = 0.05, factor: float = 2.0, max_s: float = 5.0, chance: Chance = _SYSTEM) -> Iterator[float]:
    """Seconds to wait before the second attempt, the third and so on, for ever."""
    delay = first_s
    while True:
        yield delay * chance.jitter(0.75, 1.25)
        delay = min(delay * factor, max_s)
