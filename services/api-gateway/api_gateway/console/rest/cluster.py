"""The cluster: which segment store runs which container, which instances of our services there are."""

from dataclasses import replace
from typing import Annotated

from fastapi import Response

from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.paging import DEFAULT, After, Limit, position_in, token_of
from api_gateway.console.rest.base import refusals, router
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, served
from sluice.insight.cluster import ContainerMap, MemberItem, MemberList, containers_shown, members_shown
from sluice.lookback.describing import CLUSTER_AT, ClusterQuestion

routes = router("cluster")


@routes.get("/containers", operation_id="getContainers", response_model=ContainerMap, responses=refusals())
async def containers(reads: ServedReads, containers: ServedContainers, look_back: LookBack, at: At = None) -> Response:
    """Show the container map, and the members of the data plane."""
    if at is not None:
        question = ClusterQuestion(look_back.moment(at), containers.count)
        return as_json((await look_back(CLUSTER_AT, question)).containers)
    return as_json(containers_shown(reads.cluster(), containers.count))


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
