"""How workflows get on, in one word, as far as it is recorded."""

from enum import StrEnum

from sluice.domain.workflow import Workflow


class Progress(StrEnum):
    """How a workflow gets on: its step failed and is tried again; waits for other work; or runs. Or it has not begun,
    because other work on its aggregate comes first.
    """

    FAILING = "failing"
    WAITING = "waiting"
    RUNNING = "running"
    QUEUED = "queued"


def progress_of(workflow: Workflow | None) -> Progress:
    """As far as it is recorded; None is one that is queued."""
    if workflow is None:
        return Progress.QUEUED
    if workflow.attempts:
        return Progress.FAILING
    return Progress.WAITING if workflow.last_error else Progress.RUNNING
