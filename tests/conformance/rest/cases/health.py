"""Health (admin-rest-api 8): the components have other names, the form is the same."""

from typing import Any

from conformance.case import Subject
from conformance.rest.calls import View, rest
from conformance.run import Run

REST_HEALTH = Subject("rest_health")
case = REST_HEALTH.case

_PARTS = {
    "name": "str",
    "status": "str",
    "readiness": "bool",
    "liveness": "bool",
    "details": "dict",
    "children": "dict",
}


def form(_run: Run, answer: Any) -> dict[str, str]:
    """Which properties there are, and of what type."""
    return {name: type(value).__name__ for name, value in answer.items()}


def form_of_children(_run: Run, answer: Any) -> bool:
    children = answer["children"]
    return bool(children) and all(form(_run, c) == _PARTS and c["name"] == n for n, c in children.items())


def name(_run: Run, answer: Any) -> str:
    return str(answer["name"])


case("all", rest("GET", "/v1/health", view=form).gives((200, _PARTS)))
case("root_has_no_name", rest("GET", "/v1/health", view=name).gives((200, "")))
case("components", rest("GET", "/v1/health", view=form_of_children).gives((200, True)))
case("readiness", rest("GET", "/v1/health/readiness").until((200, True)))
case("liveness", rest("GET", "/v1/health/liveness").until((200, True)))
case("status", rest("GET", "/v1/health/status").until((200, "UP")))
case("details", rest("GET", "/v1/health/details").gives((200, {})))
case("of_unknown", rest("GET", "/v1/health/unknown").gives(404))
case("readiness_of_unknown", rest("GET", "/v1/health/readiness/unknown").gives(404))
case("liveness_of_unknown", rest("GET", "/v1/health/liveness/unknown").gives(404))
case("status_of_unknown", rest("GET", "/v1/health/status/unknown").gives(404))
case("details_of_unknown", rest("GET", "/v1/health/details/unknown").gives(404))

WHY = "the components of Sluice have other names"


def of_component(label: str, path: str, good: object, view: View | None = None) -> None:
    """One question about a component that only we have, and about one that only they have."""
    ours, theirs = (rest("GET", f"/v1/health/{path}{name}", view=view) for name in ("journal", "GRPCServer"))
    case(f"{label}_of_a_component_of_ours", ours.differs(peer=404, sluice=(200, good), why=WHY))
    case(f"{label}_of_a_component_of_theirs", theirs.differs(peer=(200, good), sluice=404, why=WHY))


of_component("all", "", _PARTS, form)
of_component("readiness", "readiness/", True)
of_component("liveness", "liveness/", True)
of_component("status", "status/", "UP")
of_component("details", "details/", {})

case(
    "metrics",
    rest("GET", "/prometheus").differs(
        peer=404, sluice=(200, "text/plain"), why="the original has it only where metrics are switched on"
    ),
)
