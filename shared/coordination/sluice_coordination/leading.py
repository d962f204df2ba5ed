"""What the leader of a topology does with each look: it clears the node list and the board, and keeps sources going.

All of it may be done twice, late, or by two leaders at once: every write is conditional on what was seen. That there is
one leader saves work, it is not what makes it safe.

Concurrency: runs under the leader's lock, and is cancelled when that is lost.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from sluice_coordination.document import Body
from sluice_coordination.errors import ConflictError, CoordinationError
from sluice_coordination.nodes import Nodes
from sluice_coordination.sources import Situation, Source
from sluice_coordination.task import Entry, new_body, restart_pause_s
from sluice_coordination.task_board import SourceState, TaskBoard, View

log = logging.getLogger(__name__)
T = TypeVar("T")

_AT_A_TIME = 8


class Leading:
    """The duties of the leader. Done tasks stay for `keep_done_looks` looks, for the nodes that wait for them."""

    def __init__(self, board: TaskBoard, nodes: Nodes, sources: Sequence[Source], keep_done_looks: int) -> None:
        self._board = board
        self._nodes = nodes
        self._sources = sources
        self._keep_done_looks = keep_done_looks
        self._looks: dict[str, int] = {}
        """By creation id, how many looks have shown a task done. Another one may have the same key later."""

    async def attend(self, view: View) -> None:
        """Do what the view requires. Raises StoreUnavailableError, StoreFailedError; the next view brings the rest."""
        await self._nodes.prune(view)
        await self._clear(view)
        for source in self._sources:
            try:
                await self._supply(source, view)
            except CoordinationError:
                raise
            except Exception:
                log.exception("a source was not supplied", extra={"source": source.name})

    async def _clear(self, view: View) -> None:
        """Remove submitted tasks that have been done for long enough for their submitters to have looked.

        Looks are counted and not seconds: while this node does not reach the store others may not reach it either.
        """
        done = [entry for entry in view.submitted.values() if entry.done]
        self._looks = {entry.creation_id: self._looks.get(entry.creation_id, 0) + 1 for entry in done}
        old = [entry for entry in done if self._looks[entry.creation_id] > self._keep_done_looks]
        await _each(old, lambda entry: self._board.remove(entry.id, entry.document))

    async def _supply(self, source: Source, view: View) -> None:
        parts = view.of_source(source.name)
        before = state = view.sources.get(source.name, SourceState())
        for key, entry in parts.items():
            if entry.done and key in state.tasks and (entry.outcome is None or entry.outcome.error is None):
                state = source.ended(state, key)
        try:
            state = await source.plan(state, self._situation(view, frozenset(parts)))
        except Exception:
            log.exception("a source failed", extra={"source": source.name})
        if state != before and not await self._note(source, view, state):
            return
        failed = [entry for key, entry in parts.items() if key in state.tasks and self._is_rested(entry)]
        await _each(failed, lambda entry: self._board.replace(entry, _begun_anew(entry)))
        missing = [(key, task) for key, task in state.tasks.items() if key not in parts]
        await _each(missing, lambda each: self._board.put_new(self._board.id("part", source.name, each[0]), each[1]))
        over = [entry for key, entry in parts.items() if key not in state.tasks]
        over = [entry for entry in over if entry.done or self._board.is_free(entry)]
        await _each(over, lambda entry: self._board.remove(entry.id, entry.document))

    def _situation(self, view: View, on_board: frozenset[str]) -> Situation:
        settled_s = self._board.leases.sightings.unchanged_s(self._board.id("nodes"))
        return Situation(view.nodes, settled_s, on_board)

    def _is_rested(self, entry: Entry) -> bool:
        """Whether it has failed, long enough ago to be begun anew."""
        if not entry.done or entry.outcome is None or entry.outcome.error is None:
            return False
        return self._board.leases.sightings.unchanged_s(entry.id) >= restart_pause_s(entry.failures)

    async def _note(self, source: Source, view: View, state: SourceState) -> bool:
        """Write the source's document; return False if another node has."""
        id = self._board.id("source", source.name)
        found = view.documents.get(id)
        try:
            body = msgspec.to_builtins(state)
            await self._board.leases.store.put(id, body, None if found is None else found.version)
        except ConflictError:
            return False
        return True


def _begun_anew(entry: Entry) -> Body:
    """Return the document of a task that has failed; what the task itself has noted in it stays."""
    kept = {name: value for name, value in entry.document.body.items() if name != "outcome"}
    return {**kept, **new_body(entry.task, entry.failures + 1)}


async def _each(items: Iterable[T], act: Callable[[T], Awaitable[object]]) -> None:
    """Act on each item, on some at a time; raise the first error when all of those have ended."""
    slots = asyncio.Semaphore(_AT_A_TIME)

    async def one(item: T) -> None:
        async with slots:
            await act(item)

    for ended in await asyncio.gather(*(one(item) for item in items), return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
