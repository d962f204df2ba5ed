"""All aggregates together: which function evolves each event, which one decides each command."""

from collections.abc import Callable
from typing import Any

from sluice.domain import cluster, scope, workflow
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.events import Event, WorkflowStepFailed
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream import evolve as stream_evolve

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    **scope.EVOLVE,
    **stream_evolve.EVOLVE,
    **cluster.EVOLVE,
    WorkflowStepFailed: workflow.evolve_step_failed,
}

DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {**scope.DECIDE, **stream_decide.DECIDE}


def evolve(state: Any, event: Event) -> Any:
    """The state after the event. The given state belongs to this call and may be changed in place."""
    return EVOLVE[type(event)](state, event)
