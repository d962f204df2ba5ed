"""Reading and writing entries. A request without an answer is sent again, which does no harm but for one on condition:
what an attempt without an answer has written makes the next one fail, and the error says so.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from sluice.pravega import (
    NO_VERSION,
    NOT_EXISTS,
    KeyMissing,
    KeyVersionDiffers,
    SegmentMissing,
    SegmentStore,
    TableEntry,
    TableKey,
)
from sluice_cli.entries.layout import Key, Layout
from sluice_cli.errors import RefusedError
from sluice_client import patiently

PATIENCE_S = 30.0
PAGE_ENTRIES = 100

_R = TypeVar("_R")


class Entries:
    """The entries of one table. Each method may raise RefusedError, SegmentStoreError and ClientError."""

    def __init__(self, store: SegmentStore, layout: Layout) -> None:
        self.layout = layout
        self._store = store

    async def get(self, key: Key) -> TableEntry | None:
        """The entry of a key, None if there is none."""
        partition = self.layout.partition_of(key)
        [entry] = await self._patiently(lambda: self._store.read_table(partition, [key.whole]))
        return None if entry.key.version == NOT_EXISTS else entry

    async def put(self, key: Key, value: bytes, version: int = NO_VERSION) -> int:
        """Write an entry, whose version is returned; `version` is the one that it must have before."""
        partition, entry = self.layout.partition_of(key), TableEntry(TableKey(key.whole, version), value)
        [written] = await self._on_condition(version, lambda: self._store.update_table_entries(partition, [entry]))
        return written

    async def remove(self, key: Key, version: int = NO_VERSION) -> None:
        """Remove an entry, if there is one; `version` is the one that it must have."""
        partition, wanted = self.layout.partition_of(key), TableKey(key.whole, version)
        await self._on_condition(version, lambda: self._store.remove_table_keys(partition, [wanted]))

    async def all(self) -> AsyncGenerator[tuple[str, TableEntry]]:
        """Every entry behind the name of its partition; one partition after the other, each by its keys."""
        for partition in self.layout.partitions:
            begin: bytes | None = b""
            while begin is not None:
                page = await self._page(partition, begin)
                for entry in page:
                    yield partition, entry
                begin = _after(page[-1].key.key) if page else None

    async def _page(self, partition: str, begin: bytes) -> list[TableEntry]:
        return await self._patiently(lambda: self._store.read_table_entries(partition, PAGE_ENTRIES, begin))

    async def _on_condition(self, version: int, write: Callable[[], Awaitable[_R]]) -> _R:
        attempts = 0

        async def attempt() -> _R:
            nonlocal attempts
            attempts += 1
            return await write()

        try:
            return await self._patiently(attempt)
        except (KeyMissing, KeyVersionDiffers) as error:
            there = "there is an entry already" if version == NOT_EXISTS else f"the entry is not of version {version}"
            hint = "`sluice table get --json` shows the version"
            if attempts > 1:
                hint += "; the answer to an attempt before got lost, so this may be what it wrote"
            raise RefusedError(f"nothing was written: {there}", hint) from error

    async def _patiently(self, call: Callable[[], Awaitable[_R]]) -> _R:
        try:
            return await patiently(call, PATIENCE_S)
        except SegmentMissing as error:
            raise RefusedError(f"table {self.layout.name} is not there any more") from error


def _after(key: bytes) -> bytes | None:
    """The next key of the same length, None after the last one."""
    following = int.from_bytes(key) + 1
    return None if following >> 8 * len(key) else following.to_bytes(len(key))
