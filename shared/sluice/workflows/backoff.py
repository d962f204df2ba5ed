"""Waiting between two attempts: exponential, with jitter, bounded."""

import random
from collections.abc import Iterator


def delays(first_s: float = 0.05, factor: float = 2.0, most_s: float = 5.0) -> Iterator[float]:
    """Seconds to wait before the second attempt, the third and so on, for ever."""
    delay = first_s
    while True:
        yield delay * random.uniform(0.75, 1.25)
        delay = min(delay * factor, most_s)
