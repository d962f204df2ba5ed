"""The decisions on the cluster."""

from collections.abc import Iterable, Mapping

from sluice.domain.cluster import events as ev
from sluice.domain.cluster.commands import DrainStore, Heartbeat, RebalanceContainers, UndrainStore
from sluice.domain.cluster.state import Cluster, cluster_of
from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, refuse
from sluice.domain.host import Host
from sluice.domain.status import Status


def assign(
    count: int, hosts: Iterable[Host], present: Mapping[int, Host], load: Mapping[int, int] = {}
) -> dict[int, Host]:
    """Give each container 0..count-1 a host: who has a living host keeps it, unless weights differ much without a move.

    A container's weight is an even share and its share of the load, both alike: without load all weigh the same, and
    hosts differ by one container at most. A move is worth it if the two hosts differ less behind it, by half of what
    they did at least. Empty without hosts. The same inputs give the same answer, whatever the order of `hosts`.
    """
    total = sum(load.get(container, 0) for container in range(count))
    weights = [load.get(container, 0) * count + total if total else 1 for container in range(count)]
    placed: dict[Host, list[int]] = {host: [] for host in sorted(hosts)}
    if not placed:
        return {}

    def weight_of(containers: Iterable[int]) -> int:
        return sum(weights[container] for container in containers)

    orphans = []
    for container in range(count):
        host = present.get(container)
        if host in placed:
            placed[host].append(container)
        else:
            orphans.append(container)
    for container in sorted(orphans, key=lambda one: -weights[one]):
        min(placed.values(), key=weight_of).append(container)
    while True:
        most, least = max(placed.values(), key=weight_of), min(placed.values(), key=weight_of)
        gap = weight_of(most) - weight_of(least)
        moved = min(reversed(most), key=lambda one: abs(gap - 2 * weights[one]), default=None)
        if moved is None or 4 * weights[moved] > 3 * gap:
            break
        most.remove(moved)
        least.append(moved)
    return dict(sorted((container, host) for host, containers in placed.items() for container in containers))


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


def wanted(cluster: Cluster, count: int, alive: Iterable[Host], found: Mapping[int, Host]) -> dict[int, Host]:
    """Which of the living hosts is to run each container, going on from what is, or was found at first.

    A host that is drained gets none, unless all that live are.
    """
    takers = [host for host in alive if host not in cluster.drained] or alive
    return assign(count, takers, cluster.containers or found, cluster.load)


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
    containers = wanted(cluster, count, alive, found)
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


def decide_drain(reader: Reader, command: DrainStore, context: Context) -> Decision:
    """Refused for a store that is not known, and for the last one that is not drained."""
    cluster = cluster_of(reader)
    if command.store not in cluster.hosts:
        return refuse(Status.PRECONDITION_FAILED, f"no segment store is registered as {command.store}")
    if command.store in cluster.drained:
        return _DONE
    if not set(cluster.hosts) - {*cluster.drained, command.store}:
        return refuse(Status.PRECONDITION_FAILED, "no other segment store is there")
    return Decision((ev.StoreDrained(command.store, context.now),), _DONE.reply)


def decide_undrain(reader: Reader, command: UndrainStore, context: Context) -> Decision:
    """One that is not drained stays as it is."""
    if command.store not in cluster_of(reader).drained:
        return _DONE
    return Decision((ev.StoreUndrained(command.store, context.now),), _DONE.reply)


def decide_rebalance(_reader: Reader, command: RebalanceContainers, context: Context) -> Decision:
    """The load counts from now on; containers move by it as soon as the last assignment is old enough."""
    return Decision((ev.ContainerLoadMeasured(command.load, context.now),), _DONE.reply)


_DONE = Decision((), Reply(Status.SUCCESS))

DECIDE: dict[type, Decide] = {
    Heartbeat: decide_heartbeat,
    DrainStore: decide_drain,
    UndrainStore: decide_undrain,
    RebalanceContainers: decide_rebalance,
}
