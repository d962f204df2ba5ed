"""What the journal says of aggregates, and of the workflows that run on them."""

from collections.abc import Iterable
from typing import Any

from sluice.domain.registry import evolve
from sluice.domain.workflow import running
from sluice.engine.fold import Outcome
from support.kafka import Folded


def states_of(entries: Iterable[Folded]) -> dict[str, Any]:
    """The states of aggregates, by folding the entries anew."""
    states: dict[str, Any] = {}
    for folded in entries:
        if folded.outcome is Outcome.COUNTED:
            for event in folded.entry.events:
                states[event.aggregate] = evolve(states.get(event.aggregate), event)
    return states


def running_workflows(entries: Iterable[Folded]) -> list[str]:
    """Aggregates whose workflow has begun and not ended."""
    return [aggregate for aggregate, state in states_of(entries).items() if running(state) is not None]
