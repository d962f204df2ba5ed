"""What is wrong with this process, and with the others as far as it knows them.

Those are each service, by the instances that are members of the cluster, and the segment stores, by the container map
and the containers that do not answer.
"""

from collections import Counter

import msgspec

from api_gateway.edge.containers import Containers
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.reads import Reads
from sluice.insight.streams import DECIDES
from sluice.telemetry.health import Checks, problems

SERVICES = ("api-gateway", "cluster-manager", "stream-workflows", "txn-manager")
"""Which are members of the cluster wherever Sluice runs."""

STORES = "segment-stores"


class Part(msgspec.Struct, frozen=True):
    """Whether a part of the system is there, None if that is not known; details by instance or store, in words."""

    is_up: bool | None
    details: dict[str, str] = {}


class Health:
    """That of one process, which begins to know the others when it is opened.

    `checks` are of what it cannot serve without, `degraded` of what it can do without.
    """

    def __init__(self, checks: Checks, degraded: Checks) -> None:
        self.checks = checks
        self.degraded = degraded
        self._known: tuple[Reads, Containers, LastHeartbeats] | None = None

    def open(self, reads: Reads, containers: Containers, heartbeats: LastHeartbeats) -> None:
        """From now on the others are known."""
        self._known = reads, containers, heartbeats

    def problems(self) -> str:
        """What is wrong with this process, in words; empty if nothing is."""
        return "; ".join(_in_words(self.checks | self.degraded))

    def cannot(self) -> list[str]:
        """Why this process cannot serve, and which of the other services have no instance, in words."""
        others = self.others()
        return _in_words(self.checks) + [f"{name}: no instance" for name in SERVICES if others[name].is_up is False]

    def troubles(self) -> list[str]:
        """What this process does without, in words."""
        return _in_words(self.degraded)

    def others(self) -> dict[str, Part]:
        """The services and the segment stores, by name."""
        if self._known is None:
            return dict.fromkeys((*SERVICES, STORES), Part(None))
        reads, containers, heartbeats = self._known
        cluster = reads.cluster()
        found: dict[str, Part] = {}
        for service in (*SERVICES, DECIDES):
            members = [m for m in cluster.members.values() if m.service == service]
            details = {m.instance: ", ".join(f"{k} {v}" for k, v in sorted(m.endpoints.items())) for m in members}
            for member in members:
                wrong = [f"{check}: {problem}" for check, problem in heartbeats.problems(member.instance).items()]
                wrong += ["its heartbeats are missed"] * heartbeats.is_missed(member.instance)
                details[member.instance] = "; ".join(filter(None, (details[member.instance], *wrong)))
            is_there = not all(heartbeats.is_missed(member.instance) for member in members)
            # Calls are served without it; it is shown where it is or was a member.
            if service != DECIDES or members or service in cluster.away:
                found[service] = Part(is_there, details)
        silent = containers.outages()
        counts = Counter(str(host) for host in cluster.containers.values())
        details = {store: f"{counts[store]} containers" for store in sorted({*counts, *map(str, cluster.hosts)})}
        details |= {f"container {container}": outage.problem for container, outage in silent.items()}
        found[STORES] = Part(not silent, details)
        return found


def _in_words(checks: Checks) -> list[str]:
    return [f"{name}: {problem}" for name, problem in problems(checks).items()]
