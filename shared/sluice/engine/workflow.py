"""What a workflow is: a long operation on one aggregate, begun and ended by events, whose state any process can read.

It stands in the aggregate's state: what it is doing, since when, and what it waits for. So the owner of the aggregate's
partition next goes on, and operators can see it.
"""

from typing import Any, Protocol

from sluice.engine.decision import Context, Decision, Reader


class Running(Protocol):
    """A workflow in an aggregate's state. `kind` is an enum whose value names it.

    `since` in epoch ms; `request` waits for the end. `retry_requests` counts how often another attempt was
    requested; `cancelled` requests the end.
    """

    kind: Any
    request: str | None
    since: int
    retry_requests: int
    cancelled: bool

    @property
    def id(self) -> str:
        """Which of all the workflows that its aggregate will ever have."""
        ...


class WorkflowRules(Protocol):
    """What the runner needs to know of the aggregates."""

    def key_of(self, aggregate: str) -> str:
        """The key that the aggregate belongs to."""
        ...

    def running(self, state: Any) -> Any:
        """The workflow (`Running`) that is changing an aggregate of this state, or None.

        It is read anew behind every await. From its begin to its end it has the same `id`, and no other one has that.
        """
        ...

    def is_cancelled(self, state: Any) -> bool:
        """Whether the workflow was cancelled, and is before its point of no return."""
        ...

    def cancel(self, reader: Reader, context: Context, state: Any) -> Decision:
        """How a workflow that was cancelled ends."""
        ...

    def step_failed(self, reader: Reader, aggregate: str, kind: Any, step: str, attempts: int, error: str) -> Decision:
        """Record for operators that a step is tried once more, or what it waits for."""
        ...
