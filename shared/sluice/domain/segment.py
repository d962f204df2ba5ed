"""Segment ids and the names segments have on the data plane.

The names are a contract with the segment stores and with every Pravega client, so there is one module that writes and
reads them (stream-and-transaction-semantics 2.1 and 10.1, segment-store-wire-protocol 7.0). Pure functions, no state.
"""

import re

import msgspec

KVT_SUFFIX = "_kvtable"
TRANSACTION_INFIX = "#transaction."
_MAX_INT32 = 0x7FFFFFFF
_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_SIGN_64 = 1 << 63


_NAME = re.compile(r"(?:([^/]+)/)?([^/]+)/([0-9]+)(?:\.#epoch\.([0-9]+))?")


_TRANSACTION = re.compile(r"([0-9a-fA-F]{16})([0-9a-fA-F]{16})")


def segment_id(epoch: int, number: int) -> int:
    """The 64-bit id: creation epoch in the high half, segment number in the low half.

    Raises ValueError unless both are non-negative 32-bit numbers.
    """
    if not (0 <= epoch <= _MAX_INT32 and 0 <= number <= _MAX_INT32):
        raise ValueError(f"epoch {epoch} or segment number {number} is not a non-negative 32-bit number")
    return (epoch << 32) | number


def epoch_of(segment: int) -> int:
    """The epoch in which the segment with this id was created."""
    return segment >> 32


def number_of(segment: int) -> int:
    """The number of the segment with this id, unique within its stream."""
    return segment & _MASK_32


def segment_name(scope: str, stream: str, segment: int) -> str:
    """`<scope>/<stream>/<number>.#epoch.<epoch>`."""
    return f"{scope}/{stream}/{segment & _MASK_32}.#epoch.{segment >> 32}"


def kvt_segment_name(scope: str, table: str, segment: int) -> str:
    """`<scope>/<table>_kvtable/<number>.#epoch.<epoch>`."""
    return segment_name(scope, table + KVT_SUFFIX, segment)


def transaction_segment_name(scope: str, stream: str, segment: int, txn_high: int, txn_low: int) -> str:
    """The segment that holds what transaction (`txn_high`, `txn_low`) wrote for `segment`.

    The halves of the transaction's id are 64-bit numbers, signed or not. The parent part of the name carries the
    transaction's own epoch, the high 32 bits of its id, whatever epoch `segment` has.
    """
    high = txn_high & _MASK_64
    parent = segment_name(scope, stream, ((high >> 32) << 32) | (segment & _MASK_32))
    return f"{parent}{TRANSACTION_INFIX}{high:016x}{txn_low & _MASK_64:016x}"


def parse_segment_name(name: str) -> tuple[str, str, int, tuple[int, int] | None]:
    """(scope, stream, segment id, transaction) of the name of a stream, transaction or key-value-table segment.

    The transaction is None or its id as signed (high, low). The scope is "" if the name has none; a bare number
    without epoch is of epoch 0. Raises ValueError for any other name.
    """
    parent, transaction = name, None
    cut = name.rfind(TRANSACTION_INFIX)
    if cut >= 0:
        digits = _TRANSACTION.fullmatch(name, cut + len(TRANSACTION_INFIX))
        if digits is None:
            raise ValueError(f"not a segment name: {name!r}")
        parent = name[:cut]
        transaction = (_signed(int(digits[1], 16)), _signed(int(digits[2], 16)))
    parts = _NAME.fullmatch(parent)
    if parts is None:
        raise ValueError(f"not a segment name: {name!r}")
    return parts[1] or "", parts[2], segment_id(int(parts[4] or 0), int(parts[3])), transaction


def _signed(half: int) -> int:
    return half - (1 << 64) if half & _SIGN_64 else half


class Segment(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A segment's id (creation epoch in the high 32 bits, number in the low) and its key range [low, high)."""

    id: int
    low: float
    high: float
