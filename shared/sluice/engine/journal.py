"""The journal as a service uses it: read the view, propose, await replies.

Every process follows all partitions (`sluice.engine.follower`). How proposals are decided and gathered is in
`sluice.engine.proposer`. Belongs to the event loop.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sluice.engine.deadline import at_most
from sluice.engine.decision import Decision
from sluice.engine.errors import JournalError, JournalUnavailableError, PartitionFailedError
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.follower import WARM_AGGREGATES, Follower
from sluice.engine.markers import PartitionMarkers
from sluice.engine.offsets import NO_REQUEST, RequestFacts
from sluice.engine.partition import partition_of
from sluice.engine.ports import (
    Chance,
    Clock,
    Ends,
    EndsUnknownError,
    Log,
    Model,
    RecordFacts,
    SendError,
    SnapshotStore,
    SystemChance,
    SystemClock,
    end_of,
)
from sluice.engine.proposer import MAX_ENTRIES, Decide, Proposer
from sluice.engine.record import Entry, Marker, Record, RequestPosition, record_kind
from sluice.telemetry import tracing

__all__ = ["Journal", "JournalError", "JournalUnavailableError", "Outcomes", "PartitionFailedError"]

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""How long Kafka may take to say where the journal ends, or a record to be folded."""

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
        self.on_entry: list[Listener] = []
        """Called with the partition and each entry that counts, after it was folded."""
        self._log = log
        self._model = model
        self._loop = asyncio.get_running_loop()
        self._follower = Follower(log, model, source, self._folded, snapshots, warm)
        self._waiters = self._follower.waiters
        self._appended: dict[str, asyncio.Future[Outcomes]] = {}
        self._ids = map(f"{self.chance.token()}-{{:x}}".format, itertools.count(1))
        self._proposer = Proposer(self, max_entries)

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        self._follower.stop()
        await self._proposer.stop()
        await self._log.stop()

    # How it is.

    @property
    def loaded(self) -> asyncio.Event:
        """Set once the views have all that the log had at the start, and it is whole: they may be used."""
        return self._follower.loaded

    @property
    def caught_up(self) -> asyncio.Event:
        """Set once the views have all that the log had at the start, also of one that is restored or held."""
        return self._follower.caught_up

    @property
    def overtaken(self) -> asyncio.Event:
        """See Follower."""
        return self._follower.overtaken

    @property
    def failed(self) -> Mapping[int, str]:
        """The partitions that have stopped, and why."""
        return self._follower.failed

    @property
    def failure(self) -> str | None:
        """Why this journal can not be followed any further, in words; None while it can."""
        return self._follower.failure

    @property
    def loading(self) -> str | None:
        """What is waited for before the journal may be used, in words; None once it is loaded."""
        return self._follower.loading

    @property
    def difference(self) -> str | None:
        """Where another follower has judged records differently, in words; None while none is known."""
        return "; ".join(m.difference for m in self.markers if m.difference is not None) or None

    @property
    def markers(self) -> Sequence[PartitionMarkers]:
        """Of each partition."""
        return self._follower.markers

    # Reading.

    def partition_of(self, key: str) -> int:
        return partition_of(key, self.partitions)

    def check(self, partition: int) -> None:
        """Raises PartitionFailedError if it has stopped."""
        self._follower.check(partition)

    def ends(self) -> asyncio.Future[Ends]:
        """Where the partitions end now, as far as they answer; fails with EndsUnknownError if none does."""
        return self._log.ends()

    async def trim(self, before: Ends, appended_before_ms: int) -> Ends:
        """See Log."""
        return await self._log.trim(before, appended_before_ms)

    def reader(self, key: str) -> PartitionView:
        """The view of the partition that a key belongs to. Read it behind a barrier, and not across an await."""
        return self._follower.reader(key)

    def views(self) -> list[PartitionView]:
        return self._follower.views

    async def barrier(self, partitions: Iterable[int]) -> None:
        """Return once the view of these partitions holds all that was acknowledged before this call.

        Raises JournalUnavailableError or PartitionFailedError.
        """
        wanted = tuple(partitions)
        if not wanted:
            return
        try:
            ends = await at_most(TIMEOUT_S, self._log.ends(wanted))
            behind = []
            for partition in wanted:
                self.check(partition)
                if self._follower.views[partition].next_offset < end_of(ends, partition):
                    behind.append(partition)
            if behind:
                async with asyncio.timeout(TIMEOUT_S):
                    for partition in behind:
                        await self._follower.reach(partition, ends[partition])
        except (EndsUnknownError, TimeoutError) as error:
            raise JournalUnavailableError(f"end of journal not reached: {error}") from error

    async def until(self, key: str, holds: Callable[[PartitionView], bool], most_s: float | None = None) -> None:
        """Return once `holds(view)` is true of the key's partition, or after so long.

        It is looked at behind every batch that changes the view. Raises PartitionFailedError.
        """
        partition = self.partition_of(key)
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while not holds(self._follower.views[partition]):
                    self.check(partition)
                    await self._waiters.shown(partition, lambda: holds(self._follower.views[partition]))

    def expect_reply(self, request: str, keys: Iterable[str]) -> asyncio.Future[Any]:
        """A future for the reply to a request that is about to be sent; cancel it to forget.

        It takes the partitions of these keys to reply. Raises PartitionFailedError if one of them has stopped, as the
        future does if one stops meanwhile.
        """
        partitions = {self.partition_of(key) for key in keys}
        for partition in partitions:
            self.check(partition)
        return self._waiters.reply(request, partitions)

    @property
    def replies_expected(self) -> int:
        return self._waiters.replies_expected

    # Proposing.

    def propose(
        self, key: str, decide: Decide, request: RequestFacts = NO_REQUEST
    ) -> "asyncio.Future[Decision | None]":
        """Decide on the key's aggregates and append; see Proposer."""
        return self._proposer.submit(key, decide, request)

    def everything_before(self, key: str) -> "asyncio.Future[Decision | None]":
        """Done when all that was proposed so far for the key's partition is decided."""
        return self._proposer.everything_before(key)

    @property
    def undecided(self) -> int:
        """Proposals that are in no record yet."""
        return self._proposer.waiting

    async def append_marker(self, partition: int) -> int:
        """Append a marker; the offset of the last one of the partition once it is folded. Raises JournalError."""
        await self.append(self._follower.keys[partition], (), marker=self.markers[partition].next())
        return self.markers[partition].last

    async def append(
        self,
        key: str,
        entries: tuple[Entry[Any, Any], ...],
        *,
        floors: dict[str, RequestPosition] | None = None,
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
        self.check(self.partition_of(key))
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
                outcomes = await at_most(TIMEOUT_S, folded)
                span.note({"sluice.outcome": ",".join(sorted({o.value for o in outcomes}))})
            return outcomes
        except SendError as error:
            raise JournalUnavailableError(str(error)) from error
        except TimeoutError:
            raise JournalUnavailableError(f"record not folded within {TIMEOUT_S} s") from None
        finally:
            self._appended.pop(record.id, None)

    def _folded(self, partition: int, record: Record[Any, Any], outcomes: Outcomes) -> None:
        """Tell those who wait for the record, or for replies in it, and the listeners."""
        if not (self._appended or self._waiters.replies_expected or self.on_entry):
            return
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
