"""A log of one process for tests of the domain: decide, apply, and look at what became of it.

It folds as the journal does: what a decision holds is one record, and the indexes are kept as well.
"""

from typing import Any

from sluice.domain.aggregates import DECIDE, evolve, index
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.events import Event
from sluice.journal.partition_view import PartitionView
from sluice.journal.record import Record


class Log:
    """Holds the states of all aggregates; a Reader, too."""

    def __init__(self) -> None:
        self.view = PartitionView(evolve, index)
        self._requests = 0

    def get(self, aggregate: str) -> Any | None:
        return self.view.get(aggregate)

    def version(self, aggregate: str) -> int:
        return self.view.version(aggregate)

    def index(self, name: str) -> Any | None:
        return self.view.index(name)

    def fold(self, *events: Event) -> None:
        """Make the events true, whatever was decided."""
        offset = self.view.next_offset
        self.view.fold(Record(id=f"record-{offset}", at=0, by="test", expect={}, events=events), offset, 0)

    def apply(self, decision: Decision) -> Decision:
        if decision.events:
            self.fold(*decision.events)
        return decision

    def decide(self, command: Command, request: str | None = None, now: int = 1000) -> Decision:
        self._requests += 1
        context = Context(now, request or f"request-{self._requests}")
        return self.apply(DECIDE[type(command)](self, command, context))

    def ask(self, command: Command, request: str | None = None) -> Reply:
        reply = self.decide(command, request).reply
        assert reply is not None, f"{command} was not answered"
        return reply
