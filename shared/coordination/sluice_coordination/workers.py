"""The workers of a node: each runs one task at a time, under the task's lock.

Concurrency: belongs to one event loop; each running task is an asyncio task.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from sluice_coordination.document import MAX_BODY_BYTES
from sluice_coordination.errors import LockLostError
from sluice_coordination.functions import Functions, Json, TaskContext
from sluice_coordination.held_lock import HeldLock
from sluice_coordination.shielded import shielded, was_cancelled
from sluice_coordination.task import Entry, Outcome, done_fields
from sluice_coordination.task_board import View

log = logging.getLogger(__name__)

_MAX_ERROR = 2_000


class Workers:
    """So many workers, and what they run."""

    def __init__(self, functions: Functions, count: int) -> None:
        self.count = count
        self.functions = functions
        self._running: dict[str, tuple[HeldLock, asyncio.Task[None]]] = {}
        self._reserved = 0
        self._changed = asyncio.Event()

    @property
    def running(self) -> frozenset[str]:
        """The ids of the tasks that run here."""
        return frozenset(self._running)

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return self.count - len(self._running) - self._reserved

    async def until_free(self) -> None:
        """Return when a worker has nothing to do."""
        while not self.free:
            changed = self._changed
            await changed.wait()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep a worker free for what may be started in the block."""
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1
            self._notify()

    def start(self, entry: Entry, held_lock: HeldLock) -> None:
        """Run a task whose lock was taken; a worker must be free, or reserved for it."""
        work = asyncio.get_running_loop().create_task(self._run(entry, held_lock), name=f"task {entry.id}")
        self._running[entry.id] = (held_lock, work)
        work.add_done_callback(lambda ended: self._ended(entry.id, ended))

    def withdraw(self, view: View) -> None:
        """Stop tasks that are not to be done any more, or whose lock the view shows in other hands."""
        for id, (held_lock, work) in self._running.items():
            taken_before = held_lock.began_at < view.requested_at
            if taken_before and not (view.is_current(id) and view.holder(id) == held_lock.holder):
                # Again with each look, for a function may have swallowed it; the lock is given back all the same.
                log.info("task withdrawn", extra={"task": id})
                work.cancel()

    async def stop(self) -> None:
        """Stop all tasks and let others have them."""
        works = [work for _, work in self._running.values()]
        for work in works:
            work.cancel()
        if works:
            await asyncio.wait(works)

    async def _run(self, entry: Entry, held_lock: HeldLock) -> None:
        try:
            async with held_lock.kept():
                outcome = await self._call(entry, held_lock)
        except LockLostError as error:
            log.warning("task lost", extra={"task": entry.id, "error": str(error)})
            await shielded(held_lock.release)
        except asyncio.CancelledError:
            await shielded(held_lock.release)
            raise
        else:
            # What the task has come to is not dropped because the node stops meanwhile.
            await shielded(lambda: _end(held_lock, outcome))

    async def _call(self, entry: Entry, held_lock: HeldLock) -> Outcome:
        function = self.functions.find(entry.task.function)
        try:
            result = await function(TaskContext(entry.id, held_lock), **entry.task.arguments)
            return Outcome(result=_checked(result))
        except LockLostError:
            raise
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            return _failed(entry.id, error)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the task has failed
            return _failed(entry.id, error)

    def _ended(self, id: str, work: "asyncio.Task[None]") -> None:
        del self._running[id]
        self._notify()
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("a worker failed", exc_info=error, extra={"task": id})

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _failed(id: str, error: BaseException) -> Outcome:
    log.error("task failed", exc_info=error, extra={"task": id})
    return Outcome(error=f"{type(error).__name__}: {error}"[:_MAX_ERROR])


async def _end(held_lock: HeldLock, outcome: Outcome) -> None:
    """Give the lock back with what the task has come to; with less, if the task's document has no room for that."""
    try:
        await held_lock.release(done_fields(outcome, held_lock.held_s))
    except (TypeError, ValueError) as error:
        await held_lock.release(done_fields(_failed(held_lock.id, error), held_lock.held_s))


def _checked(result: Json) -> Json:
    """Return the result; raise TypeError if it is not JSON, ValueError if it is too large for the task's document."""
    size = len(msgspec.json.encode(result))
    if size > MAX_BODY_BYTES // 2:
        raise ValueError(f"the result has {size} bytes, more than a document takes")
    return result
