"""What workers apply to events.

A function is given an event's bytes and returns a result, or None if there is none. It must be stateless: the same
event, processed again by another worker, must give the same result. It is called in a thread, so it may take its time:
heartbeats go on. Another function is named with `--function module:name`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from at_least_once.events import Event


class Result(NamedTuple):
    """What becomes of an event: the routing key and the bytes of another."""

    key: str
    data: bytes


Function = Callable[[bytes], Result | None]


class NoSuchFunction(Exception):
    """There is no function of this name to be imported."""


def upper_case(data: bytes) -> Result:
    """The event with its text in capitals, and a checksum of that. Raises BadEvent."""
    event = Event.decode(data)
    result = Event.of(event.source, event.sequence, event.key, event.text.upper())
    return Result(event.key, result.encode())


def load(name: str) -> Function:
    """The function `module:name`. Raises NoSuchFunction."""
    module, _, attribute = name.partition(":")
    try:
        function: Function = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise NoSuchFunction(f"{name}: {error}") from error
    return function
