"""The members: which instances of our own services are alive, by the heartbeats that they send.

All heartbeats have one key, so they are handled one after the other. One that cannot be recorded now is dropped: the
next one comes within a minute.

Who is silent is judged by the time of the heartbeats' topic, not of a clock: it goes on as records arrive, and never by
more than `LONGEST_STEP` of the time-out for one of them. While Kafka is away, or this process is frozen or starved, no
heartbeat arrives, so that silence counts for no more than a step; and a backlog read in a burst takes hardly any time.
This instance's own heartbeats keep the time going while all others are silent. Belongs to the event loop.
"""

import logging
from collections.abc import Callable, Iterable

from cluster_manager.containers import propose
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.decide import decide_departures, decide_heartbeat
from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.decision import Context, Decision
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import Journal, JournalError

log = logging.getLogger(__name__)

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


class Members:
    """Keeps the cluster's members true to the heartbeats. `monotonic_s` is a clock that only goes forward."""

    def __init__(self, journal: Journal, member_timeout_s: float, monotonic_s: Callable[[], float]) -> None:
        self._journal = journal
        self._watch = MemberWatch(member_timeout_s)
        self._monotonic_s = monotonic_s

    def activated(self) -> None:
        """This instance is the active one from now on: every member counts as just seen."""
        self._watch.restart()

    async def handle(self, heartbeat: Heartbeat) -> None:
        self._watch.observe(heartbeat.instance, self._monotonic_s())
        try:
            await self._record(heartbeat)
        except JournalError as error:
            log.warning("heartbeat not recorded", extra={"member": heartbeat.instance, "error": str(error)})

    async def _record(self, heartbeat: Heartbeat) -> None:
        def join(reader: GuardedReader, context: Context) -> Decision:
            return decide_heartbeat(reader, heartbeat, context)

        await propose(self._journal, join)
        silent = self._watch.silent(cluster_of(self._journal.reader(CLUSTER)).members)
        if not silent:
            return

        def leave(reader: GuardedReader, context: Context) -> Decision:
            return decide_departures(reader, silent, context)

        await propose(self._journal, leave)
        log.info("members left", extra={"members": silent})
