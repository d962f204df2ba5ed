"""What the submitter of a task holds in its hands until the task is done.

Concurrency: belongs to one event loop. Futures are settled by the looks of the node they were submitted at.
"""

import asyncio
import logging
from collections.abc import Generator

from sluice_coordination.errors import (
    CoordinationError,
    TaskCancelledError,
    TaskFailedError,
    TaskTimedOutError,
    TaskVanishedError,
)
from sluice_coordination.functions import Json
from sluice_coordination.task import Entry
from sluice_coordination.task_board import TaskBoard, View

log = logging.getLogger(__name__)


class TaskFuture:
    """The end of a task to come: awaiting it returns the function's result.

    It raises TaskFailedError, TaskTimedOutError, TaskCancelledError, or TaskVanishedError. To cancel the waiting does
    not cancel the task.
    """

    def __init__(self, board: TaskBoard, entry: Entry, timeout_at: float | None, *, is_shared: bool = False) -> None:
        self.id = entry.id
        self.creation_id = entry.creation_id
        self.is_shared = is_shared
        """Whether others may have submitted the task too, under the same key: the leader alone removes it."""
        self.submitted_at = board.leases.clock.now()
        self.timeout_at = timeout_at
        self._board = board
        self._future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        # A caller that submits and never awaits the result shall not get a warning about a forgotten error.
        self._future.add_done_callback(_seen)
        self.settle(entry)

    def done(self) -> bool:
        """Whether the task has ended, in one way or another."""
        return self._future.done()

    def failed(self) -> bool:
        """Whether it has ended without a result: failed, timed out, cancelled, or vanished."""
        return self.done() and self._future.exception() is not None

    def __await__(self) -> Generator[object, None, Json]:
        return asyncio.shield(self._future).__await__()

    async def cancel(self) -> bool:
        """Have the task stop, wherever it runs; return False if it had ended.

        The node that runs it may go on until it next looks at the board or renews its lock. Raises
        StoreUnavailableError; then it may be cancelled or not.
        """
        if self.done() or not await self._board.cancel(self.id, self.creation_id):
            return False
        self.fail(TaskCancelledError(self.id))
        return True

    def fail(self, error: CoordinationError) -> None:
        """Settle with an error, if it is not settled."""
        if not self.done():
            self._future.set_exception(error)

    def settle(self, entry: Entry) -> None:
        """Settle as the board says; nothing if the task is not done."""
        if self.done() or not entry.done:
            return
        outcome = entry.outcome
        if outcome is not None and outcome.cancelled:
            self.fail(TaskCancelledError(self.id))
        elif outcome is not None and outcome.error is not None:
            self.fail(TaskFailedError(f"{self.id}: {outcome.error}"))
        else:
            self._future.set_result(None if outcome is None else outcome.result)


class Futures:
    """The futures of one node that are not settled yet."""

    def __init__(self, board: TaskBoard) -> None:
        self._board = board
        self._waiting: list[TaskFuture] = []
        self._is_closed = False
        self._to_cancel: list[TaskFuture] = []

    def add(self, future: TaskFuture) -> None:
        """Settle this future too, from the next look on; at once if the node has ended."""
        if self._is_closed:
            _fail_ended(future)
        else:
            self._waiting.append(future)

    def tick(self) -> None:
        """Fail what was given too little time."""
        now = self._board.leases.clock.now()
        for future in self._waiting:
            if not future.done() and future.timeout_at is not None and now >= future.timeout_at:
                future.fail(TaskTimedOutError(future.id))
                self._to_cancel.append(future)
        self._waiting = [future for future in self._waiting if not future.done()]

    async def look(self, view: View) -> None:
        """Settle what the view shows done, and remove it from the board: at once, if it is this node's alone.

        Raises StoreUnavailableError.
        """
        while self._to_cancel:
            await self._board.cancel(self._to_cancel[0].id, self._to_cancel[0].creation_id)
            del self._to_cancel[0]
        for future in list(self._waiting):
            entry = view.submitted.get(future.id)
            if entry is None or entry.creation_id != future.creation_id:
                if future.submitted_at < view.requested_at:
                    future.fail(TaskVanishedError(future.id))
            elif entry.done:
                future.settle(entry)
                if not future.is_shared:
                    await self._board.remove(future.id, entry.document)
        self.tick()

    def close(self) -> None:
        """Fail all waiting futures: this node will not resolve them."""
        self._is_closed = True
        for future in self._waiting:
            _fail_ended(future)
        self._waiting.clear()


def _fail_ended(future: TaskFuture) -> None:
    future.fail(TaskVanishedError(f"{future.id}: the node has ended, the task goes on"))


def _seen(future: "asyncio.Future[Json]") -> None:
    if not future.cancelled():
        future.exception()
