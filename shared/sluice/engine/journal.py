"""The journal as a service uses it: follow it, read the view, propose, await replies.

The log hands batches of records to the event loop, where everything here belongs. Every process follows all
partitions, each from its newest snapshot on (`sluice.engine.loading`). How proposals are decided and gathered is in
`sluice.engine.proposer`.
"""

import asyncio
import gc
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from sluice.engine.deadline import at_most
from sluice.engine.decision import Decision
from sluice.engine.errors import JournalError, JournalUnavailableError, MissingRecordsError, PartitionFailedError
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.loading import SnapshotLoader, Start, is_marker_of
from sluice.engine.markers import PartitionMarkers
from sluice.engine.offsets import Origin
from sluice.engine.partition import partition_keys, partition_of
from sluice.engine.ports import (
    Chance,
    Clock,
    Ends,
    EndsUnknownError,
    Log,
    Message,
    Model,
    RecordFacts,
    SendError,
    SnapshotStore,
    SnapshotStoreError,
    SystemChance,
    SystemClock,
    end_of,
)
from sluice.engine.proposer import MAX_ENTRIES, Decide, Proposer
from sluice.engine.record import Entry, Mark, Marker, Record, record_kind
from sluice.engine.waiters import Waiters
from sluice.telemetry import metrics, tracing

__all__ = [
    "Journal",
    "JournalError",
    "JournalUnavailableError",
    "MissingRecordsError",
    "Outcomes",
    "PartitionFailedError",
]

log = logging.getLogger(__name__)

LOAD_RETRY_S = 0.05

WARM_AGGREGATES = 10_000
"""How many aggregates of all partitions stay decoded if nothing else is set."""

SETTLED_AT_ONCE = 16
"""So many aggregates of a partition are put to rest in one turn of the loop; each takes some microseconds."""

Outcomes = list[Outcome]
_COUNTED = Outcome.COUNTED
Listener = Callable[[int, Entry[Any, Any]], None]


