"""Health as Pravega reports it (admin-rest-api 8), of Sluice's own components.

The components are what the readiness of this process consists of, and the other parts of the system as far as this
process knows them: each service by the instances that are members of the cluster, and the segment stores by the
container map and the containers that do not answer. The root is up while all of that is, but for what this process does
without. It is alive in any case: restarting this process because another one is away gains nothing.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import TypeAdapter

from api_gateway.edge.rest.backend import Backend, as_json
from api_gateway.edge.security.guard import Guard
from api_gateway.pravega.rest.base import refusals, router
from api_gateway.pravega.rest.models import HealthResult, Status
from sluice.domain.errors import NotFoundError
from sluice.telemetry.health import Checks, problems

routes = router(is_vital=True)
routes.tags = ["Pravega health"]

SERVICES = ("api-gateway", "cluster-manager", "stream-workflows", "txn-manager")
"""Which are members of the cluster wherever Sluice runs."""

_CODES: Mapping[Status, int] = {"UP": 3, "STARTING": 2, "NEW": 1, "UNKNOWN": 0, "DOWN": -1, "FAILED": -2}

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


class HealthTree:
    """The components of one process and what it knows of the others."""

    def __init__(self, checks: Checks, degraded: Checks) -> None:
        self._checks = checks
        self._degraded = degraded
        self._backend: Backend | None = None

    def open(self, backend: Backend) -> None:
        """From now on the others are known."""
        self._backend = backend

    def problems(self) -> str:
        """What is wrong with this process, in words; empty if nothing is."""
        found = {**problems(self._checks), **problems(self._degraded)}
        return "; ".join(f"{name}: {problem}" for name, problem in found.items())

    def cannot(self) -> list[str]:
        """Why this process cannot serve, and which of the other services have no instance, in words."""
        found = [f"{name}: {problem}" for name, problem in problems(self._checks).items()]
        others = self._others()
        return found + [f"{name}: no instance" for name in SERVICES if others[name].status == "DOWN"]

    def troubles(self) -> list[str]:
        """What this process does without, in words."""
        return [f"{name}: {problem}" for name, problem in problems(self._degraded).items()]

    def root(self) -> HealthResult:
        """Up if calls can be served, starting as long as this process is not ready for that."""
        wrong, lesser = problems(self._checks), problems(self._degraded)
        own = {name: _own(name, wrong.get(name)) for name in self._checks}
        own |= {name: _own(name, lesser.get(name)) for name in self._degraded}
        others = self._others()
        is_down = any(other.status == "DOWN" for other in others.values())
        found = _result("", "STARTING" if wrong else "DOWN" if is_down else "UP", {}, {**own, **others})
        return found.model_copy(update={"liveness": True})

    def component(self, id: str) -> HealthResult:
        """Raises NotFoundError."""
        found = self.root().children.get(id)
        if found is None:
            raise NotFoundError(f"there is no component {id}")
        return found

    def _others(self) -> dict[str, HealthResult]:
        backend = self._backend
        if backend is None:
            return {name: _result(name, "UNKNOWN", {}, {}) for name in (*SERVICES, "segment-stores")}
        cluster, heartbeats = backend.reads.cluster(), backend.last_heartbeats
        found: dict[str, HealthResult] = {}
        for service in SERVICES:
            members = [m for m in cluster.members.values() if m.service == service]
            details = {m.instance: ", ".join(f"{k} {v}" for k, v in sorted(m.endpoints.items())) for m in members}
            for member in members:
                wrong = [f"{check}: {problem}" for check, problem in heartbeats.problems(member.instance).items()]
                wrong += ["its heartbeats are missed"] * heartbeats.is_missed(member.instance)
                details[member.instance] = "; ".join(filter(None, (details[member.instance], *wrong)))
            is_there = not all(heartbeats.is_missed(member.instance) for member in members)
            found[service] = _result(service, "UP" if is_there else "DOWN", details, {})
        silent = backend.outages()
        counts = Counter(str(host) for host in cluster.containers.values())
        details = {store: f"{counts[store]} containers" for store in sorted({*counts, *map(str, cluster.hosts)})}
        details |= {f"container {container}": outage.problem for container, outage in silent.items()}
        found["segment-stores"] = _result("segment-stores", "DOWN" if silent else "UP", details, {})
        return found


def _own(name: str, problem: str | None) -> HealthResult:
    return _result(name, "UP", {}, {}) if problem is None else _result(name, "DOWN", {"problem": problem}, {})


def _found(request: Request, id: str | None) -> HealthResult:
    tree: HealthTree = request.app.state.health
    return tree.root() if id is None else tree.component(id)


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
