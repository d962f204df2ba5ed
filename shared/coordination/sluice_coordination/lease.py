"""Leases in documents: what the fields mean, and how a process that waits measures that one has run out.

The rule. A holder writes `{"holder", "expire", "lease_ms"}`, counts its lease from before it *sent* that write, and
stops `margin_s` and the drift before the end. A process that waits counts the same lease from after it first *got* that
version, and adds the drift. Each uses its own clock for spans alone, so what clocks on walls show, how far they are
apart and how they step never matters: `expire` is for operators. What matters is that clocks run alike: one second of
the holder's and one of the waiter's may each be wrong by the fraction `drift`.

Then the lock is taken by a write on the version that was seen. If the holder has renewed meanwhile there is another
version, the write fails, and the waiting begins anew.

Concurrency: belongs to one event loop.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from sluice_coordination.clock import Clock
from sluice_coordination.document import Body, Document, Version
from sluice_coordination.errors import StoreFailedError

RELEASED = 0
"""`expire` of a lock without a holder."""
_ROUNDING_S = 0.001


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How long locks last.

    `lease_s`: how long after the last renewal others may take the lock, at the earliest. `margin_s`: how long before
    that the holder stops: time for its last operations to arrive, so no less than a store's or resource's time-out.
    `drift`: by which fraction a clock may run too fast or too slow. `retry_s`: about the pause after a failed renewal.
    """

    lease_s: float = 15.0
    margin_s: float = 3.0
    drift: float = 0.01
    retry_s: float = 0.5

    def __post_init__(self) -> None:
        if not (0 <= self.drift < 0.5 and self.margin_s > 0 and self.retry_s > 0):
            raise ValueError(f"not settings of a lease: {self}")
        if self.usable_s < self.lease_s / 2:
            raise ValueError(f"margin and drift leave less than half of the lease: {self}")

    @property
    def usable_s(self) -> float:
        """How long after sending its last renewal a holder may use the lock."""
        return self.lease_s * (1 - self.drift) - self.margin_s

    @property
    def renew_s(self) -> float:
        """How long after sending one renewal the holder sends the next: two may fail."""
        return self.usable_s / 3

    def fields(self, holder: str, wall_ms: int) -> Body:
        """Return the fields of a lock that is held from now on."""
        lease_ms = round(self.lease_s * 1000)
        return {"holder": holder, "expire": wall_ms + lease_ms, "lease_ms": lease_ms}


class Lease(msgspec.Struct, frozen=True):
    """The fields of a lock in its document. Without `lease_ms` the reader's settings count."""

    holder: str
    expire: int
    lease_ms: int | None = None


def lease_of(id: str, document: Document) -> Lease:
    """Return the lock in a document; raise StoreFailedError if it holds none."""
    try:
        return msgspec.convert(document.body, Lease)
    except msgspec.ValidationError as error:
        raise StoreFailedError(f"{id} is not a lock: {error}") from error


@dataclass(slots=True)
class _Sighting:
    version: Version | None
    since: float
    free_at: float


class Sightings:
    """What one process has seen of locks, and since when each has stood unchanged before its eyes."""

    def __init__(self, settings: LeaseSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._seen: dict[str, _Sighting] = {}
        self._mine: dict[str, str] = {}
        """By lock, the name under which this process has stopped using it."""
        self._news = asyncio.Event()

    def note(self, id: str, document: Document | None) -> None:
        """Take note of an answer of the store; to be called after it has come. Raises StoreFailedError: no lock."""
        free_at = now = self._clock.now()
        if document is not None:
            lease = lease_of(id, document)
            lease_s = self._settings.lease_s if lease.lease_ms is None else lease.lease_ms / 1000
            if lease.expire != RELEASED and lease.holder != self._mine.get(id):
                free_at = now + lease_s * (1 + self._settings.drift)
        self._note(id, document, now, free_at)
        if free_at <= now:
            self._notify()

    def record_plain(self, id: str, document: Document | None) -> None:
        """Take note of a document that is no lock, for `unchanged_s`."""
        now = self._clock.now()
        self._note(id, document, now, now)

    def forget(self, keep: Callable[[str], bool]) -> None:
        """Forget what is not needed any more."""
        self._seen = {id: seen for id, seen in self._seen.items() if keep(id)}
        self._mine = {id: holder for id, holder in self._mine.items() if keep(id)}

    def drop(self, id: str) -> None:
        """Drop all that is known of a lock that this process has released; who waits for it here looks at once."""
        self._seen.pop(id, None)
        self._mine.pop(id, None)
        self._notify()

    def abandon(self, id: str, holder: str) -> None:
        """Say that this process does not use the lock under this name any more, though the document may say it does.

        So no other process is disturbed if this one takes it again at once.
        """
        self._mine[id] = holder

    def is_free(self, id: str, document: Document | None) -> bool:
        """Whether the lock may be taken by a write on that version, which must have been noted."""
        seen = self._seen.get(id)
        version = None if document is None else document.version
        return seen is not None and seen.version == version and self._clock.now() >= seen.free_at

    def unchanged_s(self, id: str) -> float:
        """For how long the document, or that there is none, has been seen unchanged; 0 if it was not noted."""
        seen = self._seen.get(id)
        return 0.0 if seen is None else self._clock.now() - seen.since

    async def until_free(self, id: str) -> None:
        """Return when the lock, as last noted, can be taken; and at once when it was never noted."""
        while (seen := self._seen.get(id)) is not None and seen.free_at > self._clock.now():
            # A little later, so that clocks that round differently do not make this spin.
            news, when = self._news, self._clock.loop_time(seen.free_at) + _ROUNDING_S
            try:
                async with asyncio.timeout_at(when):
                    await news.wait()
            except TimeoutError:
                continue

    def _note(self, id: str, document: Document | None, now: float, free_at: float) -> None:
        version = None if document is None else document.version
        seen = self._seen.get(id)
        if seen is None or seen.version != version:
            self._seen[id] = _Sighting(version, now, free_at)
        else:
            seen.free_at = min(seen.free_at, free_at)

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
