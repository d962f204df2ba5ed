"""All aggregates together: which function evolves each event, which one decides each command."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from sluice.domain import cluster, group, scope, table, workflow
from sluice.domain.commands import Command, Create, CreateReserved, JoinCreation, NameKind, ResumeCreation
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.events import Event
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream import decisions, reports, retention, traffic, watermark
from sluice.domain.stream import evolve as stream_evolve
from sluice.domain.transaction import evolve as transaction_evolve
from sluice.domain.transaction.index import fold_index

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    **scope.EVOLVE,
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

_CREATED_BY: dict[NameKind, ModuleType] = {
    NameKind.STREAM: stream_decide,
    NameKind.READER_GROUP: group,
    NameKind.TABLE: table,
}


def decide_create_reserved(reader: Reader, command: CreateReserved, context: Context) -> Decision:
    decision: Decision = _CREATED_BY[command.create.kind].decide_create(reader, command, context)
    return decision


def decide_join(reader: Reader, command: JoinCreation, context: Context) -> Decision:
    decision: Decision = _CREATED_BY[command.create.kind].decide_join(reader, command, context)
    return decision


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    **scope.DECIDE,
    **stream_decide.DECIDE,
    **reports.DECIDE,
    **decisions.DECIDE,
    **group.DECIDE,
    **table.DECIDE,
    **workflow.DECIDE,
    CreateReserved: decide_create_reserved,
    JoinCreation: decide_join,
}


def decide(reader: Reader, command: Command, context: Context) -> Decision:
    """What a command comes to. Raises KeyError for one that is decided elsewhere.

    One that has come again comes to nothing: it was decided, and what has its name by now may be another thing. But
    a creation may not have been passed on yet; those see to that themselves.
    """
    choose = DECIDE[type(command)]
    return (
        Decision()
        if context.again and not isinstance(command, Create | JoinCreation | ResumeCreation)
        else choose(reader, command, context)
    )


def evolve(state: Any, event: Event) -> Any:
    """The state after the event. The given state belongs to this call and may be changed in place."""
    return EVOLVE[type(event)](state, event)


def index(indexes: dict[str, Any], event: Event) -> Iterable[str]:
    """Bring the indexes up to date with the event; names the aggregates that nobody needs any more."""
    return fold_index(indexes, event)


def cancel(reader: Reader, context: Context, state: Any) -> Decision:
    """How a workflow that was cancelled ends."""
    for module in (stream_decide, group, table):
        decision: Decision | None = module.cancel(reader, context, state)
        if decision is not None:
            return decision
    return Decision()
