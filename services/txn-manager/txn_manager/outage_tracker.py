"""When this instance was not able to receive pings: such time is not counted against the clients' leases.

An outage is a partition without an owner, or Kafka being away. Pings that were appended are never lost by that, for a
lease is only judged behind them; but a client that waits for us, or that cannot get through, sends none. So a lease is
extended by the outages since the last ping, and by a little more, because clients wait between two attempts.

That Kafka is there shows by heartbeats, which stand in another topic. Whether one partition takes pings shows by the
checks of its leases, which go the same way: while they do not get in, and shortly after, no lease of the partition
ends. Where no lease is due meanwhile nothing shows. Times are epoch ms. Belongs to the event loop.
"""

from collections.abc import Iterable

from sluice.domain.transaction.state import MAX_LEASE_MS

Span = tuple[int, int]

SILENCE_MS = 3_000
"""Kafka that acknowledges nothing for longer than this is away."""

RETURN_MS = 5_000
"""How long clients may take to ping again after an outage."""

_KEPT_MS = 2 * MAX_LEASE_MS


class OutageTracker:
    def __init__(self) -> None:
        self._outages: list[Span] = []
        self._unowned: dict[int, list[Span]] = {}
        self._acknowledged_at: int | None = None
        self._unsent_since: dict[int, int] = {}
        self._reopened_at: dict[int, int] = {}

    def acknowledged(self, now: int) -> None:
        """Kafka has just answered, by an acknowledgement while a lease may run out.

        Called several times within SILENCE_MS while Kafka is there.
        """
        before, self._acknowledged_at = self._acknowledged_at, now
        if before is not None and now - before > SILENCE_MS:
            self._outages = [*_recent(self._outages, now), (before, now)]

    def owned(self, partition: int, now: int, silent_ms: int | None) -> None:
        """The partition is ours from now on; it had no owner for so long, None if unknown."""
        since = 0 if silent_ms is None else now - silent_ms
        self._unsent_since.pop(partition, None)
        self._unowned[partition] = [*_recent(self._unowned.get(partition, ()), now), (since, now)]

    def sending(self, partition: int, now: int) -> None:
        """A check of a lease is about to be sent the way that pings of the partition go."""
        self._unsent_since.setdefault(partition, now)

    def sent(self, partition: int, now: int) -> None:
        """All that was sent is there, or a ping is. If that took longer than SILENCE_MS, the partition takes pings only
        from now on.

        Not called while a check is missing: it will be sent a second time, unless its transaction ends.
        """
        if now - self._unsent_since.pop(partition, now) > SILENCE_MS:
            self._reopened_at[partition] = now

    def return_ends_at(self, partition: int, now: int) -> int:
        """Before then no lease of the partition ends: until it has taken pings for RETURN_MS."""
        is_closed = now - self._unsent_since.get(partition, now) > SILENCE_MS
        return (now if is_closed else self._reopened_at.get(partition, 0)) + RETURN_MS

    def is_receiving(self, partition: int, now: int) -> bool:
        """Whether there is nothing that the next owner would have to know of to judge a lease: no silence that still
        matters to one.
        """
        if self._acknowledged_at is None or now - self._acknowledged_at > SILENCE_MS:
            return False
        if self.return_ends_at(partition, now) > now:
            return False
        spans = [*self._outages, *self._unowned.get(partition, ())]
        return all(until - since <= SILENCE_MS or until <= now - MAX_LEASE_MS for since, until in spans)

    def extension(self, partition: int, since: int, now: int) -> int:
        """Milliseconds to add to a lease of the partition whose last ping came at `since`."""
        silent_since = self._acknowledged_at
        spans = [*self._outages, *self._unowned.get(partition, ())]
        if silent_since is not None and now - silent_since > SILENCE_MS:
            spans.append((silent_since, now))
        deaf = sum(until - begin for begin, until in _joined(spans, since, now))
        return deaf + RETURN_MS if deaf > SILENCE_MS else deaf


def _recent(spans: Iterable[Span], now: int) -> list[Span]:
    """Those that may still matter to a lease."""
    return [span for span in spans if span[1] > now - _KEPT_MS]


def _joined(spans: Iterable[Span], since: int, now: int) -> list[Span]:
    """The spans between two times, those that overlap made into one."""
    joined: list[Span] = []
    for begin, until in sorted((max(begin, since), min(until, now)) for begin, until in spans):
        if begin >= until:
            continue
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((begin, until))
    return joined
