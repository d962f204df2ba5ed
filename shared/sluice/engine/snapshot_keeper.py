"""When snapshots are made and confirmed, and what is trimmed behind them.

One instance of a service is active: it appends markers, has a helper write the snapshot behind each, and trims. The
others look at the same notes; one of them has its helper confirm what the active one wrote. An instance that is alone
does both. Nothing is remembered but in the journal and the store: the next active one goes on from there. Helpers
run one at a time. Belongs to the event loop.

What counts is a snapshot whose marker this process has passed, or began behind. One of another journal (made anew, or
one that lost its end) may be confirmed and stand at any offset: nothing may be trimmed behind it, nor wait for it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from sluice.engine.errors import JournalError
from sluice.engine.journal import Journal
from sluice.engine.ports import EndsUnknownError, SnapshotStore, SnapshotStoreError
from sluice.engine.snapshots import FORMAT, Snapshot, SnapshotManifest, snapshots_of
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

LOOK_S = 10.0
RETRY_S = 60.0
"""How long a partition of which no snapshot could be made is left alone."""

CONFIRMED_WITHIN_S = 600.0
"""How long after its marker a snapshot may wait for another instance to confirm it."""

HELD_S = 600.0
"""How long what bounds trimming may stand still before that is said."""

KEPT_COMPLETE = 3
KEPT_CONFIRMED = 2
KEPT_BESIDE_OTHERS = 24
"""How many snapshots are kept for the sake of one of another format, which stands before them."""


class HelperFailedError(Exception):
    """The helper did not do what it was started for: why, in words."""


class SnapshotRules(msgspec.Struct, frozen=True):
    """A marker is due behind `records` new records, or behind `min_records` once the last one is `interval_ms` old.

    Nothing of the journal is trimmed that was appended less than `keep_ms` ago.
    """

    records: int = 100_000
    min_records: int = 10_000
    interval_ms: int = 3600 * 1000
    keep_ms: int = 7 * 24 * 3600 * 1000


RunHelper = Callable[[int, int], Awaitable[None]]
"""Have a helper write or confirm the snapshot of a partition behind the marker at an offset. Raises HelperFailedError.

See `sluice.engine.snapshotting`.
"""


Trimmable = Callable[[], Awaitable[Mapping[int, int]]]
"""Below which offset the journal may be trimmed at all, by partition; one that is left out is not trimmed.

