"""Where in the space of keys an entry of a key-value table lies, by its primary key.

Every client must choose a partition alike, or an entry would not be found: the hash is that of the Java client
(`KeyValueTableSegments`: murmur3 over the bytes of the primary key, the upper 52 bits of the first half as a fraction).
Its seed is a negative number, which Java widens to 64 bits with its sign. `mmh3` takes 32 bits, so the hash is written
out here; a test holds it against `mmh3` for the seeds that both can have. Pure functions.
"""

import struct

_SEED = -2020233499
"""The Java hash code of `KeyValueTableRouter`."""
_UNUSED_BITS = 12
_FRACTIONS = float(1 << 52)
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_BLOCK = struct.Struct("<QQ")
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


def entry_position(primary_key: bytes) -> float:
    """From 0 to below 1; `event_routing.segment_at` gives the partition for it."""
    return (murmur3_first_half(primary_key, _SEED) >> _UNUSED_BITS) / _FRACTIONS


def murmur3_first_half(data: bytes, seed: int) -> int:
    """The first 64 of the 128 bits of murmur3 for 64-bit machines, unsigned; `seed` is signed."""
    first = second = seed & _MASK_64
    whole = len(data) - len(data) % _BLOCK.size
    for low, high in _BLOCK.iter_unpack(data[:whole]):
        first ^= _mixed(low, _C1, 31, _C2)
        first = (_rotated(first, 27) + second) * 5 + 0x52DCE729 & _MASK_64
        second ^= _mixed(high, _C2, 33, _C1)
        second = (_rotated(second, 31) + first) * 5 + 0x38495AB5 & _MASK_64
    low, high = _BLOCK.unpack(data[whole:].ljust(_BLOCK.size, b"\0"))
    first ^= _mixed(low, _C1, 31, _C2) ^ len(data)
    second ^= _mixed(high, _C2, 33, _C1) ^ len(data)
    first = first + second & _MASK_64
    second = second + first & _MASK_64
    return _finished(first) + _finished(second) & _MASK_64


def _mixed(half: int, before: int, bits: int, after: int) -> int:
    return _rotated(half * before & _MASK_64, bits) * after & _MASK_64


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK_64


def _finished(half: int) -> int:
    half = (half ^ half >> 33) * 0xFF51AFD7ED558CCD & _MASK_64
    half = (half ^ half >> 33) * 0xC4CEB9FE1A85EC53 & _MASK_64
    return half ^ half >> 33
