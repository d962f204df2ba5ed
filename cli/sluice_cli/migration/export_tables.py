"""Writes tables of the original, entry by entry. Concurrency: on one event loop; no table by two callers at a time."""

from collections.abc import Iterable, Iterator, Mapping

from sluice.pravega.errors import KeyMissing, KeyVersionDiffers, TryLater
from sluice.pravega.store import SegmentStore
from sluice.pravega.wire.fields import NOT_EXISTS, TableEntry, TableKey
from sluice_cli.errors import CommandError
from sluice_cli.migration.raw import RawTable
from sluice_cli.migration.source import PATIENCE_S
from sluice_client import patiently

BATCH_ENTRIES, BATCH_BYTES = 500, 1 << 20
"""What one request writes at most, but for a single entry."""


class TableWriter:
    """`changes` counts the entries and tables that were not as they were to be. Raises SegmentStoreError."""

    def __init__(self, store: SegmentStore) -> None:
        self.changes = 0
        self._store = store

    async def make(self, name: str, wanted: Mapping[str, bytes], there: RawTable | None) -> None:
        """Have a table with these entries and no others, written in their order; `there` is what was read of it.

        Raises CommandError if something else writes to it, or a reply got lost.
        """
        if there is None:
            await patiently(lambda: self._store.create_table_segment(name, 0), PATIENCE_S, (TryLater,))
            self.changes += 1
        versions = {entry.key: entry.version for entry in there.entries} if there is not None else {}
        values = there.values if there is not None else {}
        new = [
            TableEntry(TableKey(key.encode(), versions.get(key, NOT_EXISTS)), value)
            for key, value in wanted.items()
            if values.get(key) != value
        ]
        gone = [TableKey(key.encode(), version) for key, version in versions.items() if key not in wanted]
        self.changes += len(new) + len(gone)
        try:
            for batch in _batches(new):
                await self._store.update_table_entries(name, batch)
            for at in range(0, len(gone), BATCH_ENTRIES):
                await self._store.remove_table_keys(name, gone[at : at + BATCH_ENTRIES])
        except (KeyMissing, KeyVersionDiffers) as error:
            raise CommandError(
                f"{name} was changed meanwhile: {error}", "see that no controller runs, and repeat it"
            ) from error

        except TryLater as error:
            # The same request would be refused if its first try took effect.
            raise CommandError(f"{error}", "repeat the command: it writes what is left") from error

    async def delete(self, name: str) -> None:
        """Delete a table that is there."""
        await patiently(lambda: self._store.delete_table_segment(name), PATIENCE_S, (TryLater,))
        self.changes += 1


def _batches(entries: Iterable[TableEntry]) -> Iterator[list[TableEntry]]:
    batch: list[TableEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == BATCH_ENTRIES or size + len(entry.value) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(entry.value)
    if batch:
        yield batch
