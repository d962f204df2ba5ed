"""Waiting between two attempts: exponential, with jitter, bounded."""

from collections.abc import Iterator

from sluice.engine.ports import Chance, SystemChance

_SYSTEM = SystemChance()

FIRST_S = 0.05
FACTOR = 2.0
MAX_S = 5.0
LEAST, MOST = 0.75, 1.25
"""The bounds of jitter."""


def delays(first_s: float = FIRST_S, max_s: float = MAX_S, chance: Chance = _SYSTEM) -> Iterator[float]:
    """Seconds to wait before the second attempt, the third and so on, for ever."""
    delay = first_s
    while True:
        yield delay * chance.jitter(LEAST, MOST)
        delay = min(delay * FACTOR, max_s)


def longest_delay_s(attempts: int) -> float:
    """The longest pause behind an attempt, of so many or more but less than twice as many, by the usual delays.

    That is what is known where attempts are recorded when their number has doubled.
    """
    return min(FIRST_S * FACTOR ** min(2 * attempts - 2, 64), MAX_S) * MOST
