"""A table segment in memory: the rules of keys and versions for the twin of the segment store.

Rules: segment-store-wire-protocol 5.3 to 5.7. Concurrency: a request takes effect at once.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from sluice.pravega.wire import others, refusals, tables
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.fields import NO_VERSION, NOT_EXISTS, TableEntry, TableKey

_ENTRY_HEADER_BYTES = 17
_REMEMBERED = 1_000
_PAGE_BYTES = 2 * 1024 * 1024
_ILLEGAL_ARGUMENT = 0


class _Written(NamedTuple):
    """A record of a table's log, from its position to its end; the value is None where the key was removed."""

    position: int
    end: int
    key: bytes
    value: bytes | None


class MemoryTable:
    """The live entries of one table; the version of an entry is its position in the table's log.

    Of what was overwritten or removed the log has the last thousand records at least.
    """

    def __init__(self, key_length: int) -> None:
        self.entries: dict[bytes, tuple[int, bytes]] = {}
        self._key_length = key_length
        self._length = 0
        self._log: list[_Written] = []

    def answer(self, request: Any) -> Command:
        """The reply to any request on the table but its deletion."""
        if isinstance(request, tables.UpdateTableEntries):
            return self._update(request)
        if isinstance(request, tables.RemoveTableKeys):
            return self._remove(request)
        if isinstance(request, tables.ReadTable):
            return tables.TableRead(request.request_id, request.segment, tuple(map(self._entry, request.keys)))
        if isinstance(request, tables.ReadTableEntries | others.ReadTableKeys):
            return self._read(request)
        if isinstance(request, others.ReadTableEntriesDelta):
            return self._read_delta(request)
        return tables.TableSegmentInfo(
            request.request_id, request.segment, 0, self._length, len(self.entries), self._key_length
        )

    def refuse_delete(self, request: tables.DeleteTableSegment) -> Command | None:
        """Why the table must not be deleted, None if it may be."""
        if request.must_be_empty and self._key_length:
            return refusals.OperationUnsupported(request.request_id, "deleteTableSegment")
        if request.must_be_empty and self.entries:
            return refusals.TableSegmentNotEmpty(request.request_id, request.segment, "")
        return None

    def _update(self, request: tables.UpdateTableEntries) -> Command:
        refusal = self._refuse(request, [entry.key for entry in request.entries])
        if refusal is not None:
            return refusal
        versions = []
        for entry in request.entries:
            versions.append(self._length)
            self.entries[entry.key.key] = (self._length, entry.value)
            self._write(entry.key.key, entry.value)
        return tables.TableEntriesUpdated(request.request_id, tuple(versions))

    def _remove(self, request: tables.RemoveTableKeys) -> Command:
        refusal = self._refuse(request, request.keys)
        if refusal is not None:
            return refusal
        for key in request.keys:
            self.entries.pop(key.key, None)
            self._write(key.key, None)
        return tables.TableKeysRemoved(request.request_id, request.segment)

    def _write(self, key: bytes, value: bytes | None) -> None:
        position, size = self._length, _ENTRY_HEADER_BYTES + len(key) + len(value or b"")
        self._length += size
        self._log.append(_Written(position, self._length, key, value))
        if len(self._log) > 2 * (len(self.entries) + _REMEMBERED):
            older = self._log[:-_REMEMBERED]
            live = [one for one in older if self._version(one.key) == one.position]
            self._log[:-_REMEMBERED] = live

    def _read(self, request: tables.ReadTableEntries | others.ReadTableKeys) -> Command:
        """In the order of keys; a real store has its own order where keys may have any length.

        A page of keys ends where that of their entries would.
        """
        is_ranged = bool(request.from_key or request.to_key)
        if (self._key_length and request.continuation) or (is_ranged and not self._key_length):
            return refusals.ErrorMessage(request.request_id, request.segment, "no order of keys", _ILLEGAL_ARGUMENT)
        first, last, behind = request.from_key, request.to_key, request.continuation
        found = sorted(key for key in self.entries if key >= first and key > behind and (not last or key <= last))
        keys = found[: request.suggested_count]
        keys = keys[: _end_of_page(_ENTRY_HEADER_BYTES + len(key) + len(self.entries[key][1]) for key in keys)]
        entries, continuation = tuple(self._entry(TableKey(key)) for key in keys), keys[-1] if keys else b""
        if isinstance(request, others.ReadTableKeys):
            only_keys = tuple(entry.key for entry in entries)
            return others.TableKeysRead(request.request_id, request.segment, only_keys, continuation)
        return tables.TableEntriesRead(request.request_id, request.segment, entries, continuation)

    def _read_delta(self, request: others.ReadTableEntriesDelta) -> Command:
        """Of each key what was written last among the records that are read; a removal takes it out (5.7)."""
        request_id, name = request.request_id, request.segment
        if self._key_length:
            return refusals.OperationUnsupported(request_id, "readTableEntriesDelta")
        if not 0 <= request.from_position <= self._length:
            return refusals.ErrorMessage(request_id, name, "no such position", _ILLEGAL_ARGUMENT)
        begin = bisect_left(self._log, request.from_position, key=lambda one: one.position)
        read = self._log[begin : begin + max(1, request.suggested_count)]
        read = read[: _end_of_page(one.end - one.position for one in read)]
        last: dict[bytes, _Written] = {one.key: one for one in read}
        entries = tuple(
            TableEntry(TableKey(one.key, one.position), one.value) for one in last.values() if one.value is not None
        )
        end = read[-1].end if read else 0
        return others.TableEntriesDeltaRead(request_id, name, entries, False, not read or end == self._length, end)

    def _version(self, key: bytes) -> int:
        return self.entries.get(key, (NOT_EXISTS, b""))[0]

    def _refuse(
        self, request: tables.UpdateTableEntries | tables.RemoveTableKeys, keys: Sequence[TableKey]
    ) -> Command | None:
        """All conditions are judged by the state before the batch; a missing key comes before a wrong version."""
        request_id, name = request.request_id, request.segment
        if self._key_length and any(len(key.key) != self._key_length for key in keys):
            return refusals.ErrorMessage(request_id, name, "wrong key length", _ILLEGAL_ARGUMENT)
        demanding = [key for key in keys if key.version != NO_VERSION]
        missing = any(key.version >= 0 and key.key not in self.entries for key in demanding)
        if missing and not self._key_length:
            return refusals.TableKeyDoesNotExist(request_id, name, "")
        if missing or any(self._entry(key).key.version != key.version for key in demanding):
            return refusals.TableKeyBadVersion(request_id, name, "")
        return None

    def _entry(self, key: TableKey) -> TableEntry:
        version, value = self.entries.get(key.key, (NOT_EXISTS, b""))
        return TableEntry(TableKey(key.key, version), value)


def _end_of_page(sizes: Iterable[int]) -> int:
    """How many of them one reply has at most: that which reaches its size is the last."""
    return bisect_left(list(accumulate(sizes)), _PAGE_BYTES) + 1
