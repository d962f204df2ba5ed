"""The ids of transactions: UUIDs that clients take apart.

The high 32 bits are the epoch whose segments the transaction writes to; the low half is never negative, because a
client that decodes it as a signed number would lose the high half (controller-grpc-api 6.2). Pure functions.
"""

from hashlib import blake2b
from uuid import UUID

_MASK_64 = 0xFFFFFFFFFFFFFFFF
_MAX_INT64 = 0x7FFFFFFFFFFFFFFF
_BEYOND_COUNTERS = 1 << 62
"""Set in every low half: Pravega's own controllers count there from 0, and what they gave out is never given again."""
_RANGE_DIGITS = 2
MAX_RANGE = 16**_RANGE_DIGITS
"""The ids of a range differ in their last digits alone."""


def transaction_id(epoch: int, request: str) -> str:
    """The id of the transaction that a request opens in an epoch."""
    low = int.from_bytes(blake2b(request.encode(), digest_size=8).digest(), "big") & _MAX_INT64 | _BEYOND_COUNTERS
    return f"{epoch:08x}-0000-0000-{low >> 48:04x}-{low & 0xFFFFFFFFFFFF:012x}"


def first_of_range(epoch: int, token: str) -> str:
    """The id that a range of an epoch begins with; the token is not used for anything else."""
    return f"{transaction_id(epoch, token)[:-_RANGE_DIGITS]}{0:0{_RANGE_DIGITS}x}"


def ids_of_range(first: str, count: int) -> list[str]:
    """The ids of a range, ascending."""
    if not 0 < count <= MAX_RANGE:
        raise ValueError(f"a range has 1 to {MAX_RANGE} ids, not {count}")
    return [f"{first[:-_RANGE_DIGITS]}{number:0{_RANGE_DIGITS}x}" for number in range(count)]


def range_of(transaction: str) -> str:
    """The first id of the range that an id belongs to."""
    return f"{transaction[:-_RANGE_DIGITS]}{0:0{_RANGE_DIGITS}x}"


def text_of(high: int, low: int) -> str:
    """The id of two signed or unsigned 64-bit halves, as text."""
    return _text_of_digits(f"{high & _MASK_64:016x}{low & _MASK_64:016x}")


def packed_id(transaction: str) -> bytes:
    """The bytes of an id; what is written otherwise than an id may have the same. Raises ValueError if it has none."""
    return bytes.fromhex(transaction.replace("-", ""))


def unpacked_id(packed: bytes) -> str:
    """The id of 16 bytes."""
    return _text_of_digits(packed.hex())


def _text_of_digits(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def halves(transaction: str) -> tuple[int, int]:
    """The two halves as signed 64-bit numbers."""
    number = UUID(transaction).int
    return _signed(number >> 64), _signed(number & _MASK_64)


def epoch_of(transaction: str) -> int:
    """The epoch whose segments the transaction writes to."""
    return UUID(transaction).int >> 96


def _signed(half: int) -> int:
    return half - (1 << 64) if half > _MAX_INT64 else half
