"""Which container a segment is in.

Segment stores, clients and the controller all compute this for themselves and must agree to the bit
(segment-store-cluster A7, stream-and-transaction-semantics 10.1). Pure functions.
"""

import itertools
from functools import lru_cache

import mmh3

_SEED = 1661405012
_TRANSACTION_INFIX = "#transaction."
_TRANSIENT_INFIX = "#transient."
_SHORTEST_SUFFIX = 32
_EPOCH_INFIX = ".#epoch."
_CONTAINER_SEGMENTS = ("_system/containers/metadata_", "_system/containers/storage_metadata_")

_NAMES_REMEMBERED = 10_000
"""A segment of a transaction is spoken of five times in a moment, and its target with each."""

_LONGEST_REMEMBERED = 1_000
"""Callers choose names: no valid one of a segment is longer."""

_MULTIPLIER = 2862933555777941757
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_TWO_TO_31 = float(1 << 31)


def primary_name(name: str) -> str:
    """What all epochs, transactions and transient segments of one segment have in common: `<scope>/<stream>/<number>`.

    A name without `.#epoch.`, such as a metadata table's, is its own primary name.
    """
    end = len(name)
    while (parent := _parent(name, end)) != end:
        end = parent
    cut = name.rfind(_EPOCH_INFIX, 0, end)
    return name[:end] if cut < 0 else name[:cut]


def container_of(name: str, container_count: int) -> int:
    """The container, 0 to `container_count` - 1, of a segment. Raises ValueError if there are no containers."""
    container = _remembered_container if len(name) <= _LONGEST_REMEMBERED else _container
    return container(name, container_count)


def _container(name: str, container_count: int) -> int:
    if container_count < 1:
        raise ValueError(f"{container_count} containers")
    if name.startswith(_CONTAINER_SEGMENTS):
        container = name[name.rindex("_") + 1 :]
        if container.isascii() and container.isdigit():
            return int(container)
    low, _ = mmh3.hash64(primary_name(name).encode("utf-16-le", "surrogatepass"), _SEED, signed=False)
    return consistent_hash(low, container_count)


_remembered_container = lru_cache(maxsize=_NAMES_REMEMBERED)(_container)


def probe_name(container: int, container_count: int) -> str:
    """A segment name that belongs to the container and that no stream can have."""
    names = (f"_system/_probe_{n}/0.#epoch.0" for n in itertools.count())
    return next(name for name in names if container_of(name, container_count) == container)


def consistent_hash(key: int, buckets: int) -> int:
    """The bucket of a 64-bit key; with one bucket more, a key stays where it is or moves to the new bucket.

    Jump consistent hashing as Guava does it, in doubles, drawing from a linear congruential generator.
    """
    state, candidate = key & _MASK_64, 0
    while True:
        state = (_MULTIPLIER * state + 1) & _MASK_64
        following = int((candidate + 1) / (((state >> 33) + 1) / _TWO_TO_31))
        if following >= buckets:
            return candidate
        candidate = following


def _parent(name: str, end: int) -> int:
    """Where the name of what the first `end` characters of a name belong to ends."""
    for infix in (_TRANSACTION_INFIX, _TRANSIENT_INFIX):
        cut = name.rfind(infix, 0, end)
        if cut >= 0 and end - cut - len(infix) >= _SHORTEST_SUFFIX:
            return cut
    return end
