"""Which service is at work, where several share a process: for what is said of it, such as the lines of its log.

It goes with the context of a task, to the tasks and callbacks that begin there; a thread has it from `as_this_service`.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple


class ServiceAtWork(NamedTuple):
    """A service beside the one that the process is named after."""

    name: str
    instance: str


_at_work: ContextVar[ServiceAtWork | None] = ContextVar("service_at_work", default=None)


def service_at_work() -> ServiceAtWork | None:
    """None: the one that the process is named after."""
    return _at_work.get()


def begin_service(name: str, instance: str) -> None:
    """From here on, in this context, that service is at work."""
    _at_work.set(ServiceAtWork(name, instance))


def as_this_service(run: Callable[..., Any]) -> Callable[..., Any]:
    """What a new thread, which has nothing of this context, is to run for the service that is at work here."""
    return partial(_run_as, _at_work.get(), run)


def _run_as(service: ServiceAtWork | None, run: Callable[..., Any], *given: Any, **named: Any) -> Any:
    _at_work.set(service)
    return run(*given, **named)
