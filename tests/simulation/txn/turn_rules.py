"""Invariants of turns: what waits for a stream, a workflow or commits, lets at most two of the others go first.

Counted only as long as nothing fails: who waits while a process is down has no turn.
"""

from typing import Any

from simulation.txn.plant import Plant
from simulation.violation import Violation

from sluice.domain.model import JournalEntry
from sluice.domain.stream.commands import StreamCommand
from sluice.domain.stream.events import (
    StreamDeleted,
    StreamScaleStarted,
    StreamSealStarted,
    StreamTruncationStarted,
    StreamUpdateStarted,
    WorkflowQueued,
)
from sluice.domain.transaction.events import CommitBatchStarted, TransactionCommitting

MAX_PASSED = 2
_WORKFLOWS = (
    StreamScaleStarted,
    StreamUpdateStarted,
    StreamTruncationStarted,
    StreamSealStarted,
)


class TurnRules:
    """`faulty` suspends the rules."""

    def __init__(self, plant: Plant) -> None:
        self.faulty = False
        self._plant = plant
        self._batches: dict[tuple[str, str], int] = {}
        self._workflows: dict[tuple[str, str], int] = {}
        plant.auditor.after.append(self._judge)

    def _judge(self, _partition: int, entry: JournalEntry, _at: int) -> None:
        if self.faulty:
            self._batches.clear()
            self._workflows.clear()
            return
        command = self._plant.auditor.commands.get(entry.request or "")
        if entry.reply is not None and isinstance(command, StreamCommand):
            # Refused, or done at once: it waits no more.
            self._batches.pop((command.scope, command.stream), None)
        for event in entry.events:
            self._count(event, (getattr(event, "scope", ""), getattr(event, "stream", "")))
        for key, passed in self._batches.items():
            if passed > MAX_PASSED:
                raise Violation(f"{key}: a workflow waits behind {passed} batches")
        for key, passed in self._workflows.items():
            if passed > MAX_PASSED:
                raise Violation(f"{key}: commits wait behind {passed} workflows")

    def _count(self, event: Any, key: tuple[str, str]) -> None:
        if isinstance(event, WorkflowQueued):
            self._batches.setdefault(key, 0)
        elif isinstance(event, _WORKFLOWS):
            self._batches.pop(key, None)
            if key in self._workflows:
                self._workflows[key] += 1
        elif isinstance(event, CommitBatchStarted):
            self._workflows.pop(key, None)
            if key in self._batches:
                self._batches[key] += 1
        elif isinstance(event, TransactionCommitting):
            self._workflows.setdefault(key, 0)
        elif isinstance(event, StreamDeleted):
            self._batches.pop(key, None)
