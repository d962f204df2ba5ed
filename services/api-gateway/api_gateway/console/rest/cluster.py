"""The cluster: which segment store runs which container, which instances of our services there are."""

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.base import Model, Moment, refusals, router
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.rest.answers import as_document, as_json
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, served
from sluice.domain.host import Host
from sluice.lookback.describing import CLUSTER_AT, ClusterQuestion
from sluice.outages import Outage

routes = router("cluster")


class ContainerItem(Model):
    """A segment container."""

    container: int
    store: str | None = Field(default=None, description="host:port of the segment store that runs it, if any does.")
    problem: str | None = Field(default=None, description="What is wrong with it, in words; left out if it answers.")
    unresponsive_since: int | None = Field(
        default=None, description="Since when it does not answer, epoch ms; left out if it does."
    )
    unresponsive_store: str | None = Field(
        default=None, description="host:port of the segment store that ran it then, if any did."
    )


class ContainerMap(Moment):
    """The container map."""

    items: list[ContainerItem]
    stores: list[str] = Field(description="host:port of every segment store that is known.")
    assigned_at: int = Field(description="When the map was last changed, epoch ms; 0 before the first time.")


class MemberItem(Model):
    """An instance of one of our services."""

    service: str = Field(examples=["stream-workflows"])
    instance: str
    endpoints: dict[str, str] = Field(description="host:port by protocol.", examples=[{"grpc": "127.0.0.1:9090"}])
    since: int = Field(description="When it was started, epoch ms.")
    last_seen: int | None = Field(
        default=None, description="Its last heartbeat, epoch ms; left out if this gateway has received none yet."
    )
    problems: dict[str, str] | None = Field(
        default=None, description="What it does without at present, by check; left out if that is nothing."
    )


class MemberList(Moment):
    """A page of members, by service and instance."""

    items: list[MemberItem]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")


@routes.get("/containers", operation_id="getContainers", response_model=ContainerMap, responses=refusals())
async def containers(reads: ServedReads, containers: ServedContainers, look_back: LookBack, at: At = None) -> Response:
    """Show the container map, and the members of the data plane."""
    if at is not None:
        found = (await look_back(CLUSTER_AT, ClusterQuestion(look_back.moment(at)))).containers
        with_store = {item["container"]: item for item in found["items"]}
        shown = sorted({*range(containers.count), *with_store})
        return as_document({**found, "items": [with_store.get(c, {"container": c}) for c in shown]})
    cluster, silent = reads.cluster(), containers.outages()
    items = [
        _item(container, cluster.containers.get(container), silent.get(container))
        for container in range(containers.count)
    ]
    stores = [str(host) for host in cluster.hosts]
    return as_json(ContainerMap(items=items, stores=stores, assigned_at=cluster.assigned_at))


def _item(container: int, host: Host | None, outage: Outage | None) -> ContainerItem:
    was = outage.store if outage is not None else None
    return ContainerItem(
        container=container,
        store=str(host) if host is not None else None,
        problem=outage.problem if outage is not None else None,
        unresponsive_since=outage.since if outage is not None else None,
        unresponsive_store=str(was) if was is not None else None,
    )


@routes.get("/members", operation_id="listMembers", response_model=MemberList, responses=refusals())
async def members(
    reads: ServedReads,
    heartbeats: Annotated[LastHeartbeats, served(LastHeartbeats)],
    look_back: LookBack,
    limit: Limit = DEFAULT,
    after: After = "",
    at: At = None,
) -> Response:
    """List the instances of our services; those of the past are on one page."""
    if at is not None:
        return as_document((await look_back(CLUSTER_AT, ClusterQuestion(look_back.moment(at)))).members)
    behind = position_in(after)
    found = sorted((f"{m.service}/{m.instance}", m) for m in reads.cluster().members.values())
    rest = [(order, member) for order, member in found if order > behind]
    items = [
        MemberItem(
            service=member.service,
            instance=member.instance,
            endpoints=dict(member.endpoints),
            since=member.since,
            last_seen=heartbeats.last(member.instance),
            problems=heartbeats.problems(member.instance) or None,
        )
        for _, member in rest[:limit]
    ]
    return as_json(MemberList(items=items, next=token_of(rest[limit - 1][0]) if len(rest) > limit else None))