Raises EndsUnknownError.
"""


class SnapshotKeeper:
    """`members` are the instances of this service that are alive, this one among them, each by its source.

    Without `trimmable` snapshots and age alone decide what is trimmed.
    """

    def __init__(
        self,
        journal: Journal,
        store: SnapshotStore,
        rules: SnapshotRules,
        is_active: Callable[[], bool],
        members: Callable[[], Collection[str]],
        run_helper: RunHelper,
        trimmable: Trimmable | None = None,
    ) -> None:
        self.snapshots: dict[int, list[Snapshot]] = {}
        """Of each partition those of this journal, as far as is known here."""
        self._stored: dict[int, list[Snapshot]] = {}
        self.failures: dict[int, str] = {}
        """Why the last attempt to make one of a partition failed."""
        self._look_failure: str | None = None
        self._journal = journal
        self._store = store
        self._rules = rules
        self._is_active = is_active
        self._members = members
        self._run_helper = run_helper
        self._trimmable = trimmable
        self._begins: dict[int, int] = {}
        self._held: dict[int, tuple[int, int]] = {}
        """Of partitions that only `trimmable` keeps from being trimmed: how far that is, and since when (epoch ms)."""
        self._retry_at_ms: dict[int, int] = {}

    # What it says of itself.

    @property
    def difference(self) -> str | None:
        """Of which partitions two runs came to different states, in words; None if of none."""
        return "; ".join(difference for p in self.snapshots if (difference := self._differs(p)) is not None) or None

    @property
    def failure(self) -> str | None:
        own = [self._look_failure] if self._look_failure is not None else []
        return "; ".join([*own, *(f"partition {p}: {why}" for p, why in sorted(self.failures.items()))]) or None

    @property
    def held(self) -> dict[int, int]:
        """The partitions that only `trimmable` keeps from being trimmed, for a while by now, and how far that is."""
        until_ms = self._journal.clock.now_ms() - round(HELD_S * 1000)
        return {partition: bound for partition, (bound, since_ms) in self._held.items() if since_ms <= until_ms}

    def _differs(self, partition: int) -> str | None:
        newest = self._newest(partition)
        differing = newest.difference if newest is not None else None
        if newest is None or differing is None:
            return None
        manifest = newest.manifest
        return (
            f"partition {partition}: snapshot {manifest.id} by {manifest.by} and the second run by {differing.by} "
            f"differ; first: {differing.differs}"
        )

    # What it does.

    async def run(self, look_s: float = LOOK_S) -> None:
        """Look for ever, with so many seconds between."""
        while True:
            try:
                await self.look()
                self._look_failure = None
            except (SnapshotStoreError, EndsUnknownError, JournalError) as error:
                self._look_failure = f"all wait: {error}"
                log.warning("snapshots wait", extra={"error": str(error)})
            await asyncio.sleep(look_s)

    async def look(self) -> None:
        """Do what is due. Raises SnapshotStoreError, EndsUnknownError and JournalError."""
        await self._read(range(self._journal.partitions))
        try:
            for partition in range(self._journal.partitions):
                if self._retry_at_ms.get(partition, 0) <= self._journal.clock.now_ms():
                    await self._try_to_attend(partition)
            if self._is_active():
                await self._trim()
        finally:
            self._publish()

    async def _try_to_attend(self, partition: int) -> None:
        """What fails for one partition is no reason to leave the others alone."""
        try:
            await self._attend(partition)
        except (HelperFailedError, JournalError) as error:
            self.failures[partition] = str(error)
            self._retry_at_ms[partition] = self._journal.clock.now_ms() + round(RETRY_S * 1000)
            log.error("snapshot not made", extra={"partition": partition, "error": str(error)})

    async def _read(self, partitions: Collection[int]) -> None:
        for partition, notes in (await self._store.notes(partitions)).items():
            stored, markers = snapshots_of(notes)[0], self._journal.markers[partition]
            self._stored[partition] = stored
            self.snapshots[partition] = [s for s in stored if markers.has(s.manifest.offset, s.manifest.marker)]

    def _newest(self, partition: int) -> Snapshot | None:
        """The newest of this format."""
        return next((s for s in reversed(self.snapshots[partition]) if s.manifest.format == FORMAT), None)

    async def _attend(self, partition: int) -> None:
        newest = self._newest(partition)
        if newest is not None and not newest.confirmations:
            if self._confirms(newest.manifest):
                await self._help(partition, newest.manifest.offset)
        elif self._is_active():
            marker = self._journal.markers[partition].last
            if marker <= (newest.manifest.offset if newest is not None else -1):
                if not self._is_due(partition):
                    return
                marker = await self._journal.append_marker(partition)
            await self._help(partition, marker)

    def _confirms(self, manifest: SnapshotManifest) -> bool:
        """Whether this instance is the one to confirm: the first of the others, or the only one there is.

        The active one does not wait for it for ever.
        """
        if self._is_active() and self._journal.clock.now_ms() - manifest.at >= CONFIRMED_WITHIN_S * 1000:
            return True
        members = sorted(self._members())
        others = [member for member in members if member != manifest.by] or members
        return bool(others) and others[0] == self._journal.source

    def _is_due(self, partition: int) -> bool:
        markers, rules = self._journal.markers[partition], self._rules
        new = self._journal.views()[partition].next_offset - markers.last - 1
        age_ms = self._journal.clock.now_ms() - markers.last_ms
        return new >= rules.records or (new >= rules.min_records and age_ms >= rules.interval_ms)

    async def _help(self, partition: int, offset: int) -> None:
        """Raises HelperFailedError."""
        await self._run_helper(partition, offset)
        self.failures.pop(partition, None)
        await self._read([partition])

    # Trimming.

    async def _trim(self) -> None:
        before = {}
        allowed = await self._trimmable() if self._trimmable is not None else None
        for partition, snapshots in self.snapshots.items():
            ours = [s for s in snapshots if s.manifest.format == FORMAT]
            # Two runs may have written one behind the same marker.
            by_marker = {s.manifest.offset: s for s in ours if s.is_confirmed}
            confirmed = list(by_marker.values())[-KEPT_CONFIRMED:]
            if len(confirmed) < KEPT_CONFIRMED:
                continue
            stored = sorted(self._stored[partition], key=lambda s: s.note)
            complete = [s for s in stored if s.manifest.format == FORMAT][-KEPT_COMPLETE:]
            kept = [*confirmed, *complete, *self._of_other_formats(partition)]
            notes_before = min(s.note for s in kept)
            if stored[0].note < notes_before:
                await self._remove(partition, notes_before, min(s.manifest.first_chunk for s in kept))
            offset = confirmed[0].manifest.offset
            if allowed is not None:
                offset = self._bounded(partition, offset, allowed.get(partition, 0))
            if offset > self._begins.get(partition, 0):
                before[partition] = offset
        if before:
            now_ms = self._journal.clock.now_ms()
            self._begins.update(await self._journal.trim(before, now_ms - self._rules.keep_ms))

    async def _remove(self, partition: int, notes_before: int, chunks_before: int) -> None:
        """What cannot be removed now will be at a later look; it keeps nothing else."""
        try:
            await self._store.trim(partition, notes_before, chunks_before)
        except SnapshotStoreError as error:
            log.warning("old snapshots not removed", extra={"partition": partition, "error": str(error)})

    def _bounded(self, partition: int, offset: int, bound: int) -> int:
        if bound >= offset:
            self._held.pop(partition, None)
            return offset
        if self._held.get(partition, (-1, 0))[0] != bound:
            self._held[partition] = bound, self._journal.clock.now_ms()
        return bound

    def _of_other_formats(self, partition: int) -> list[Snapshot]:
        """The newest confirmed one of each, as long as the journal has what follows: another release begins from it."""
        begin, snapshots = self._begins.get(partition, 0), self._stored[partition]
        if sum(s.manifest.format == FORMAT for s in snapshots) > KEPT_BESIDE_OTHERS:
            return []
        confirmed = [s for s in snapshots if s.is_confirmed]
        newest = {s.manifest.format: s for s in confirmed if s.manifest.offset >= begin}
        return [snapshot for format, snapshot in newest.items() if format != FORMAT]

    def _publish(self) -> None:
        for partition, snapshots in self.snapshots.items():
            confirmed = [s.manifest for s in snapshots if s.is_confirmed and s.manifest.format == FORMAT]
            if confirmed:
                metrics.SNAPSHOT_OFFSET.labels(partition).set(confirmed[-1].offset)
                metrics.SNAPSHOT_TIME.labels(partition).set(confirmed[-1].at / 1000)
                metrics.SNAPSHOT_BYTES.labels(partition).set(confirmed[-1].bytes)
            metrics.SNAPSHOT_DIFFERS.labels(partition).set(self._differs(partition) is not None)
        for partition, begin in self._begins.items():
            metrics.JOURNAL_BEGIN.labels(partition).set(begin)
