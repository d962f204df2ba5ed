"""The requests on the cluster's topic: heartbeats of our own services, from which members come and go.

All records have one key, so they are handled one after the other. A heartbeat that cannot be recorded now is dropped:
the next one comes within a minute. Any other command on the topic becomes a dead letter.
"""

import logging
from collections.abc import Callable

from cluster_manager.containers import ClusterJournal, propose
from cluster_manager.members import MemberWatch
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.decide import decide_departures, decide_heartbeat
from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.decision import Context, Decision
from sluice.engine.fold import GuardedReader
from sluice.engine.journal import JournalError
from sluice.kafka.requests import decode_request

log = logging.getLogger(__name__)


class ForeignRequestError(Exception):
    """The command belongs on another topic."""


class Heartbeats:
    """Keeps the cluster's members true to the heartbeats. `monotonic_s` is a clock that only goes forward."""

    def __init__(self, journal: ClusterJournal, member_timeout_s: float, monotonic_s: Callable[[], float]) -> None:
        self._journal = journal
        self._watch = MemberWatch(member_timeout_s)
        self._monotonic_s = monotonic_s

    def activated(self) -> None:
        """This instance is the active one from now on: every member counts as just seen."""
        self._watch.restart()

    async def handle(self, value: bytes) -> None:
        """Raises msgspec.DecodeError or ForeignRequestError for what is no heartbeat."""
        command = decode_request(value).command
        if not isinstance(command, Heartbeat):
            raise ForeignRequestError(f"{type(command).__name__} does not belong to the cluster")
        self._watch.observe(command.instance, self._monotonic_s())
        try:
            await self._record(command)
        except JournalError as error:
            log.warning("heartbeat not recorded", extra={"member": command.instance, "error": str(error)})

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
