"""A log of one process for tests of the domain: decide, apply, and look at what became of it."""

from typing import Any

from sluice.domain.aggregates import DECIDE, evolve
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reply


class Log:
    """Holds the states of all aggregates; a Reader, too."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}
        self._requests = 0

    def get(self, aggregate: str) -> Any | None:
        return self.states.get(aggregate)

    def apply(self, decision: Decision) -> Decision:
        for event in decision.events:
            self.states[event.aggregate] = evolve(self.states.get(event.aggregate), event)
        return decision

    def decide(self, command: Command, request: str | None = None, now: int = 1000) -> Decision:
        self._requests += 1
        context = Context(now, request or f"request-{self._requests}")
        return self.apply(DECIDE[type(command)](self, command, context))

    def ask(self, command: Command, request: str | None = None) -> Reply:
        reply = self.decide(command, request).reply
        assert reply is not None, f"{command} was not answered"
        return reply
