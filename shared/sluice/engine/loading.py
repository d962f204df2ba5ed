"""Where a follower of the journal begins: behind the newest snapshot of each partition that may be used.

A follower begins at the marker of its snapshot, which the journal still has: it is trimmed behind an older one. If the
journal was trimmed while the follower loaded, it loads the partition anew.

The journal only grows. So one that ends before the marker of a confirmed snapshot, or has another record there, was
made anew or has lost its end. What it says is no longer the truth, and to go on from it would give out names a second
time: the partition stops. Belongs to the event loop.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

import msgspec

from sluice.engine.errors import LostRecordsError, MissingRecordsError
from sluice.engine.fold import PartitionView
from sluice.engine.ports import Ends, Message, Model, SnapshotReader, end_of
from sluice.engine.snapshots import Snapshot, SnapshotManifest, newest, snapshots_of
from sluice.engine.step import all_done
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

    @property
    def id(self) -> str:
        """Of the snapshot; empty without one."""
        return self.manifest.id if self.manifest is not None else ""


def check_order(message: Message, next_offset: int, loaded_behind: SnapshotManifest | None, model: Model) -> None:
    """A message that is not the next one is the marker that the view was loaded behind, or records are missing.

    The journal is neither compacted nor written in transactions: its offsets have no gaps, but for what was trimmed.
    Raises MissingRecordsError, LostRecordsError.
    """
    offset = message.offset()
    if loaded_behind is not None and _is_marker_of(loaded_behind, message, model):
        return
    if offset < next_offset:
        raise LostRecordsError(_lost_end(next_offset - 1, offset))
    raise MissingRecordsError(f"record {offset} follows {next_offset - 1}")


def _is_marker_of(manifest: SnapshotManifest, message: Message, model: Model) -> bool:
    """Whether the message is the marker that the snapshot was captured behind."""
    if message.offset() != manifest.offset or message.error() is not None:
        return False
    return bool(model.decode(message.value() or b"").id == manifest.marker)


def _lost_end(offset: int, following: int) -> str:
    return f"it has lost its end: it had a record at offset {offset}, and goes on at {following}"


def lost_records(snapshots: Iterable[Snapshot], end: int) -> LostRecordsError | None:
    """What a partition that ends at `end` has lost, as these snapshots of it show; None if they show nothing."""
    last = max((s.manifest.offset for s in snapshots if s.problem is None), default=-1)
    return LostRecordsError(f"{_lost_end(last, end)}; a confirmed snapshot was made there") if last >= end else None


class SnapshotLoader:
    """Loads the partitions of one journal; `new_view` makes the empty view of a partition."""

    def __init__(self, store: SnapshotReader, new_view: Callable[[int], PartitionView]) -> None:
        self._store = store
        self._new_view = new_view

    async def starts(
        self,
        partitions: Collection[int],
        ends: Callable[[Collection[int]], Awaitable[Ends]],
        below: int | None = None,
    ) -> dict[int, Start | LostRecordsError]:
        """For each of the partitions where to begin: behind a marker below `below`, if that is set.

        `ends(partitions)` says where they end. Raises SnapshotStoreError, EndsUnknownError.
        """
        notes = await self._store.notes(partitions)
        # Looked for behind the notes: none of them is of a marker that was appended since.
        found = await ends(partitions)
        end = {partition: end_of(found, partition) for partition in partitions}
        lost: dict[int, Start | LostRecordsError] = {}
        wanted: dict[int, list[Snapshot]] = {}
        for partition in partitions:
            snapshots, refused = snapshots_of(notes[partition])
            for reason in refused:
                _warn(partition, reason)
            if (error := lost_records(snapshots, end[partition])) is not None:
                lost[partition] = error
            else:
                wanted[partition] = [s for s in snapshots if below is None or s.manifest.offset < below]
        starts = await all_done((self._start(*each) for each in wanted.items()), SIDE_BY_SIDE)
        return lost | dict(zip(wanted, starts, strict=True))

    async def _start(self, partition: int, snapshots: list[Snapshot]) -> Start:
        view = self._new_view(partition)

        def refuse(snapshot: Snapshot, reason: str) -> None:
            _warn(partition, f"snapshot {snapshot.manifest.id} at {snapshot.manifest.offset}: {reason}")

        manifest = await newest(self._store, snapshots, view.restore, refuse)
        if manifest is not None:
            log.info(
                "snapshot loaded",
                extra={"partition": partition, "offset": manifest.offset, "bytes": manifest.bytes},
            )
        return Start(view, manifest)


def _warn(partition: int, reason: str) -> None:
    log.warning("snapshot refused", extra={"partition": partition, "reason": reason})
    metrics.SNAPSHOTS_REFUSED.inc()
