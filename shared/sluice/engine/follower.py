"""Folds the partitions of a log into views, each from its newest snapshot on (`sluice.engine.loading`).

The log hands batches of records to the event loop, where everything here belongs. A partition stops at a record that
cannot be applied, and where records are missing; the others go on.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from sluice.engine.errors import LostRecordsError, MissingRecordsError, PartitionFailedError
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.loading import SnapshotLoader, Start, check_order
from sluice.engine.markers import PartitionMarkers
from sluice.engine.partition import partition_keys, partition_of
from sluice.engine.ports import EndsUnknownError, Log, Message, Model, SnapshotStore, SnapshotStoreError, end_of
from sluice.engine.record import HELD, Record
from sluice.engine.waiters import Waiters
from sluice.exceptions import in_words
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

LOAD_RETRY_S = 0.05

WARM_AGGREGATES = 10_000
"""How many aggregates of all partitions stay decoded if nothing else is set."""

SETTLED_AT_ONCE = 16
"""So many aggregates of a partition are put to rest in one turn of the loop; each takes some microseconds."""

OnFolded = Callable[[int, Record[Any, Any], list[Outcome]], None]
_COUNTED = Outcome.COUNTED


class Follower:
    """Follows all partitions of `log`, from their begin or from `snapshots`; `source` is this process.

    `on_folded(partition, record, outcomes)` is called behind each record, with the outcome of each of its entries.
    About `warm` aggregates stay decoded, and those under way.
    """

    def __init__(
        self,
        log: Log,
        model: Model,
        source: str,
        on_folded: OnFolded,
        snapshots: SnapshotStore | None = None,
        warm: int = WARM_AGGREGATES,
    ) -> None:
        self.caught_up = asyncio.Event()
        self.loaded = asyncio.Event()
        self.overtaken = asyncio.Event()
        """Set once records are missing behind those that were folded: they were trimmed before this follower came.

        What follows the view has missed them, too, so only a process that begins anew can go on, from a snapshot.
        """
        self.failed: dict[int, str] = {}
        self.waiters = Waiters(log.partitions)
        self.keys = partition_keys(log.partitions)
        self.markers = [PartitionMarkers(partition) for partition in range(log.partitions)]
        self._partitions = log.partitions
        self._log = log
        self._model = model
        self._source = source
        self._on_folded = on_folded
        self._loop = asyncio.get_running_loop()
        self._warm = warm
        self._is_settling = False
        self.views = [self._new_view(partition) for partition in range(log.partitions)]
        self._loader = SnapshotLoader(snapshots, self._new_view) if snapshots is not None else None
        self._starts: dict[int, Start] = {}
        """Of partitions whose first record is still to show that their snapshot is of this journal."""
        self._tried: dict[int, str] = {}
        """Behind which snapshot each partition was begun last; empty for its first record."""
        self._to_load: set[int] = set(range(log.partitions)) if snapshots is not None else set()
        self._loading: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._loader is None:
            self._follow()
        self._loading = self._loop.create_task(self._load())

    def stop(self) -> None:
        """Load no further. What the log still hands over is folded."""
        if self._loading is not None:
            self._loading.cancel()

    @property
    def failure(self) -> str | None:
        """Why the log can not be followed any further, in words; None while it can."""
        if self.failed:
            return "; ".join(f"partition {p}: {reason}" for p, reason in sorted(self.failed.items()))
        if self._loading is not None and self._loading.done() and not self._loading.cancelled():
            error = self._loading.exception()
            if error is not None:
                return f"it cannot be loaded: {in_words(error)}"
        return self._log.failure

    @property
    def loading(self) -> str | None:
        """What is waited for before the views may be used, in words; None once all are loaded."""
        if self.loaded.is_set():
            return None
        half = self._half_restored
        if any(self.views[partition].whole_at == HELD for partition in half):
            return "the journal is held for a migration, until `sluice migrate cut-over` or `release` ends that"
        if half:
            return f"a restore is not complete: partitions {', '.join(map(str, half))} lack records"
        return f"loading, {sum(view.next_offset for view in self.views):,} records so far"

    @property
    def _half_restored(self) -> list[int]:
        """The partitions that a restore has not written all of. It writes into each of them, or into none."""
        least = 1 if any(view.whole_at for view in self.views) else 0
        followed = ((p, view) for p, view in enumerate(self.views) if p not in self.failed)
        return [p for p, view in followed if view.next_offset < max(view.whole_at, least)]

    def reader(self, key: str) -> PartitionView:
        """The view of the partition that a key belongs to."""
        return self.views[partition_of(key, self._partitions)]

    def check(self, partition: int) -> None:
        """Raises PartitionFailedError if it has stopped."""
        if partition in self.failed:
            raise PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")

    async def reach(self, partition: int, end: int) -> None:
        """Return once the view holds all before this offset: at once, if it does. Raises PartitionFailedError."""
        self.check(partition)
        if self.views[partition].next_offset < end:
            await self.waiters.shown(partition, lambda: self.views[partition].next_offset >= end)

    # Loading.

    def _new_view(self, partition: int) -> PartitionView:
        warm = self._warm // self._partitions
        return PartitionView(
            self._model, self.keys[partition], self.reader, lambda: self.views, warm, self._settle_soon
        )

    def _follow(self) -> None:
        """Follow each partition from where its view is; one that was loaded from its snapshot's marker on."""
        begin = {partition: view.next_offset for partition, view in enumerate(self.views)}
        self._log.start(self._on_batch, begin | {p: start.begin for p, start in self._starts.items()})

    async def _load(self) -> None:
        started = self._loop.time()
        while not self.loaded.is_set():
            try:
                ends = await self._log.ends()
                for partition in range(self._partitions):
                    end_of(ends, partition)
                if self._loader is not None and self._to_load:
                    await self._load_snapshots(self._loader)
            except (EndsUnknownError, SnapshotStoreError) as error:
                log.info("journal not loaded yet", extra={"error": str(error)})
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            for partition, end in ends.items():
                # A partition that stops on the way is no reason to keep the others from serving.
                with suppress(PartitionFailedError):
                    await self.reach(partition, end)
            if self._to_load:
                continue
            self.caught_up.set()
            if self._half_restored:
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            records = sum(v.next_offset for v in self.views)
            log.info("journal loaded", extra={"records": records, "seconds": round(self._loop.time() - started, 3)})
            self.loaded.set()

    async def _load_snapshots(self, loader: SnapshotLoader) -> None:
        """Begin the partitions to be loaded anew, each from its newest snapshot, and follow all."""
        gc.disable()
        try:
            starts = await loader.starts(sorted(self._to_load), self._log.ends)
        finally:
            gc.freeze()
            gc.enable()
        for partition, start in starts.items():
            if isinstance(start, LostRecordsError):
                self._stop_partition(partition, start)
            elif self._tried.get(partition) != start.id:
                self._begin(partition, start)
            # Else there is none that reaches the records that are left: the partition stays stopped.
        self._to_load -= starts.keys()
        self._follow()

    def _begin(self, partition: int, start: Start) -> None:
        self._tried[partition] = start.id
        self.views[partition] = start.view
        self.failed.pop(partition, None)
        manifest = start.manifest
        if manifest is not None:
            self._starts[partition] = start
            self.markers[partition].passed(manifest.offset, manifest.marker, manifest.at, start.view.outcome_hash)

    # Folding.

    def _on_batch(self, batch: Sequence[Message]) -> None:
        touched, folded = set(), 0
        views, failed, decode, on_folded = self.views, self.failed, self._model.decode, self._on_folded
        loading = not self.loaded.is_set()
        if loading:
            # What is loaded stays: spare the collector from walking through all of it each time.
            gc.disable()
        for message in batch:
            partition = message.partition()
            offset = message.offset()
            if partition in failed:
                continue
            touched.add(partition)
            view = views[partition]
            try:
                if offset != view.next_offset:
                    self._check_order(partition, message)
                    continue
                if message.error() is not None:
                    continue
                record = decode(message.value() or b"")
                outcomes = view.fold(record, offset, message.timestamp()[1])
                folded += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, the partition stops there
                self._stop_partition(partition, error, offset)
                continue
            for outcome in outcomes:
                if outcome is not _COUNTED:
                    metrics.JOURNAL_VOID.labels(record.by.partition("/")[0], outcome.value).inc()
            if record.marker is not None:
                self._pass_marker(partition, record, message)
            on_folded(partition, record, outcomes)
        metrics.JOURNAL_RECORDS.inc(folded)
        if loading:
            self._settle_loaded(touched)
        self.waiters.wake(touched)

    def _check_order(self, partition: int, message: Message) -> None:
        """See `check_order`. What was trimmed meanwhile, a snapshot has."""
        start = self._starts.pop(partition, None)
        try:
            check_order(
                message, self.views[partition].next_offset, start.manifest if start is not None else None, self._model
            )
        except MissingRecordsError:
            if self.loaded.is_set():
                self.overtaken.set()
            elif self._loader is not None:
                self._to_load.add(partition)
            raise

    def _pass_marker(self, partition: int, record: Record[Any, Any], message: Message) -> None:
        markers, offset = self.markers[partition], message.offset()
        if record.marker is not None and record.by != self._source:
            markers.compare(record.marker, offset, record.by)
        markers.passed(offset, record.id, message.timestamp()[1], self.views[partition].outcome_hash)

    def _stop_partition(self, partition: int, error: Exception, offset: int | None = None) -> None:
        lost = isinstance(error, LostRecordsError)
        self.failed[partition] = (
            f"{error}" if lost else f"record at offset {offset} cannot be applied: {in_words(error)}"
        )
        log.critical("journal partition stopped", extra={"partition": partition, "offset": offset}, exc_info=error)
        failure = PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")
        self.waiters.fail(partition, failure)

    # What is not used is encoded, and out of the garbage collector's sight.

    def _settle_loaded(self, partitions: Iterable[int]) -> None:
        """Encode what a batch has decoded while the journal is loaded."""
        for partition in partitions:
            while self.views[partition].settle(SETTLED_AT_ONCE):
                pass
        gc.freeze()
        gc.enable()

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        """Put to rest what is not used any more: a little in each turn of the loop, behind all that is to be done."""
        self._is_settling = False
        if any(view.settle(SETTLED_AT_ONCE) for view in self.views):
            self._settle_soon()
