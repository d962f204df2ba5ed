"""Which entries count, judged a second time, by a rule that forgets nothing; the fold must have judged alike.

An entry counts if its request was not decided before, and every aggregate that it expects has that version. Each entry
is judged at the state in front of it.
"""

from collections.abc import Callable, Sequence

from simulation.violation import Violation

from sluice.domain.model import JournalEntry, JournalRecord
from sluice.engine.fold import Outcome
from sluice.engine.ports import Message

OnEntry = Callable[[int, JournalEntry, int], None]
Decided = tuple[str, int, int, int]
"""A request by its topic, partition, leader epoch and offset."""


class Counting:
    """`before` and `after` are called around each entry that counts: with its partition, itself, and the time in ms."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.decided: dict[Decided, str | None] = {}
        """The requests that were decided; by their id, if the entry has one."""
        self.before: list[OnEntry] = []
        self.after: list[OnEntry] = []

    def record(self, message: Message, record: JournalRecord, outcomes: Sequence[Outcome]) -> None:
        """A record is in the journal. Raises Violation."""
        partition, at = message.partition(), message.timestamp()[1]
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            right = self._judge(partition, entry)
            if outcome is not right:
                raise Violation(f"{entry} is {right.value}, but was folded as {outcome.value}")
            if right is not Outcome.COUNTED:
                continue
            for listener in self.before:
                listener(partition, entry, at)
            self.apply(partition, entry, at)
            for name in {event.aggregate for event in entry.events}:
                self.versions[name] = self.versions.get(name, 0) + 1
            for listener in self.after:
                listener(partition, entry, at)

    def apply(self, partition: int, entry: JournalEntry, at: int) -> None:
        """An entry counts; between `before` and `after`. Raises Violation."""

    def _judge(self, partition: int, entry: JournalEntry) -> Outcome:
        source = None
        if entry.source is not None:
            source = (entry.source.topic, partition, entry.source.epoch, entry.source.offset)
            if source in self.decided:
                return Outcome.DUPLICATE
        if any(self.versions.get(name, 0) != version for name, version in entry.expect.items()):
            return Outcome.STALE
        if source is not None:
            self.decided[source] = entry.request
        return Outcome.COUNTED
