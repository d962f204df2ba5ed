"""The cluster as it is shown, of now or of a moment of the past: the container map, and instances of our services."""

from sluice.domain.cluster.state import Cluster
from sluice.insight.shown import Moment, Shown, text
from sluice.outages import outages


class ContainerItem(Shown):
    """A segment container."""

    container: int
    store: str | None = text("host:port of the segment store that runs it, if any does.", default=None)
    problem: str | None = text("What is wrong with it, in words; left out if it answers.", default=None)
    unresponsive_since: int | None = text("Since when it does not answer, epoch ms; left out if it does.", default=None)
    unresponsive_store: str | None = text("host:port of the segment store that ran it then, if any did.", default=None)


class ContainerMap(Moment):
    """The container map."""

    items: list[ContainerItem]
    stores: list[str] = text("host:port of every segment store that is known.")
    assigned_at: int = text("When the map was last changed, epoch ms; 0 before the first time.")
    drained: list[str] | None = text(
        "host:port of those that are to run no container; left out if there are none.", default=None
    )
    load: dict[str, int] | None = text(
        "Bytes a second that were written to each container when that was last measured; left out if it never was.",
        default=None,
    )


class MemberItem(Shown):
    """An instance of one of our services."""

    service: str = text(examples=["stream-workflows"])
    instance: str
    endpoints: dict[str, str] = text("host:port by protocol.", examples=[{"grpc": "127.0.0.1:9090"}])
    since: int = text("When it was started, epoch ms.")
    last_seen: int | None = text(
        "Its last heartbeat, epoch ms; left out if this gateway has received none yet.", default=None
    )
    problems: dict[str, str] | None = text(
        "What it does without at present, by check; left out if that is nothing.", default=None
    )


class MemberList(Moment):
    """A page of members, by service and instance."""

    items: list[MemberItem]
    next: str | None = text("Where the next page begins; left out at the end.", default=None)


def containers_shown(cluster: Cluster, count: int) -> ContainerMap:
    """Of the containers 0..count-1, and of all others that a segment store runs; `count` is 0 if it is not known."""
    silent = outages(cluster, count)
    items = []
    for container in sorted({*range(count), *cluster.containers}):
        host, outage = cluster.containers.get(container), silent.get(container)
        store = outage.store if outage is not None else None
        items.append(
            ContainerItem(
                container=container,
                store=str(host) if host is not None else None,
                problem=outage.problem if outage is not None else None,
                unresponsive_since=outage.since if outage is not None else None,
                unresponsive_store=str(store) if store is not None else None,
            )
        )
    return ContainerMap(
        items=items,
        stores=[str(host) for host in cluster.hosts],
        assigned_at=cluster.assigned_at,
        drained=[str(host) for host in cluster.drained] or None,
        load={str(container): load for container, load in cluster.load.items()} or None,
    )


def members_shown(cluster: Cluster) -> list[MemberItem]:
    """By service and instance."""
    members = sorted(cluster.members.values(), key=lambda one: f"{one.service}/{one.instance}")
    return [
        MemberItem(service=one.service, instance=one.instance, endpoints=dict(one.endpoints), since=one.since)
        for one in members
    ]
