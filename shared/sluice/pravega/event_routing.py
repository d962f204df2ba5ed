"""Which segment an event goes to, by its routing key.

Every writer of a stream must choose alike, or the events of a key would lose their order: the hash is that of the Java
client (murmur3 over the UTF-16 of the key, the upper 52 bits of the first half as a fraction), and the segment is the
first one whose range of keys ends at or behind it (controller-grpc-api 6.6). Pure functions.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter

import mmh3

_SEED = 1741865571
"""The Java hash code of `EventRouter`."""
_UNUSED_BITS = 12
_FRACTIONS = float(1 << 52)


def key_position(key: str) -> float:
    """Where a routing key lies in the space of keys, from 0 to below 1."""
    first, _ = mmh3.hash64(key.encode("utf-16-le", "surrogatepass"), _SEED, signed=False)
    return (first >> _UNUSED_BITS) / _FRACTIONS


def segment_at(position: float, ranges: Sequence[tuple[float, str]]) -> str:
    """The segment for a position; `ranges` are the upper ends, in order, each with its segment."""
    return ranges[bisect_left(ranges, position, key=itemgetter(0))][1]
