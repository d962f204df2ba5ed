"""What the journal says of the workflows that run."""

from collections.abc import Iterable
from typing import Any

from sluice.domain.registry import evolve
from sluice.domain.workflow import running
from sluice.engine.fold import Outcome
from support.kafka import Folded


def running_workflows(entries: Iterable[Folded]) -> list[str]:
    """Aggregates whose workflow has begun and not ended, by folding the entries anew."""
    states: dict[str, Any] = {}
    for folded in entries:
        if folded.outcome is Outcome.COUNTED:
            for event in folded.entry.events:
                states[event.aggregate] = evolve(states.get(event.aggregate), event)
    return [aggregate for aggregate, state in states.items() if running(state) is not None]
