"""How a snapshot is made: a follower of one partition loads the one before, folds up to the marker, and captures.

A run that finds no snapshot behind the marker writes it. A run that finds one which no second run has confirmed is that
second run: it folds by itself, compares byte for byte with what is stored, and leaves a note of the outcome. So writing
and confirming are the same act, and may be done twice without harm. It belongs to a process of its own, which holds one
partition and takes nothing from services.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from sluice.engine.errors import LostRecordsError
from sluice.engine.fold import PartitionView
from sluice.engine.loading import SnapshotLoader, Start, check_order
from sluice.engine.markers import in_hex
from sluice.engine.partition import partition_keys
from sluice.engine.ports import Chance, Clock, Log, Message, Model, SnapshotStore, end_of
from sluice.engine.record import Record
from sluice.engine.snapshots import (
    FORMAT,
    CapturedAt,
    Snapshot,
    SnapshotConfirmation,
    SnapshotManifest,
    SnapshotRefusedError,
    compare,
    snapshots_of,
    write,
)

log = logging.getLogger(__name__)

STALLED_S = 60.0
"""How long nothing may come of a journal that has more."""


class NoMarkerError(Exception):
    """The record at that offset is no marker, or there is none."""


class Made(msgspec.Struct, frozen=True):
    """What a run has added to the store: a snapshot, or the comparison with one; neither if nothing was left to do."""

    manifest: SnapshotManifest | None = None
    confirmation: SnapshotConfirmation | None = None


class Snapshotter:
    """`by` names this process in what it writes."""

    def __init__(self, log: Log, store: SnapshotStore, model: Model, by: str, clock: Clock, chance: Chance) -> None:
        self._log = log
        self._store = store
        self._model = model
        self._by = by
        self._clock = clock
        self._chance = chance
        self._keys = partition_keys(log.partitions)
        self._loader = SnapshotLoader(store, self._new_view)

    async def run(self, partition: int, offset: int) -> Made:
        """Write the snapshot behind the marker at `offset`, or compare with the one there is.

        Raises NoMarkerError, MissingRecordsError, LostRecordsError, SnapshotRefusedError if what is there is no whole
        snapshot, SnapshotStoreError and EndsUnknownError.
        """
        view, origin = await self._fold(partition, offset)
        notes = await self._store.notes([partition])
        # By its marker: one of another journal may stand at the same offset.
        found = [s for s in snapshots_of(notes[partition])[0] if s.manifest.marker == origin.marker]
        ours = [s for s in found if s.manifest.format == FORMAT]
        if any(s.is_confirmed for s in ours):
            return Made()
        for snapshot in ours:
            if snapshot.difference is None:
                made = await self._compare(snapshot, view)
                if made is not None:
                    return made
        id = f"{partition}-{offset}-{self._chance.token()}"
        manifest = await write(self._store, id, self._by, origin, view.capture())
        log.info("snapshot written", extra={"partition": partition, "offset": offset, "bytes": manifest.bytes})
        return Made(manifest=manifest)

    async def _compare(self, snapshot: Snapshot, view: PartitionView) -> Made | None:
        """None if what is stored is no snapshot: then it is written anew."""
        manifest = snapshot.manifest
        facts = {"partition": manifest.partition, "offset": manifest.offset, "snapshot": manifest.id}
        try:
            note = await compare(self._store, manifest, self._by, self._clock.now_ms(), view.capture())
        except SnapshotRefusedError as error:
            log.error("snapshot refused", extra={**facts, "reason": str(error)})
            return None
        if note.differs is None:
            log.info("snapshot confirmed", extra=facts)
        else:
            log.critical("snapshot differs", extra={**facts, "by": manifest.by, "first": note.differs})
        return Made(confirmation=note)

    def _new_view(self, partition: int) -> PartitionView:
        return PartitionView(self._model, self._keys[partition])

    async def _fold(self, partition: int, offset: int) -> tuple[PartitionView, CapturedAt]:
        """The view behind the marker at `offset`."""
        ends = await self._log.ends((partition,))
        if (end := end_of(ends, partition)) <= offset:
            raise NoMarkerError(f"partition {partition} of the journal ends at {end}, before {offset}")
        start = (await self._loader.starts([partition], self._log.ends, below=offset))[partition]
        if isinstance(start, LostRecordsError):
            raise start
        follower = _Follower(self._model, start, offset)
        self._log.start(follower.take, {partition: start.begin})
        return start.view, await follower.done()


class _Follower:
    """Folds from where `start` is up to and with the record at `offset`."""

    def __init__(self, model: Model, start: Start, offset: int) -> None:
        self._model = model
        self._start = start
        self._offset = offset
        self._moved = asyncio.Event()
        self._ended: asyncio.Future[CapturedAt] = asyncio.get_running_loop().create_future()

    async def done(self) -> CapturedAt:
        """What the marker says.

        Raises NoMarkerError, MissingRecordsError, LostRecordsError, and TimeoutError if nothing comes.
        """
        while not self._ended.done():
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), STALLED_S)
            except TimeoutError:
                raise TimeoutError(f"nothing of the journal came for {STALLED_S:g} s") from None
        return self._ended.result()

    def take(self, batch: Sequence[Message]) -> None:
        """Called with the messages of the partition."""
        self._moved.set()
        for message in batch:
            if self._ended.done():
                return
            try:
                self._fold(message)
            except Exception as error:  # noqa: BLE001 - whatever it is, it reaches who waits
                self._ended.set_exception(error)

    def _fold(self, message: Message) -> None:
        view, offset = self._start.view, message.offset()
        if offset != view.next_offset:
            check_order(message, view.next_offset, self._start.manifest, self._model)
            return
        if message.error() is not None:
            return
        record: Record[object, object] = self._model.decode(message.value() or b"")
        view.fold(record, offset, message.timestamp()[1])
        if offset == self._offset:
            if record.marker is None:
                raise NoMarkerError(f"the record at {offset} is no marker")
            self._ended.set_result(
                CapturedAt(message.partition(), offset, record.id, view.last_ms, in_hex(view.outcome_hash))
            )
