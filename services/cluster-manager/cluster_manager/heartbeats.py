"""The requests on the cluster's topic: heartbeats of our own services, from which members come and go.

All records have one key, so they are handled one after the other. A heartbeat that cannot be recorded now is dropped:
the next one comes within a minute.
"""

import logging
from collections.abc import Callable

from cluster_manager.containers import propose
from cluster_manager.members import MemberWatch
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.decide import decide_departures, decide_heartbeat
from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.decision import Context, Decision
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import Journal, JournalError

log = logging.getLogger(__name__)


class Heartbeats:
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
