"""What every kind of source gives to the process that runs it.

Concurrency: belongs to one event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from distributed_ingest.job import Job
from distributed_ingest.outlet import Outlet
from sluice_coordination import DocumentStore, Functions, Source, SourceState

Lag = dict[str, int | str]
"""What a task reports with its lock: `left`, so many of `unit` are not in the stream yet."""


def lag(left: int, unit: str) -> Lag:
    """Return the report of a task."""
    return {"left": left, "unit": unit}


@dataclass(frozen=True)
class Reach:
    """How far the whole job is, over all nodes. `unit` is what `done` and `total` count; no total: it has no end.

    `finished`: everything that was there when this process began is in the stream, but what `missed` names with the
    reason, which could not be read.
    """

    done: int
    total: int | None
    unit: str
    finished: bool
    missed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scene:
    """Where a feed works. `settle_s`: how long nodes must be the same before a source is dealt anew.

    `tell`: says to people what is no problem.
    """

    store: DocumentStore
    job: Job
    outlet: Outlet
    once: bool
    settle_s: float
    tell: Callable[[str], None]


class Feed(Protocol):
    """A source of one kind."""

    async def open(self) -> None:
        """Find out whether the source is there. Raises CommandError."""

    def register(self, functions: Functions) -> None:
        """Register what its tasks do."""

    def source(self) -> Source:
        """Return what keeps its tasks on the board."""

    async def reach(self, state: SourceState) -> Reach:
        """Return how far the job is; `state` is what the board says of its source. Raises CoordinationError."""

    async def close(self) -> None:
        """Let go of connections and threads."""
