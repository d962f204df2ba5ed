"""Which instances of our own services have become unresponsive.

Time here is that of the heartbeats' topic, not of a clock: it goes on as records arrive, and never by more than
`LONGEST_STEP` of the time-out for one of them. While Kafka is away, or this process is frozen or starved, no heartbeat
arrives, so that silence counts for no more than a step; and a backlog read in a burst takes hardly any time. This
instance's own heartbeats keep the time going while all others are silent. Belongs to the event loop.
"""

from collections.abc import Iterable

LONGEST_STEP = 0.6
"""Of the default time-out, 150 s, it is 90 s: so long may a heartbeat that is due each 60 s take."""


class MemberWatch:
    """A member is silent after `timeout_s` without a heartbeat. `now` is a monotonic clock in seconds."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._time = 0.0
        self._last_arrival: float | None = None
        self._last_seen: dict[str, float] = {}

    def restart(self) -> None:
        """Forget the last heartbeats: another instance received them meanwhile."""
        self._last_seen.clear()
        self._last_arrival = None

    def observe(self, instance: str, now: float) -> None:
        """A heartbeat of the instance arrived."""
        if self._last_arrival is not None:
            self._time += min(max(0.0, now - self._last_arrival), LONGEST_STEP * self._timeout_s)
        self._last_arrival = now
        self._last_seen[instance] = self._time

    def silent(self, members: Iterable[str]) -> list[str]:
        """Those of the members that are silent; one without a heartbeat counts from the first call about it."""
        present = set(members)
        self._last_seen = {instance: at for instance, at in self._last_seen.items() if instance in present}
        return [i for i in sorted(present) if self._time - self._last_seen.setdefault(i, self._time) > self._timeout_s]
