"""The functions that tasks name. A document says which to call and with what; what it does is only ever code of ours.

Concurrency: registered before anything runs, only read after.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sluice_coordination.document import Version
from sluice_coordination.errors import UnknownFunctionError
from sluice_coordination.held_lock import HeldLock

Json = Any
"""What JSON can say: None, bool, int, float, str, lists of it, and objects of it by str."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a running task knows about itself. `task` is its document's id."""

    task: str
    held_lock: HeldLock

    @property
    def fence(self) -> Version:
        """To be handed to resources that refuse late callers."""
        return self.held_lock.fence

    @property
    def left_s(self) -> float:
        """For how long the task may go on as it stands, in seconds: the deadline for whatever it calls."""
        return self.held_lock.left_s

    def check(self) -> None:
        """Raise LockLostError if the task must not go on; before each effect on the outside."""
        self.held_lock.check()


TaskFunction = Callable[..., Awaitable[Json]]
"""Called with a TaskContext and the task's arguments by name; may be called again for the same task."""


class Functions:
    """Functions by name. A process takes only tasks whose function it has."""

    def __init__(self) -> None:
        self._functions: dict[str, TaskFunction] = {}

    def register(self, name: str) -> Callable[[TaskFunction], TaskFunction]:
        """Decorate a function that tasks may name. Raises ValueError if the name is taken."""

        def keep(function: TaskFunction) -> TaskFunction:
            if name in self._functions:
                raise ValueError(f"a function is registered as {name!r} already")
            self._functions[name] = function
            return function

        return keep

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def find(self, name: str) -> TaskFunction:
        """Return the function; raise UnknownFunctionError."""
        try:
            return self._functions[name]
        except KeyError:
            raise UnknownFunctionError(name) from None
