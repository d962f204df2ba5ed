"""The cluster: which segment store runs which container, which instances of our services there are."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Response
from pydantic import Field

from api_gateway.console.container_load import container_load
from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.actions import action
from api_gateway.console.rest.base import Body, refusals, router
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, served
from sluice.addresses import host_and_port
from sluice.domain.cluster.commands import DrainStore, RebalanceContainers, UndrainStore
from sluice.domain.host import Host
from sluice.insight.cluster import ContainerMap, MemberItem, MemberList, containers_shown, members_shown
from sluice.lookback.describing import CLUSTER_AT, ClusterQuestion
from sluice.pravega.store import SegmentStore

routes = router("cluster")


class StoreBody(Body):
    """Which segment store is meant."""

    store: str = Field(
        max_length=300, description="host:port, as the container map has it.", examples=["segment-store-1:12345"]
    )

    def host(self) -> Host:
        """Raises BadRequestError."""
        try:
            return Host(*host_and_port(self.store))
        except ValueError as error:
            raise BadRequestError(f"store: {error}") from error


@routes.get("/containers", operation_id="getContainers", response_model=ContainerMap, responses=refusals())
async def containers(reads: ServedReads, containers: ServedContainers, look_back: LookBack, at: At = None) -> Response:
    """Show the container map, and the members of the data plane."""
    if at is not None:
        question = ClusterQuestion(look_back.moment(at), containers.count)
        return as_json((await look_back(CLUSTER_AT, question)).containers)
    return as_json(containers_shown(reads.cluster(), containers.count))


_on_store = partial(action, routes, "", "POST", about="{0.store}", refused=(409,))


@_on_store("/containers/drain", id="drainStore", says="Its containers move to the others at the next assignment.")
async def drain(body: StoreBody) -> DrainStore:
    """Have a segment store run no container from now on, also when it comes back, as long as another one is there."""
    return DrainStore(body.host())


@_on_store("/containers/undrain", id="undrainStore", says="It gets its share of them at the next assignment.")
async def undrain(body: StoreBody) -> UndrainStore:
    """End what `drain` began."""
    return UndrainStore(body.host())


@action(
    routes,
    "",
    "POST",
    "/containers/rebalance",
    id="rebalanceContainers",
    about="containers",
    says="They move at the next assignment, if that is worth it.",
    refused=(),
)
async def rebalance(
    reads: ServedReads, containers: ServedContainers, store: Annotated[SegmentStore, served(SegmentStore)]
) -> RebalanceContainers:
    """Measure for some seconds what is written to each container, and spread them by it from now on."""
    return RebalanceContainers(await container_load(reads, store, containers.count))


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
        return as_json((await look_back(CLUSTER_AT, ClusterQuestion(look_back.moment(at), 0))).members)
    behind = position_in(after)
    rest = [one for one in members_shown(reads.cluster()) if _position(one) > behind]
    items = [
        replace(one, last_seen=heartbeats.last(one.instance), problems=heartbeats.problems(one.instance) or None)
        for one in rest[:limit]
    ]
    return as_json(MemberList(items=items, next=token_of(_position(items[-1])) if len(rest) > limit else None))


def _position(member: MemberItem) -> str:
    return f"{member.service}/{member.instance}"
