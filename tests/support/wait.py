"""Wait for a condition, with a deadline. Tests themselves never sleep.

Concurrency: both functions may be used by any number of threads or tasks at a time; `eventually` blocks its thread,
`eventually_async` only its task.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")

SOON_S = 60.0
"""A deadline for what takes a moment, if the machine does not stand still."""
_SHORTEST_S, _LONGEST_S = 0.005, 0.1


class NotInTime(AssertionError):
    """The condition did not come true before the deadline."""


def eventually(predicate: Callable[[], T], deadline_s: float, message: str) -> T:
    """Return the first true answer of the predicate; raise NotInTime if there is none in time.

    An exception of the predicate counts as "not yet" and is shown if the time is up.
    """
    end = time.monotonic() + deadline_s
    pause, pause_s = threading.Event(), _SHORTEST_S
    while True:
        answer, error = _ask(predicate)
        if error is None and answer:
            return answer
        if time.monotonic() >= end:
            raise NotInTime(_text(message, deadline_s, answer, error)) from error
        pause.wait(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_S)


@overload
async def eventually_async(predicate: Callable[[], Coroutine[Any, Any, T]], deadline_s: float, message: str) -> T: ...
@overload
async def eventually_async(predicate: Callable[[], T | Awaitable[T]], deadline_s: float, message: str) -> T: ...
async def eventually_async(predicate: Callable[[], Any], deadline_s: float, message: str) -> Any:
    """Do the same in a coroutine; the predicate may be one too."""
    end = time.monotonic() + deadline_s
    pause_s = _SHORTEST_S
    while True:
        answer: Any = None
        error: Exception | None = None
        try:
            result = predicate()
            answer = await result if inspect.isawaitable(result) else result
        except Exception as problem:  # noqa: BLE001 - kept, and shown when the time is up
            error = problem
        if error is None and answer:
            return answer
        if time.monotonic() >= end:
            raise NotInTime(_text(message, deadline_s, answer, error)) from error
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_S)


def _ask(predicate: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return predicate(), None
    except Exception as error:  # noqa: BLE001 - kept, and shown when the time is up
        return None, error


def _text(message: str, deadline_s: float, answer: object, error: Exception | None) -> str:
    last = f"{type(error).__name__}: {error}" if error is not None else repr(answer)
    return f"not within {deadline_s:g} s: {message} (last answer: {last})"
