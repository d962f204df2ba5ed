"""The form of a workflow: steps that act on the outside or on other keys, and what they record in the journal.

A step does only what the journal has decided for good, and may be carried out twice or late: "already so" counts as
done. What a step needs of the state is taken out before its first await, because the state changes in place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from sluice.engine.decision import Context, Decision, Reader

T = TypeVar("T")
StepContextT = TypeVar("StepContextT")
"""What the steps of a service are given to work with."""
InputRecord = Callable[[Reader, Context, Any, Any], Decision]
"""Decides what a step records: of a reader, a context, the state that the step began with, and the outcome.

It decides only while the step's workflow runs, and no one has cancelled it in time: the runner sees to both.
"""


AT_ONCE = 1_000
"""Calls side by side: what a connection to a segment store has no room for it refuses, in each attempt the same."""


class Step(msgspec.Struct, Generic[StepContextT], frozen=True):
    """`carry_out` gets the step context and the aggregate's state; `record` decides what is recorded of it.

    `is_limited` False: the step only waits for the journal, so it takes no place of those that act on the outside.
    """

    name: str
    carry_out: Callable[[StepContextT, Any], Awaitable[Any]]
    record: InputRecord | None = None
    is_limited: bool = True


Workflows = Mapping[Any, tuple[Step[StepContextT], ...]]
"""For each kind of workflow that a service runs its steps, in order."""


def plain(finish: Callable[[Reader, Any], Decision]) -> InputRecord:
    """A record that needs nothing but the id that the state has."""
    return lambda reader, _context, state, _outcome: finish(reader, state.id)


def with_outcome(finish: Callable[[Reader, Any, Any], Decision]) -> InputRecord:
    """A record that says what the step found."""
    return lambda reader, _context, state, outcome: finish(reader, state.id, outcome)


async def all_done(calls: Iterable[Awaitable[T]], at_once: int = AT_ONCE) -> list[T]:
    """Await all of them, so many side by side; raise the first failure once those beside it have ended.

    What has not begun by then is not taken from `calls`.
    """
    done, left = list[T](), iter(calls)
    while pending := list(islice(left, at_once)):
        done += await _side_by_side(pending)
    return done


async def _side_by_side(pending: list[Awaitable[T]]) -> list[T]:
    if len(pending) == 1:
        # Nothing runs beside it, so it needs no task.
        return [await pending[0]]
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [o for o in outcomes if not isinstance(o, BaseException)]
