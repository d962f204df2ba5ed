"""What the caller of a description may do with what is described: what its state allows, and the caller's permissions.

The decision on a request has the last word; this says what is worth to be offered.
"""

from collections.abc import Iterable
from enum import Enum

from pydantic import Field

from api_gateway.console.permissions import RULES
from api_gateway.console.rest.base import PREFIX, Model
from api_gateway.edge.security.rest_resources import Names
from sluice.domain.workflow import why_not_cancel, why_not_retry
from sluice.security.caller import CALLER, ForbiddenError

NO_PERMISSION = "the credentials do not allow it"


class Allowed(Model):
    """An action, and whether it is worth to be offered."""

    action: str = Field(examples=["seal"])
    allowed: bool
    why: str | None = Field(default=None, description="Why it is not, in words.")


class Action:
    """An action, and the operation that carries it out; `path` is one under /sluice/v1, as a route has it."""

    def __init__(self, name: str, method: str, path: str) -> None:
        self.name = name
        self._rule = RULES[f"{method} {PREFIX}{path}"]

    def judged(self, names: Names, why_not: str) -> Allowed:
        """For the caller, and a resource with these names, whose state forbids it for the reason given, or not ("")."""
        caller = CALLER.get()
        if caller is not None and self._rule is not None:
            try:
                self._rule.check(caller, names, False)
            except ForbiddenError:
                why_not = NO_PERMISSION
        return Allowed(action=self.name, allowed=not why_not, why=why_not or None)


def judged(actions: Iterable[tuple[Action, str]], names: Names) -> list[Allowed]:
    """Several actions on one resource, each with the reason that forbids it, or none ("")."""
    return [action.judged(names, why_not) for action, why_not in actions]


RETRY = Action("retry", "POST", "/workflows/retry")
CANCEL = Action("cancel", "POST", "/workflows/cancel")
"""On the workflow that changes a resource."""


def on_workflow(state: object) -> list[tuple[Action, str]]:
    """Retry and cancel of the workflow that changes an aggregate of this state, each with what forbids it."""
    return [(RETRY, why_not_retry(state)), (CANCEL, why_not_cancel(state))]


def why_not_now(state: Enum) -> str:
    """What forbids a change of a reader group or table in this state; empty if nothing does."""
    return f"it is being {'created' if state.value == 'CREATING' else 'deleted'}" if state.value != "ACTIVE" else ""
