"""Many transactions that have ended, in the order of their ends, as rows of 26 bytes.

A row is an aggregate that changes no more: its id, version, outcome and time. The table that finds a row by its id is
neither stored nor compared. It is brought up to date when a row is looked for, so a start does not wait for it. Belongs
to the thread that folds.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct

from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.state import EndedTransaction, TransactionState
from sluice.domain.transaction_ids import packed_id, unpacked_id

_OUTCOMES = (
    (TransactionState.COMMITTED, None),
    *((TransactionState.ABORTED, reason) for reason in (None, *AbortReason)),
)
"""How a transaction may have ended; a row has the index in this order, in four bits. A new reason comes last."""
_INDEX = {outcome: index for index, outcome in enumerate(_OUTCOMES)}

_ID_BYTES = 16
_FACTS_BYTES = 10
"""The version in 32 bits, the time in 44 bits of milliseconds, the index of the outcome."""
_ROW_BYTES = _ID_BYTES + _FACTS_BYTES
_TIME_BITS, _INDEX_BITS = 44, 4
_IDS = Struct(f"{_ID_BYTES}s{_FACTS_BYTES}x")


class EndedTransactions:
    """`rows` is what `rows` was of others that are alike."""

    __slots__ = ("_found_of", "_rows", "_table")

    def __init__(self, rows: bytes = b"") -> None:
        self._rows = bytearray(rows)
        # By hash of the id, the next free slot behind it if that is taken: the number of the row from 1 on, 0 if free.
        self._table = array("I", (0,))
        # So many of the first rows are in the table.
        self._found_of = 0

    @property
    def rows(self) -> bytes:
        """All that is known of them."""
        return bytes(self._rows)

    def __len__(self) -> int:
        return len(self._rows) // _ROW_BYTES

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EndedTransactions) and self._rows == other._rows

    def __iter__(self) -> Iterator[EndedTransaction]:
        """In the order of their ends. What ends meanwhile is left out."""
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> EndedTransaction:
        state, reason = _OUTCOMES[self._facts(number) & (1 << _INDEX_BITS) - 1]
        return EndedTransaction(unpacked_id(self._part(number, 0, _ID_BYTES)), state, self._at(number), reason)

    def count_since(self, ms: int) -> int:
        """How many ended at that time, epoch ms, or later."""
        return len(self) - bisect_left(range(len(self)), ms, key=self._at)

    def version(self, number: int) -> int:
        """The version of the aggregate."""
        return self._facts(number) >> _TIME_BITS + _INDEX_BITS

    def append(self, version: int, ended: EndedTransaction) -> None:
        """Remember one more, whose aggregate has this version."""
        facts = (version << _TIME_BITS | ended.at) << _INDEX_BITS | _INDEX[ended.state, ended.reason]
        self._rows += packed_id(ended.uuid) + facts.to_bytes(_FACTS_BYTES)

    def number_of(self, uuid: str) -> int | None:
        """How many of these ended before the transaction; None if it is not among them."""
        if self._found_of * _ROW_BYTES < len(self._rows):
            self._catch_up()
        try:
            id = packed_id(uuid)
        except ValueError:
            return None
        table, mask = self._table, len(self._table) - 1
        slot = hash(id) & mask
        while number := table[slot]:
            if self._rows.startswith(id, (number - 1) * _ROW_BYTES):
                return number - 1 if self[number - 1].uuid == uuid else None
            slot = slot + 1 & mask
        return None

    def _at(self, number: int) -> int:
        return self._facts(number) >> _INDEX_BITS & (1 << _TIME_BITS) - 1

    def _facts(self, number: int) -> int:
        return int.from_bytes(self._part(number, _ID_BYTES, _ROW_BYTES))

    def _part(self, number: int, begin: int, end: int) -> bytes:
        row = number * _ROW_BYTES
        return bytes(self._rows[row + begin : row + end])

    def _catch_up(self) -> None:
        """Put into the table what is not in it. Four fifths of it are taken at most."""
        count = len(self)
        if 5 * count > 4 * len(self._table):
            slots = 1 << (5 * count // 4).bit_length()
            self._table, self._found_of = array("I", (0,)) * slots, 0
        table, mask = self._table, len(self._table) - 1
        behind = memoryview(self._rows)[self._found_of * _ROW_BYTES :]
        for number, (id,) in enumerate(_IDS.iter_unpack(behind), self._found_of + 1):
            slot = hash(id) & mask
            while table[slot]:
                slot = slot + 1 & mask
            table[slot] = number
        self._found_of = count
