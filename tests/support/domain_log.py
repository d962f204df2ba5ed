"""A log of one process for tests of the domain: decide, apply, and look at what became of it.

It folds as the journal does: what a decision holds is one entry, and the projections are kept as well.
"""

from collections.abc import Sequence
from typing import Any

from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.events import Event
from sluice.domain.model import DomainModel, JournalRecord
from sluice.domain.registry import decide
from sluice.domain.scope.events import ScopeCreated
from sluice.engine.fold import PartitionView
from sluice.engine.record import Entry, Record


class Lengths(dict[int, int]):
    """Of segments, in bytes. Those not named are long enough for every cut."""

    def __contains__(self, _segment: object) -> bool:
        return True

    def __missing__(self, _segment: int) -> int:
        return 1 << 62


class Log:
    """Holds the states of all aggregates; a Reader, too. These scopes are there from the start."""

    def __init__(self, *scopes: str) -> None:
        self.view = PartitionView(DomainModel())
        self._requests = 0
        self.measured = Lengths()
        self.fold(*(ScopeCreated(scope=scope, creation_id=f"scope-{scope}", at=0) for scope in scopes))

    @property
    def partition_key(self) -> str:
        return self.view.partition_key

    @property
    def next_offset(self) -> int:
        return self.view.next_offset

    def elsewhere(self, key: str) -> PartitionView:
        return self.view.elsewhere(key)

    def everywhere(self) -> Sequence[PartitionView]:
        return self.view.everywhere()

    def get(self, aggregate: str) -> Any | None:
        return self.view.get(aggregate)

    def version(self, aggregate: str) -> int:
        return self.view.version(aggregate)

    def projection(self, name: str) -> Any | None:
        return self.view.projection(name)

    def fold(self, *events: Event, timestamp_ms: int = 0) -> None:
        """Make the events true, whatever was decided; an entry of its own."""
        offset = self.view.next_offset
        record: JournalRecord = Record(id=f"record-{offset}", at=0, by="test", entries=(Entry(events=events),))
        self.view.fold(record, offset, timestamp_ms)

    def apply(self, decision: Decision) -> Decision:
        if decision.events:
            self.fold(*decision.events)
        return decision

    def decide(self, command: Command, request: str | None = None, now: int = 1000, appended_at: int = 0) -> Decision:
        self._requests += 1
        id = request or f"request-{self._requests}"
        context = Context(now, id, appended_at, caught_up=True, measured=self.measured)
        return self.apply(decide(self, command, context))

    def ask(self, command: Command, request: str | None = None, appended_at: int = 0) -> Reply:
        reply: Reply | None = self.decide(command, request, appended_at=appended_at).reply
        assert reply is not None, f"{command} was not answered"
        return reply
