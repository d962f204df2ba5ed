"""Where a follower of the journal begins: behind the newest snapshot of each partition that may be used.

A follower begins at the marker of its snapshot, which the journal still has: it is trimmed behind an older one. If the
record there is another one, the snapshot is of another journal. If it is gone, the journal was trimmed while the
follower loaded. Either way it loads the partition anew. Belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

import msgspec

from sluice.engine.fold import PartitionView
from sluice.engine.ports import Message, Model, SnapshotReader
from sluice.engine.snapshots import Snapshot, SnapshotManifest, newest, snapshots_of
from sluice.telemetry import metrics

log = logging.getLogger(__name__)


SIDE_BY_SIDE = 4
"""Partitions that are fetched at a time: their bytes are held until they are restored."""


class Start(msgspec.Struct, frozen=True):
    """A partition's view, loaded or empty, and the offset to follow from. A loaded view has that record already."""

    view: PartitionView
    manifest: SnapshotManifest | None

    @property
    def begin(self) -> int:
        return self.manifest.offset if self.manifest is not None else 0


def is_marker_of(manifest: SnapshotManifest, message: Message, model: Model) -> bool:
    """Whether the message is the marker that a snapshot was captured behind."""
    if message.offset() != manifest.offset or message.error() is not None:
        return False
    return bool(model.decode(message.value() or b"").id == manifest.marker)


class SnapshotLoader:
    """Loads the partitions of one journal; `new_view` makes the empty view of a partition.

    `refusals` says of each partition why newer snapshots than the one that was taken were not, newest first.
    """

    def __init__(self, store: SnapshotReader, new_view: Callable[[int], PartitionView]) -> None:
        self.refusals: dict[int, list[str]] = {}
        self._store = store
        self._new_view = new_view
        self._of_another_journal: set[str] = set()

    async def starts(
        self, partitions: Collection[int], ends: Mapping[int, int], below: int | None = None
    ) -> "dict[int, Start]":
        """For each of the partitions, which end there, where to begin: behind a marker below `below`, if that is set.

        Raises SnapshotStoreError.
        """
        notes = await self._store.notes(partitions)
        free = asyncio.Semaphore(SIDE_BY_SIDE)

        async def start(partition: int) -> Start:
            snapshots, refused = snapshots_of(notes[partition])
            self.refusals[partition] = [self._warn(partition, reason) for reason in refused]
            wanted = [s for s in snapshots if below is None or s.manifest.offset < below]
            async with free:
                return await self._start(partition, wanted, ends[partition])

        return dict(zip(partitions, await asyncio.gather(*map(start, partitions)), strict=True))

    def refuse(self, manifest: SnapshotManifest) -> None:
        """The journal has another record where this snapshot has its marker."""
        self._of_another_journal.add(manifest.id)

    async def _start(self, partition: int, snapshots: list[Snapshot], end: int) -> Start:
        view = self._new_view(partition)

        def refuse(snapshot: Snapshot, reason: str) -> None:
            text = f"snapshot {snapshot.manifest.id} at {snapshot.manifest.offset}: {reason}"
            self.refusals[partition].append(self._warn(partition, text))

        usable = []
        for snapshot in snapshots:
            if snapshot.manifest.id in self._of_another_journal:
                refuse(snapshot, "the journal has another record where its marker was")
            else:
                usable.append(snapshot)
        manifest = await newest(self._store, usable, end, view.restore, refuse)
        if manifest is not None:
            log.info(
                "snapshot loaded",
                extra={"partition": partition, "offset": manifest.offset, "bytes": manifest.bytes},
            )
        return Start(view, manifest)

    def _warn(self, partition: int, reason: str) -> str:
        log.warning("snapshot refused", extra={"partition": partition, "reason": reason})
        metrics.SNAPSHOTS_REFUSED.inc()
        return reason
