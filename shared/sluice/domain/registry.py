"""All aggregates together: which function evolves each event, which one decides each command, what is projected."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain import listings, scope_deletion, workflow
from sluice.domain.cluster import decide as cluster_decide
from sluice.domain.cluster import evolve as cluster_evolve
from sluice.domain.commands import Command
from sluice.domain.decision import Context, Decide, Decision, Reader
from sluice.domain.events import Event
from sluice.domain.reader_group import decide as group_decide
from sluice.domain.reader_group import evolve as group_evolve
from sluice.domain.restoring import evolve as restoring_evolve
from sluice.domain.restoring.events import AggregateRestored
from sluice.domain.scope import decide as scope_decide
from sluice.domain.scope import evolve as scope_evolve
from sluice.domain.scope import fences
from sluice.domain.scope import index as scope_index
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream import decisions, reports, restore, retention, traffic, watermark
from sluice.domain.stream import evolve as stream_evolve
from sluice.domain.stream.events import StreamDeleted
from sluice.domain.table import decide as table_decide
from sluice.domain.table import evolve as table_evolve
from sluice.domain.transaction import decide as transaction_decide
from sluice.domain.transaction import evolve as transaction_evolve
from sluice.domain.transaction import index as transaction_index

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    **scope_evolve.EVOLVE,
    **fences.EVOLVE,
    **stream_evolve.EVOLVE,
    **reports.EVOLVE,
    **watermark.EVOLVE,
    **traffic.EVOLVE,
    **retention.EVOLVE,
    **decisions.EVOLVE,
    **group_evolve.EVOLVE,
    **table_evolve.EVOLVE,
    **cluster_evolve.EVOLVE,
    **workflow.EVOLVE,
    **transaction_evolve.EVOLVE,
    **restore.EVOLVE,
    **restoring_evolve.EVOLVE,
}


def _stream_deleted(projections: dict[str, Any], event: StreamDeleted, offset: int) -> None:
    listings.PROJECT[StreamDeleted](projections, event, offset)
    transaction_index.record_stream_deleted(projections, event.stream_id.transactions)


PROJECT: dict[type, Callable[[dict[str, Any], Any, int], Iterable[str] | None]] = {
    **scope_index.PROJECT,
    **listings.PROJECT,
    **transaction_index.PROJECT,
    StreamDeleted: _stream_deleted,
}
"""What an event does to the projections, given the offset of its record, too; most do nothing there.

Only what is restored is projected by its state. Returns the names of the aggregates of no more use, if there are any.
"""

DECIDE: dict[type, Decide] = {
    **scope_decide.DECIDE,
    **scope_deletion.DECIDE,
    **stream_decide.DECIDE,
    **reports.DECIDE,
    **decisions.DECIDE,
    **group_decide.DECIDE,
    **table_decide.DECIDE,
    **cluster_decide.DECIDE,
    **workflow.DECIDE,
    **transaction_decide.decisions(transaction_decide.Limits()),
}
"""All commands but CheckLease, a query that is passed on. A service with other limits decides transactions by those."""


def decide(reader: Reader, command: Command, context: Context) -> Decision:
    """What a command comes to."""
    return DECIDE[type(command)](reader, command, context)


def evolve(state: Any, event: Event) -> Any:
    """The state after the event. The given state belongs to this call and may be changed in place."""
    return EVOLVE[type(event)](state, event)


def project(projections: dict[str, Any], event: Event, state: Any, offset: int) -> Iterable[str]:
    """Bring the projections up to date with an event of the record at `offset`; names the aggregates of no more use.

    `state` is what the event has made of its aggregate.
    """
    projected = PROJECT.get(type(event))
    if projected is not None:
        return projected(projections, event, offset) or ()
    if isinstance(event, AggregateRestored):
        restoring_evolve.project(projections, event.aggregate, state, offset)
    return ()


def cancel(reader: Reader, context: Context, state: Any) -> Decision:
    """How a workflow that was cancelled ends."""
    for module in (stream_decide, group_decide, table_decide, scope_deletion):
        decision: Decision | None = module.cancel(reader, context, state)
        if decision is not None:
            return decision
    return Decision()
