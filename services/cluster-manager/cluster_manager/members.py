"""Which instances of our own services have fallen silent.

Time here is that of the heartbeats' topic, not of a clock: it goes on as records arrive, and never by more than
`LONGEST_STEP_S` for one of them. While Kafka is away, or this process is frozen or starved, nobody is heard, so
nobody's silence counts; and a backlog read in a burst takes hardly any time. This instance's own heartbeats, one a
second, keep the time going while all others are silent. Belongs to the event loop.
"""

from collections.abc import Iterable

LONGEST_STEP_S = 1.5


class MemberWatch:
    """`timeout_s` without being heard, and a member is silent. `now` is a monotonic clock in seconds."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._time = 0.0
        self._last_arrival: float | None = None
        self._heard: dict[str, float] = {}

    def restart(self) -> None:
        """Forget who was heard when: another instance listened meanwhile."""
        self._heard.clear()
        self._last_arrival = None

    def hear(self, instance: str, now: float) -> None:
        """A heartbeat of the instance arrived."""
        if self._last_arrival is not None:
            self._time += min(max(0.0, now - self._last_arrival), LONGEST_STEP_S)
        self._last_arrival = now
        self._heard[instance] = self._time

    def silent(self, members: Iterable[str]) -> list[str]:
        """Those of the members that are silent; one never heard counts from the first time it is asked about."""
        present = set(members)
        self._heard = {instance: at for instance, at in self._heard.items() if instance in present}
        return [i for i in sorted(present) if self._time - self._heard.setdefault(i, self._time) > self._timeout_s]
