"""What lies outside /v1: ping and metrics (admin-rest-api 9)."""

from fastapi import APIRouter, Response

from api_gateway.pravega.rest.base import PravegaRoute
from sluice.telemetry.scrape import exposition

routes = APIRouter(tags=["Pravega health"], route_class=PravegaRoute)


@routes.get(
    "/ping", operation_id="ping", response_class=Response, responses={200: {"description": "The process answers."}}
)
async def ping() -> Response:
    """Answer, whatever the state of the service."""
    return Response()


@routes.get(
    "/prometheus",
    operation_id="prometheus",
    response_class=Response,
    responses={200: {"description": "The metrics of this process.", "content": {"text/plain": {}}}},
)
async def prometheus() -> Response:
    """Show the metrics of this process, as /metrics does."""
    return await exposition()
