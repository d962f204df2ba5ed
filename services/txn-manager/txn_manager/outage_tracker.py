"""Since when clients have been able to reach this instance: a lease runs from there, unless a ping came later.

An outage is a partition without an owner, or Kafka being away. Pings that were appended are never lost by that, for a
lease is only judged behind them; but a client that waits for us, or that cannot get through, sends none. What was
before we had the partition is not known. So leases begin anew with each take-over, and behind each outage.

That Kafka is there shows by heartbeats, which stand in another topic. Whether one partition takes pings shows by the
checks of its leases, which go the same way: while they do not get in, no lease of the partition ends. Where no lease is
due meanwhile nothing shows. Times are epoch ms of our own clock. Belongs to the event loop.
"""

SILENCE_MS = 3_000
"""Kafka that acknowledges nothing for longer than this is away."""


class OutageTracker:
    def __init__(self) -> None:
        self._acknowledged_at: int | None = None
        self._back_at = 0
        self._unsent_since: dict[int, int] = {}
        self._open_since: dict[int, int] = {}

    def acknowledged(self, now: int) -> None:
        """Kafka has just answered, by an acknowledgement while a lease may run out.

        Called several times within SILENCE_MS while Kafka is there.
        """
        before, self._acknowledged_at = self._acknowledged_at, now
        if before is None or now - before > SILENCE_MS:
            self._back_at = now
        elif now < before:
            # Our clock was set back: nothing began later than now.
            self._back_at = now
            self._open_since = {partition: min(since, now) for partition, since in self._open_since.items()}

    def owned(self, partition: int, now: int) -> None:
        """The partition is ours from now on."""
        self._unsent_since.pop(partition, None)
        self._open_since[partition] = now

    def disowned(self, partition: int) -> None:
        """No check of the partition is sent from here any more: whether it takes them is another instance's to say."""
        self._unsent_since.pop(partition, None)

    def sending(self, partition: int, now: int) -> None:
        """A check of a lease is about to be sent the way that pings of the partition go."""
        self._unsent_since.setdefault(partition, now)

    def sent(self, partition: int, now: int) -> None:
        """All that was sent is there. If that took longer than SILENCE_MS, the partition takes pings only from now on.

        Not called while a check is missing: it will be sent a second time, unless its transaction ends. Not called for
        a request that is decided, either: it may have been appended long before.
        """
        if now - self._unsent_since.pop(partition, now) > SILENCE_MS:
            self._open_since[partition] = now

    def is_open(self, partition: int, now: int) -> bool:
        """Whether clients can reach the partition; if not, it counts as open from the end of the outage on."""
        signs = (self._acknowledged_at, self._unsent_since.get(partition))
        return all(at is None or now - at <= SILENCE_MS for at in signs)

    def open_since(self, partition: int) -> int:
        """When the last outage ended that is over."""
        return max(self._back_at, self._open_since.get(partition, 0))
