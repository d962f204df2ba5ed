"""The decisions on the cluster."""

from collections.abc import Iterable, Mapping

from sluice.domain.cluster import events as ev
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.state import Cluster, cluster_of
from sluice.domain.decision import Context, Decide, Decision, Reader
from sluice.domain.host import Host


def assign(count: int, hosts: Iterable[Host], present: Mapping[int, Host]) -> dict[int, Host]:
    """Give each container 0..count-1 a host: who has a living host keeps it, unless loads would differ by two or more.

    Empty without hosts. The same inputs give the same answer, whatever the order of `hosts`.
    """
    load: dict[Host, list[int]] = {host: [] for host in sorted(hosts)}
    if not load:
        return {}
    orphans = []
    for container in range(count):
        host = present.get(container)
        if host in load:
            load[host].append(container)
        else:
            orphans.append(container)
    for container in orphans:
        min(load.values(), key=len).append(container)
    while len(most := max(load.values(), key=len)) - len(least := min(load.values(), key=len)) > 1:
        least.append(most.pop())
    return dict(sorted((container, host) for host, containers in load.items() for container in containers))


def moves(before: Mapping[int, Host], after: Mapping[int, Host]) -> int:
    """How many containers changed from one host to another; one that had no host has not moved."""
    return sum(1 for container, host in before.items() if after.get(container, host) != host)


def assignment_wait_ms(cluster: Cluster, interval_ms: int, now: int) -> int:
    """How long until the next assignment may be made; 0 for the first one.

    A last assignment that seems to lie in the future was made by another clock and delays no other.
    """
    since = now - cluster.assigned_at
    if not cluster.containers or since < 0:
        return 0
    return max(0, interval_ms - since)


def decide_assignment(
    reader: Reader, count: int, hosts: Iterable[Host], found: Mapping[int, Host], interval_ms: int, context: Context
) -> Decision:
    """A new container map if the living hosts need one and the last is old enough.

    The first one goes on from `found`, what stores were assigned before there was a journal. Without hosts the last map
    stays: it may come true again.
    """
    alive = tuple(sorted(set(hosts)))
    cluster = cluster_of(reader)
    if not alive or assignment_wait_ms(cluster, interval_ms, context.now) > 0:
        return Decision()
    containers = assign(count, alive, cluster.containers or found)
    if containers == cluster.containers and alive == cluster.hosts:
        return Decision()
    return Decision((ev.ContainersAssigned(containers=containers, hosts=alive, at=context.now),))


def decide_takeover(me: Heartbeat, context: Context) -> Decision:
    """The instance that begins to decide for the cluster joins anew, even if it is a member already.

    Its record raises the cluster's version, so whatever the one before it decided on older knowledge is void.
    """
    return Decision((_joined(me, context),))


def _joined(beat: Heartbeat, context: Context) -> ev.MemberJoined:
    return ev.MemberJoined(
        service=beat.service,
        instance=beat.instance,
        endpoints=beat.endpoints,
        at=context.now,
        started_at=beat.started_at,
    )


def decide_heartbeat(reader: Reader, command: Heartbeat, context: Context) -> Decision:
    """Only a new member, or one that was started anew, leaves, has other endpoints, or gets no answer from other
    containers than before, is worth a record.

    A heartbeat of the process before it, which comes late, is no start and no end.
    """
    known = cluster_of(reader).members.get(command.instance)
    if command.leaving:
        if known is None or command.started_at < known.since:
            return Decision()
        return Decision((ev.MemberLeft(instance=command.instance, at=context.now),))
    found: list[ev.Event] = []
    unresponsive = known.unresponsive if known is not None else {}
    if (
        known is None
        or (known.service, known.endpoints) != (command.service, command.endpoints)
        or command.started_at > known.since
    ):
        found.append(_joined(command, context))
        unresponsive = {}
    elif 0 < command.started_at < known.since:
        return Decision()
    if set(command.unresponsive) != unresponsive.keys():
        found.append(
            ev.ContainersUnresponsive(instance=command.instance, containers=command.unresponsive, at=context.now)
        )
    return Decision(tuple(found))


def decide_departures(reader: Reader, silent: Iterable[str], context: Context) -> Decision:
    """Those of the silent that are still members leave."""
    members = cluster_of(reader).members
    return Decision(tuple(ev.MemberLeft(instance=i, at=context.now) for i in silent if i in members))


DECIDE: dict[type, Decide] = {Heartbeat: decide_heartbeat}
