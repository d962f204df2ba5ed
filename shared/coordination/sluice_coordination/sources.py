"""Where tasks come from that no caller submits one by one: three kinds of sources, kept going by the leader.

The source's document names the tasks that it has at present, with their arguments. It is written first, on the version
that was seen; then tasks it names are put on the board, and tasks that it does not name are withdrawn. Whatever a
leader leaves half done the next one finishes, and what a former leader does late changes nothing.

Concurrency: a source belongs to the node it was given to, and is called only while that node leads.
"""

import logging
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from sluice_coordination.functions import Json
from sluice_coordination.task import Task
from sluice_coordination.task_board import NodeEntry, SourceState

log = logging.getLogger(__name__)

_KEY_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Situation:
    """What a source plans from.

    `nodes`: who takes part, and `settled_s` for how long that has been so. `on_board`: keys of the tasks that have a
    document, withdrawn ones too; as long as one has, it may still run.
    """

    nodes: tuple[NodeEntry, ...]
    settled_s: float
    on_board: frozenset[str]


class Source(Protocol):
    """What keeps a board supplied. All nodes of a topology are given the same sources."""

    @property
    def name(self) -> str:
        """What its documents are named by; a path segment of plain characters."""

    async def plan(self, state: SourceState, situation: Situation) -> SourceState:
        """Return which tasks there shall be from now on.

        What it raises is logged; then there are the same tasks as before, and it is called again later.
        """

    def ended(self, state: SourceState, key: str) -> SourceState:
        """Return what follows when a task has ended without an error."""


def _without(state: SourceState, key: str) -> SourceState:
    return msgspec.structs.replace(state, tasks={each: task for each, task in state.tasks.items() if each != key})


@dataclass(frozen=True, slots=True)
class SingleSource:
    """One task with one holder at a time, begun anew after an error and when its holder dies, until it returns."""

    name: str
    task: Task

    @property
    def key(self) -> str:
        """Another one for another task, so that a task with other arguments takes the place of the one before."""
        return f"main-{zlib.crc32(msgspec.json.encode(self.task, order='sorted')):08x}"

    async def plan(self, state: SourceState, situation: Situation) -> SourceState:
        """See Source. The position of a complete state is the key of the task that has returned."""
        if (state.complete and state.position == self.key) or list(state.tasks.values()) == [self.task]:
            return state
        # The one before has to have stopped.
        return SourceState(tasks={} if situation.on_board - {self.key} else {self.key: self.task})

    def ended(self, state: SourceState, key: str) -> SourceState:
        """See Source."""
        return msgspec.structs.replace(_without(state, key), position=key, complete=True)


class _Generation(msgspec.Struct, frozen=True):
    number: int = 0
    nodes: tuple[NodeEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionedSource:
    """Tasks that are cut once for the nodes that are there, and cut anew when a node joins or leaves.

    `partition(nodes)` returns the tasks. Before a new cut all tasks of the old one have stopped: their holders get
    notice by the withdrawal, and of those that do not answer the locks have run out. A change of the nodes counts when
    it has lasted `settle_s`. The source is complete when all tasks of one cut have returned.
    """

    name: str
    partition: Callable[[Sequence[NodeEntry]], Sequence[Task]]
    settle_s: float = 2.0

    async def plan(self, state: SourceState, situation: Situation) -> SourceState:
        """See Source."""
        cut = msgspec.convert(state.position or {}, _Generation)
        nodes = tuple(sorted(situation.nodes, key=lambda node: node.token))
        if state.complete or nodes == cut.nodes or situation.settled_s < self.settle_s or not nodes:
            return state
        if state.tasks:
            stopping = _Generation(cut.number)
            return SourceState(position=msgspec.to_builtins(stopping))
        if situation.on_board:
            return state
        cut = _Generation(cut.number + 1, nodes)
        tasks = {f"{cut.number}-{part}": task for part, task in enumerate(self.partition(nodes))}
        return SourceState(tasks, msgspec.to_builtins(cut), complete=not tasks)

    def ended(self, state: SourceState, key: str) -> SourceState:
        """See Source."""
        rest = _without(state, key)
        return msgspec.structs.replace(rest, complete=not rest.tasks)


class Window(msgspec.Struct, frozen=True):
    """The next piece of work, and the position behind it."""

    task: Task
    position: Json


class _WindowPosition(msgspec.Struct, frozen=True):
    next: int = 0
    position: Json = None


@dataclass(frozen=True, slots=True)
class WindowSource:
    """Tasks without end: windows of a stream, of time, of a file. The leader keeps up to `ahead` of them on the board.

    `next_window(position)` returns the window that begins there, None if there is none yet; at first the position is
    None. It is called once for each window that is run: the result is stored before any node acts on it. If it raises
    it is called again later, and the windows before that are run. A node that joins takes part with the next windows;
    those of nodes that are gone go to others.
    """

    name: str
    next_window: Callable[[Json], Awaitable[Window | None]]
    ahead: int = 16

    async def plan(self, state: SourceState, situation: Situation) -> SourceState:  # noqa: ARG002
        """See Source."""
        reached, tasks = msgspec.convert(state.position or {}, _WindowPosition), dict(state.tasks)
        try:
            while len(tasks) < self.ahead and (window := await self.next_window(reached.position)) is not None:
                tasks[f"{reached.next:0{_KEY_DIGITS}}"] = window.task
                reached = _WindowPosition(reached.next + 1, window.position)
        except Exception:
            if len(tasks) == len(state.tasks):
                raise
            log.exception("next_window failed", extra={"source": self.name})
        return SourceState(tasks, msgspec.to_builtins(reached))

    def position(self, state: SourceState) -> Json:
        """Return where the next window begins, None at first; windows that are on the board lie before that."""
        return msgspec.convert(state.position or {}, _WindowPosition).position

    def ended(self, state: SourceState, key: str) -> SourceState:
        """See Source."""
        return _without(state, key)
