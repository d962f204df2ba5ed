"""A table segment in memory: the rules of keys and versions for the twin of the segment store.

Rules: segment-store-wire-protocol 5.3 to 5.6. Concurrency: a request takes effect at once.
"""

from collections.abc import Sequence
from typing import Any

from sluice.pravega.wire import refusals, tables
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.fields import NO_VERSION, NOT_EXISTS, TableEntry, TableKey

_ENTRY_HEADER_BYTES = 17
_ILLEGAL_ARGUMENT = 0


class MemoryTable:
    """The live entries of one table; the version of an entry is its position in the table's log."""

    def __init__(self, key_length: int) -> None:
        self.entries: dict[bytes, tuple[int, bytes]] = {}
        self._key_length = key_length
        self._length = 0

    def answer(self, request: Any) -> Command:
        """The reply to any request on the table but its deletion."""
        if isinstance(request, tables.UpdateTableEntries):
            return self._update(request)
        if isinstance(request, tables.RemoveTableKeys):
            return self._remove(request)
        if isinstance(request, tables.ReadTable):
            return tables.TableRead(request.request_id, request.segment, tuple(map(self._entry, request.keys)))
        if isinstance(request, tables.ReadTableEntries):
            return self._read(request)
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
            self._length += _ENTRY_HEADER_BYTES + len(entry.key.key) + len(entry.value)
        return tables.TableEntriesUpdated(request.request_id, tuple(versions))

    def _remove(self, request: tables.RemoveTableKeys) -> Command:
        refusal = self._refuse(request, request.keys)
        if refusal is not None:
            return refusal
        for key in request.keys:
            self.entries.pop(key.key, None)
            self._length += _ENTRY_HEADER_BYTES + len(key.key)
        return tables.TableKeysRemoved(request.request_id, request.segment)

    def _read(self, request: tables.ReadTableEntries) -> Command:
        """In the order of keys; a real store has its own order where keys may have any length."""
        if request.from_key and not self._key_length:
            return refusals.ErrorMessage(request.request_id, request.segment, "no order of keys", _ILLEGAL_ARGUMENT)
        behind = request.continuation
        keys = sorted(key for key in self.entries if key >= request.from_key and key > behind)[
            : request.suggested_count
        ]
        entries = tuple(self._entry(TableKey(key)) for key in keys)
        return tables.TableEntriesRead(request.request_id, request.segment, entries, keys[-1] if keys else b"")

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
