"""Health as Pravega reports it (admin-rest-api 8), of Sluice's own components.

The components are what the readiness of this process consists of, and the other parts of the system as far as this
process knows them. The root is up while all of that is, but for what this process does without. It is alive in any
case: restarting this process because another one is away gains nothing.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import TypeAdapter

from api_gateway.edge.health import Health
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.security.guard import Guard
from api_gateway.pravega.rest.base import refusals, router
from api_gateway.pravega.rest.models import HealthResult, Status
from sluice.domain.errors import NotFoundError
from sluice.insight.streams import DECIDES
from sluice.telemetry.health import problems

routes = router(is_vital=True)
routes.tags = ["Pravega health"]

_CODES: Mapping[Status, int] = {"UP": 3, "STARTING": 2, "NEW": 1, "UNKNOWN": 0, "DOWN": -1, "FAILED": -2}

_STATUSES: Mapping[bool | None, Status] = {True: "UP", False: "DOWN", None: "UNKNOWN"}

_JSON = TypeAdapter(bool | str | dict[str, str])


def _result(name: str, status: Status, details: dict[str, str], children: Mapping[str, HealthResult]) -> HealthResult:
    code = _CODES[status]
    return HealthResult(
        name=name,
        status=status,
        readiness=code >= 3,
        liveness=code >= 1,
        details=details,
        children=dict(children),
    )


def root(health: Health) -> HealthResult:
    """Up if calls can be served, starting as long as this process is not ready for that."""
    own, others = health.checks | health.degraded, health.others()
    wrong = problems(own)
    is_starting = not wrong.keys().isdisjoint(health.checks)
    is_down = any(other.is_up is False for name, other in others.items() if name != DECIDES)
    children = {name: _own(name, wrong.get(name)) for name in own}
    children |= {name: _result(name, _STATUSES[part.is_up], part.details, {}) for name, part in others.items()}
    found = _result("", "STARTING" if is_starting else "DOWN" if is_down else "UP", {}, children)
    return found.model_copy(update={"liveness": True})


def _own(name: str, problem: str | None) -> HealthResult:
    return _result(name, "UP", {}, {}) if problem is None else _result(name, "DOWN", {"problem": problem}, {})


def _found(request: Request, id: str | None) -> HealthResult:
    """Raises NotFoundError."""
    found = root(request.app.state.health)
    if id is None:
        return found
    if id not in found.children:
        raise NotFoundError(f"there is no component {id}")
    return found.children[id]


def _shown(request: Request, result: HealthResult) -> HealthResult:
    """Without details where authentication is on: these need a permission, and health does not."""
    guard: Guard | None = request.app.state.guard
    if guard is None or not guard.wants_credentials:
        return result
    children = {name: _shown(request, child) for name, child in result.children.items()}
    return result.model_copy(update={"details": {}, "children": children})


def _json(value: bool | str | dict[str, str]) -> Response:
    return Response(_JSON.dump_json(value), media_type="application/json")


ComponentId = Annotated[str, Path(description="The name of a component.", examples=["journal"])]

_OF_ALL, _OF_ONE = refusals(), refusals(404)


@routes.get("/health", operation_id="getHealth", response_model=HealthResult, responses=_OF_ALL)
async def health(request: Request) -> Response:
    """Show the health of all components."""
    return as_json(_shown(request, _found(request, None)))


@routes.get("/health/readiness", operation_id="getReadiness", response_model=bool, responses=_OF_ALL)
async def readiness(request: Request) -> Response:
    """Say whether this process is ready."""
    return _json(_found(request, None).readiness)


@routes.get("/health/liveness", operation_id="getLiveness", response_model=bool, responses=_OF_ALL)
async def liveness(request: Request) -> Response:
    """Say whether this process is alive."""
    return _json(_found(request, None).liveness)


@routes.get("/health/status", operation_id="getStatus", response_model=Status, responses=_OF_ALL)
async def status(request: Request) -> Response:
    """Say what state this process is in."""
    return _json(_found(request, None).status)


@routes.get("/health/details", operation_id="getDetails", response_model=dict[str, str], responses=_OF_ALL)
async def details(request: Request) -> Response:
    """Show the details of this process; there are none."""
    return _json(_found(request, None).details)


@routes.get("/health/{id}", operation_id="getContributorHealth", response_model=HealthResult, responses=_OF_ONE)
async def component_health(request: Request, id: ComponentId) -> Response:
    """Show the health of a component."""
    return as_json(_shown(request, _found(request, id)))


@routes.get("/health/readiness/{id}", operation_id="getContributorReadiness", response_model=bool, responses=_OF_ONE)
async def component_readiness(request: Request, id: ComponentId) -> Response:
    """Say whether a component is ready."""
    return _json(_found(request, id).readiness)


@routes.get("/health/liveness/{id}", operation_id="getContributorLiveness", response_model=bool, responses=_OF_ONE)
async def component_liveness(request: Request, id: ComponentId) -> Response:
    """Say whether a component is alive."""
    return _json(_found(request, id).liveness)


@routes.get("/health/status/{id}", operation_id="getContributorStatus", response_model=Status, responses=_OF_ONE)
async def component_status(request: Request, id: ComponentId) -> Response:
    """Say what state a component is in."""
    return _json(_found(request, id).status)


@routes.get(
    "/health/details/{id}", operation_id="getContributorDetails", response_model=dict[str, str], responses=_OF_ONE
)
async def component_details(request: Request, id: ComponentId) -> Response:
    """Show the details of a component: what is wrong with it, or its instances."""
    return _json(_found(request, id).details)
