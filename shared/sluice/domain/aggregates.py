"""All aggregates together: which function evolves each event, which one decides each command."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain import cluster, fences, group, listings, scope, table, workflow
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.events import Event
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream import decisions, reports, retention, traffic, watermark
from sluice.domain.stream import evolve as stream_evolve
from sluice.domain.transaction import evolve as transaction_evolve
from sluice.domain.transaction.index import fold_index

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    **scope.EVOLVE,
    **fences.EVOLVE,
    **stream_evolve.EVOLVE,
    **reports.EVOLVE,
    **watermark.EVOLVE,
    **traffic.EVOLVE,
    **retention.EVOLVE,
    **decisions.EVOLVE,
    **group.EVOLVE,
    **table.EVOLVE,
    **cluster.EVOLVE,
    **workflow.EVOLVE,
    **transaction_evolve.EVOLVE,
}

DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    **scope.DECIDE,
    **stream_decide.DECIDE,
    **reports.DECIDE,
    **decisions.DECIDE,
    **group.DECIDE,
    **table.DECIDE,
    **workflow.DECIDE,
}


def decide(reader: Reader, command: Command, context: Context) -> Decision:
    """What a command comes to. Raises KeyError for one that is decided elsewhere."""
    return DECIDE[type(command)](reader, command, context)


def evolve(state: Any, event: Event) -> Any:
    """The state after the event. The given state belongs to this call and may be changed in place."""
    return EVOLVE[type(event)](state, event)


def index(indexes: dict[str, Any], event: Event, offset: int) -> Iterable[str]:
    """Bring the indexes up to date with an event of the record at `offset`; names the aggregates of no more use."""
    project = listings.PROJECT.get(type(event))
    if project is None:
        return fold_index(indexes, event)
    project(indexes, event, offset)
    return ()


def cancel(reader: Reader, context: Context, state: Any) -> Decision:
    """How a workflow that was cancelled ends."""
    for module in (stream_decide, group, table, scope):
        decision: Decision | None = module.cancel(reader, context, state)
        if decision is not None:
            return decision
    return Decision()
