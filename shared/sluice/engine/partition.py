"""Which partition a key belongs to: Kafka's murmur2, the same in every client that writes our topics.

librdkafka calls it `murmur2_random`; Java clients and Spark use it by default. A test holds this against librdkafka.
"""

import itertools
from functools import lru_cache

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The unsigned 32-bit hash."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    for i in range(0, length - length % 4, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ (k >> 24)) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    tail = data[length - length % 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return h ^ (h >> 15)


_LONGEST_REMEMBERED = 1_000
"""Callers choose keys: no valid one is longer."""


def partition_of(key: str, partitions: int) -> int:
    partition = _remembered_partition if len(key) <= _LONGEST_REMEMBERED else _partition
    return partition(key, partitions)


def _partition(key: str, partitions: int) -> int:
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


_remembered_partition = lru_cache(maxsize=100_000)(_partition)


@lru_cache(maxsize=16)
def partition_keys(partitions: int) -> tuple[str, ...]:
    """For each partition a key of it, to name it by: the first of "#0", "#1" and so on that belongs there.

    No scope or stream has such a name.
    """
    found: dict[int, str] = {}
    for number in itertools.count():
        if len(found) == partitions:
            return tuple(found[partition] for partition in range(partitions))
        key = f"#{number}"
        found.setdefault(partition_of(key, partitions), key)
    raise AssertionError("counting never ends")