class Journal:
    """Follows all partitions of the log: from their begin, or from `snapshots`, the store of them.

    `source` is this process as service/instance. About `warm` aggregates stay decoded, and those under way.
    """

    def __init__(
        self,
        log: Log,
        model: Model,
        source: str,
        timeout_s: float = 10.0,
        clock: Clock | None = None,
        chance: Chance | None = None,
        max_entries: int = MAX_ENTRIES,
        snapshots: SnapshotStore | None = None,
        warm: int = WARM_AGGREGATES,
    ) -> None:
        self.source = source
        self.partitions = log.partitions
        self.clock = clock or SystemClock()
        self.chance = chance or SystemChance()
        self.loaded = asyncio.Event()
        self.overtaken = asyncio.Event()
        """Set once records are missing behind those that were folded: they were trimmed before this follower came.

        What follows the view has missed them, too, so only a process that begins anew can go on, from a snapshot.
        """
        self.failed: dict[int, str] = {}
        self.on_entry: list[Listener] = []
        """Called with the partition and each entry that counts, after it was folded."""
        self._timeout_s = timeout_s
        self._log = log
        self._model = model
        self._loop = asyncio.get_running_loop()
        self._keys = partition_keys(log.partitions)
        self._warm = warm
        self._is_settling = False
        self._views = [self._new_view(partition) for partition in range(log.partitions)]
        self.markers = [PartitionMarkers(partition) for partition in range(log.partitions)]
        self.loader = SnapshotLoader(snapshots, self._new_view) if snapshots is not None else None
        self._starts: dict[int, Start] = {}
        """Of partitions whose first record is still to show that their snapshot is of this journal."""
        self._tried: dict[int, str] = {}
        """Behind which snapshot each partition was begun last; empty for its first record."""
        self._to_load: set[int] = set(range(log.partitions)) if snapshots is not None else set()
        self._appended: dict[str, asyncio.Future[Outcomes]] = {}
        self._waiters = Waiters(log.partitions)
        self._ids = map(f"{self.chance.token()}-{{:x}}".format, itertools.count(1))
        self._loading: asyncio.Task[None] | None = None
        self._proposer = Proposer(self, max_entries)

    def start(self) -> None:
        self._log.open()
        if self.loader is None:
            self._follow()
        self._loading = self._loop.create_task(self._load())

    async def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        await self._proposer.stop()
        await self._log.stop()

    @property
    def failure(self) -> str | None:
        """Why this journal can not be followed any further, in words; None while it can."""
        if self.failed:
            return "; ".join(f"partition {p}: {reason}" for p, reason in sorted(self.failed.items()))
        if self._loading is not None and self._loading.done() and not self._loading.cancelled():
            error = self._loading.exception()
            if error is not None:
                return f"it cannot be loaded: {error!r}"
        return self._log.failure

    @property
    def loading(self) -> str | None:
        """What is waited for before the journal may be used, in words; None once it is loaded."""
        if self.loaded.is_set():
            return None
        if half := self._half_restored:
            return f"a restore is not complete: partitions {', '.join(map(str, half))} lack records"
        return "loading"

    @property
    def _half_restored(self) -> list[int]:
        """The partitions that a restore has not written all of. It writes into each of them, or into none."""
        least = 1 if any(view.whole_at for view in self._views) else 0
        return [p for p, view in enumerate(self._views) if view.next_offset < max(view.whole_at, least)]

    @property
    def difference(self) -> str | None:
        """Where another follower has judged records differently, in words; None while none is known."""
        return "; ".join(m.difference for m in self.markers if m.difference is not None) or None

    # Reading.

    def partition_of(self, key: str) -> int:
        return partition_of(key, self.partitions)

    def ends(self) -> asyncio.Future[Ends]:
        """Where the partitions end now, as far as they answer; fails with EndsUnknownError if none does."""
        return self._log.ends()

    async def trim(self, before: Ends, appended_before_ms: int) -> Ends:
        """See Log."""
        return await self._log.trim(before, appended_before_ms)

    def reader(self, key: str) -> PartitionView:
        """The view of the partition that a key belongs to. Read it behind a barrier, and not across an await."""
        return self._views[partition_of(key, self.partitions)]

    def views(self) -> list[PartitionView]:
        return self._views

    async def barrier(self, partitions: Iterable[int]) -> None:
        """Return once the view of these partitions holds all that was acknowledged before this call.

        Raises JournalUnavailableError or PartitionFailedError.
        """
        wanted = tuple(partitions)
        if not wanted:
            return
        try:
            ends = await at_most(self._timeout_s, self._log.ends(wanted))
            behind = []
            for partition in wanted:
                self._check(partition)
                if self._views[partition].next_offset < end_of(ends, partition):
                    behind.append(partition)
            if behind:
                async with asyncio.timeout(self._timeout_s):
                    for partition in behind:
                        await self._reach(partition, ends[partition])
        except (EndsUnknownError, TimeoutError) as error:
            raise JournalUnavailableError(f"end of journal not reached: {error}") from error

    async def _reach(self, partition: int, end: int) -> None:
        """Return once the view holds all before this offset: at once, if it does. Raises PartitionFailedError."""
        self._check(partition)
        if self._views[partition].next_offset < end:
            await self._waiters.offset(partition, end)

    async def until(self, key: str, holds: Callable[[PartitionView], bool], most_s: float | None = None) -> None:
        """Return once `holds(view)` is true of the key's partition, or after so long.

        It is looked at behind every batch that changes the view. Raises PartitionFailedError.
        """
        partition = self.partition_of(key)
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while not holds(self._views[partition]):
                    self._check(partition)
                    await self._waiters.shown(partition, lambda: holds(self._views[partition]))

    def expect_reply(self, request: str, keys: Iterable[str]) -> asyncio.Future[Any]:
        """A future for the reply to a request that is about to be sent; cancel it to forget.

        It takes the partitions of these keys to reply. Raises PartitionFailedError if one of them has stopped, as the
        future does if one stops meanwhile.
        """
        partitions = {self.partition_of(key) for key in keys}
        for partition in partitions:
            self._check(partition)
        return self._waiters.reply(request, partitions)

    @property
    def replies_expected(self) -> int:
        return self._waiters.replies_expected

    # Proposing.

    def propose(
        self,
        key: str,
        decide: Decide,
        *,
        request: str | None = None,
        origin: Origin | None = None,
        appended_at: int = 0,
        principal: str = "",
    ) -> "asyncio.Future[Decision | None]":
        """Decide on the key's aggregates and append; see Proposer."""
        return self._proposer.submit(
            key, decide, request=request, origin=origin, appended_at=appended_at, principal=principal
        )

    def everything_before(self, key: str) -> "asyncio.Future[Decision | None]":
        """Done when all that was proposed so far for the key's partition is decided."""
        return self._proposer.everything_before(key)

    @property
    def undecided(self) -> int:
        """Proposals that are in no record yet."""
        return self._proposer.waiting

    async def append_marker(self, partition: int) -> int:
        """Append a marker; the offset of the last one of the partition once it is folded. Raises JournalError."""
        await self.append(self._keys[partition], (), marker=self.markers[partition].next())
        return self.markers[partition].last

    async def append(
        self,
        key: str,
        entries: tuple[Entry[Any, Any], ...],
        *,
        floors: dict[str, Mark] | None = None,
        marker: Marker | None = None,
    ) -> Outcomes:
        """Append one record and wait until it is folded; the outcome of each entry.

        Raises JournalError; whether it counts is open then.
        """
        record: Record[Any, Any] = Record(
            id=next(self._ids),
            at=self.clock.now_ms(),
            by=self.source,
            entries=entries,
            floors=floors or {},
            marker=marker,
        )
        self._check(self.partition_of(key))
        folded: asyncio.Future[Outcomes] = self._loop.create_future()
        self._appended[record.id] = folded

        def failed(error: SendError) -> None:
            if not folded.done():
                folded.set_exception(error)

        kind = record_kind(record)
        span = tracing.appending(self._log.name, kind) if tracing.is_on() else tracing.NOTHING
        try:
            with tracing.within(span):
                facts = RecordFacts(kind, record.id, record.by, record.at)
                self._log.append(key, self._model.encode(record), facts, span.carrier(), failed)
                outcomes = await at_most(self._timeout_s, folded)
                span.note({"sluice.outcome": ",".join(sorted({o.value for o in outcomes}))})
            return outcomes
        except SendError as error:
            raise JournalUnavailableError(str(error)) from error
        except TimeoutError:
            raise JournalUnavailableError(f"record not folded within {self._timeout_s} s") from None
        finally:
            self._appended.pop(record.id, None)

    # Following.

    def _new_view(self, partition: int) -> PartitionView:
        warm = self._warm // self.partitions
        return PartitionView(self._model, self._keys[partition], self.reader, self.views, warm, self._settle_soon)

    def _follow(self) -> None:
        """Follow each partition from where its view is; one that was loaded from its snapshot's marker on."""
        begin = {partition: view.next_offset for partition, view in enumerate(self._views)}
        self._log.start(self._on_batch, begin | {p: start.begin for p, start in self._starts.items()})

    async def _load(self) -> None:
        started = self._loop.time()
        while not self.loaded.is_set():
            try:
                ends = await self._log.ends()
                for partition in range(self.partitions):
                    end_of(ends, partition)
                if self.loader is not None and self._to_load:
                    await self._load_snapshots(self.loader, ends)
            except (EndsUnknownError, SnapshotStoreError) as error:
                log.info("journal not loaded yet", extra={"error": str(error)})
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            for partition, end in ends.items():
                # A partition that stops on the way is no reason to keep the others from serving.
                with suppress(PartitionFailedError):
                    await self._reach(partition, end)
            if self._to_load:
                continue
            if self._half_restored:
                await asyncio.sleep(LOAD_RETRY_S)
                continue
            records = sum(v.next_offset for v in self._views)
            log.info("journal loaded", extra={"records": records, "seconds": round(self._loop.time() - started, 3)})
            self.loaded.set()

    async def _load_snapshots(self, loader: SnapshotLoader, ends: Ends) -> None:
        """Begin the partitions to be loaded anew, each from its newest snapshot, and follow all."""
        gc.disable()
        try:
            starts = await loader.starts(sorted(self._to_load), ends)
        finally:
            gc.freeze()
            gc.enable()
        for partition, start in starts.items():
            manifest = start.manifest
            id = manifest.id if manifest is not None else ""
            if self._tried.get(partition) == id:
                # There is none that reaches the records that are left: the partition stays stopped.
                continue
            self._tried[partition] = id
            self._views[partition] = start.view
            self.failed.pop(partition, None)
            # Those of a snapshot that was refused since are no markers of this journal.
            markers = self.markers[partition] = PartitionMarkers(partition)
            if manifest is not None:
                self._starts[partition] = start
                markers.passed(manifest.offset, manifest.marker, manifest.at, start.view.outcome_hash)
        self._to_load -= starts.keys()
        self._follow()

    def _check(self, partition: int) -> None:
        if partition in self.failed:
            raise PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")

    def _on_batch(self, batch: Sequence[Message]) -> None:
        touched = set()
        views, failed, decode = self._views, self.failed, self._model.decode
        loading = not self.loaded.is_set()
        is_awaited = bool(self._appended or self._waiters.replies_expected or self.on_entry)
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
            except Exception as error:  # noqa: BLE001 - whatever it is, the partition stops there
                self._stop_partition(partition, offset, error)
                continue
            for outcome in outcomes:
                if outcome is not _COUNTED:
                    metrics.JOURNAL_VOID.labels(record.by.partition("/")[0], outcome.value).inc()
            if record.marker is not None:
                self._pass_marker(partition, record, message)
            if is_awaited:
                self._announce(partition, record, outcomes)
        metrics.JOURNAL_RECORDS.inc(len(batch))
        if loading:
            self._settle_loaded(touched)
        self._waiters.wake((partition, views[partition].next_offset) for partition in touched)

    def _settle_loaded(self, partitions: Iterable[int]) -> None:
        """What a batch has loaded comes to rest, and out of the collector's sight."""
        for partition in partitions:
            while self._views[partition].settle(SETTLED_AT_ONCE):
                pass
        gc.freeze()
        gc.enable()

    def _check_order(self, partition: int, message: Message) -> None:
        """A message that is not the next one is the marker that the view was loaded behind, or others are missing.

        The journal is neither compacted nor written in transactions: its offsets have no gaps, but for what was
        trimmed. Raises MissingRecordsError.
        """
        view, start, offset = self._views[partition], self._starts.pop(partition, None), message.offset()
        manifest = start.manifest if start is not None else None
        if manifest is not None and is_marker_of(manifest, message, self._model):
            return
        if self.loaded.is_set():
            self.overtaken.set()
        elif self.loader is not None:
            if manifest is not None and manifest.offset == offset:
                self.loader.refuse(manifest)
            self._to_load.add(partition)
        raise MissingRecordsError(f"the last one before it is at {view.next_offset - 1}")

    def _pass_marker(self, partition: int, record: Record[Any, Any], message: Message) -> None:
        markers, offset = self.markers[partition], message.offset()
        if record.marker is not None and record.by != self.source:
            markers.compare(record.marker, offset, record.by)
        markers.passed(offset, record.id, message.timestamp()[1], self._views[partition].outcome_hash)

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        """Put to rest what is not used any more: a little in each turn of the loop, behind all that is to be done."""
        self._is_settling = False
        if any(view.settle(SETTLED_AT_ONCE) for view in self._views):
            self._settle_soon()

    def _announce(self, partition: int, record: Record[Any, Any], outcomes: Outcomes) -> None:
        appended = self._appended.get(record.id)
        if appended is not None and not appended.done():
            appended.set_result(outcomes)
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            if outcome is not _COUNTED:
                continue
            if entry.reply is not None and entry.request is not None:
                self._waiters.deliver_reply(entry.request, entry.reply)
            for listener in self.on_entry:
                try:
                    listener(partition, entry)
                except Exception:
                    # What comes behind it must be folded all the same, and the other listeners learn of it.
                    facts = {"partition": partition, "record": record.id}
                    log.critical("entry not observed", extra=facts, exc_info=True)

    def _stop_partition(self, partition: int, offset: int, error: Exception) -> None:
        self.failed[partition] = f"record at offset {offset} cannot be applied: {error!r}"
        log.critical("journal partition stopped", extra={"partition": partition, "offset": offset}, exc_info=error)
        failure = PartitionFailedError(f"journal partition {partition}: {self.failed[partition]}")
        self._waiters.fail(partition, failure)
