"""The form of a workflow: steps that act on the data plane or on other keys, and what they note in the journal.

A step does only what the journal has decided for good, and may be carried out again or late: "already so" counts as
done, and segment names are never used for anything else. What a step needs of the state is taken out before its first
await, because the state changes in place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.workflow import WorkflowKind

T = TypeVar("T")
ToolsT = TypeVar("ToolsT")
"""What the steps of a service are given to work with."""
Record = Callable[[Reader, Context, Any, Any], Decision]


class Step(msgspec.Struct, Generic[ToolsT], frozen=True):
    """`carry_out` gets the tools and the aggregate's state; `record` notes in the journal what came of it.

    `record` gets a reader, a context, the state that the step began with, to take the names from, and the outcome.
    """

    name: str
    carry_out: Callable[[ToolsT, Any], Awaitable[Any]]
    record: Record | None = None


Workflows = Mapping[WorkflowKind, tuple[Step[ToolsT], ...]]
"""For each kind of workflow that a service runs its steps, in order."""


def plain(finish: Callable[[Reader, str, str], Decision]) -> Record:
    """A record that needs nothing but the names."""
    return lambda reader, _context, state, _outcome: finish(reader, state.scope, state.name)


def with_outcome(finish: Callable[[Reader, str, str, Any], Decision]) -> Record:
    """A record that says what the step found."""
    return lambda reader, _context, state, outcome: finish(reader, state.scope, state.name, outcome)


async def all_done(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Await all of them, side by side; then raise the first failure, if any."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [o for o in outcomes if not isinstance(o, BaseException)]
