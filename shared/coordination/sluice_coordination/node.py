"""One process of a topology: it looks at the board, takes tasks, is one of the candidates for leader.

Everything follows from looks: a look brings all documents of the topology in one request, settles futures, shows which
locks have run out, and gives the candidates that free workers take tasks from until the next look, each one by one with
a pause of random length between two. A node begins with its share of them, which follows from its position in
the node list and the numbers of workers (`shares`); what others leave lying for two looks it takes too. So tasks
spread by numbers of workers without an assignment, and a list that is wrong costs two looks.

Concurrency: belongs to one event loop. Functions must not block it: nothing renews locks meanwhile.
"""

import asyncio
import logging
import math
import random as chance
import re
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from sluice_coordination.clock import SYSTEM_CLOCK, Clock, sleep_until
from sluice_coordination.errors import CoordinationError, LockLostError, StoreUnavailableError
from sluice_coordination.functions import Functions, Json
from sluice_coordination.futures import Futures, TaskFuture
from sluice_coordination.held_lock import HeldLock, Leases
from sluice_coordination.leading import Leading
from sluice_coordination.lease import LeaseSettings
from sluice_coordination.lock import Leader, Lock
from sluice_coordination.nodes import Nodes
from sluice_coordination.shares import shares
from sluice_coordination.sources import Source
from sluice_coordination.store import DocumentStore
from sluice_coordination.task import Entry, Task
from sluice_coordination.task_board import NodeEntry, TaskBoard, View
from sluice_coordination.workers import Workers

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9._~-]+")
_PATIENCE_LOOKS = 2.0
_SUBMIT_TIMES = 3


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How a node works.

    `workers`: how many tasks it runs at a time; 0 for one that only submits. `leads`: whether it may be leader.
    `look_s`: about how often it looks at the board. `pause_s`: about how long it waits between two tasks it takes.
    `keep_done_s`: about how long done tasks stay on the board for those who submitted them, counted in looks; four or
    more. `max_tasks`: how many submitted tasks the board may hold.
    """

    workers: int = 4
    leads: bool = True
    look_s: float = 1.0
    pause_s: float = 0.02
    keep_done_s: float = 30.0
    max_tasks: int = 2_000
    lease: LeaseSettings = field(default_factory=LeaseSettings)

    def __post_init__(self) -> None:
        if self.workers < 0 or self.look_s <= 0 or self.pause_s < 0 or self.keep_done_s < 4 * self.look_s:
            raise ValueError(f"not settings of a node: {self}")


class Node:
    """A member of a topology; as a context it takes part inside, and hands its tasks to others at the end.

    Nodes of a topology have the same `topology`, an id in the same store, and should have the same functions and
    sources. `token` names this one; no two that run may have the same.
    """

    def __init__(
        self,
        store: DocumentStore,
        topology: str,
        functions: Functions,
        *,
        settings: NodeSettings | None = None,
        sources: Sequence[Source] = (),
        token: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        random: chance.Random | None = None,
    ) -> None:
        self.settings = settings or NodeSettings()
        self.me = NodeEntry(token or uuid.uuid4().hex, self.settings.workers)
        _check_names([self.me.token, *(source.name for source in sources)])
        self.leases = Leases(store, self.settings.lease, clock, self.me.token)
        self.board = TaskBoard(self.leases, topology, self.settings.max_tasks)
        self.leader = Leader(self.leases, self.board.id("leader"))
        self.workers = Workers(functions, self.settings.workers)
        self._nodes = Nodes(self.board)
        keep_looks = math.ceil(self.settings.keep_done_s / self.settings.look_s)
        self._leading = Leading(self.board, self._nodes, sources, keep_looks)
        self._futures = Futures(self.board)
        self._clock = clock
        self._random = random or chance.Random()
        self._view = View(topology, {}, 0.0)
        self._viewed = asyncio.Event()
        self._stack = AsyncExitStack()

    # --- taking part

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self._futures.close)
            stack.push_async_callback(self._leave)
            stack.push_async_callback(self.workers.stop)
            works = {"life": self._live(), "looks": self._look_and_take()}
            if self.settings.leads:
                works["campaign"] = self.leader.campaign(self._lead)
            for name, work in works.items():
                task = asyncio.get_running_loop().create_task(work, name=f"{name} of node {self.me.token}")
                stack.push_async_callback(_end, task)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # --- tasks

    async def submit(
        self,
        function: str,
        arguments: dict[str, Json] | None = None,
        *,
        timeout_s: float | None = None,
        key: str | None = None,
    ) -> TaskFuture:
        """Put a task on the board, and return its end to come.

        With a `key` the task of that key that stands there already counts instead, also when it is done: the leader
        removes it about `keep_done_s` after its end. After `timeout_s` the future fails and the task is cancelled.
        Raises TaskBoardFullError, StoreUnavailableError (it may be on the board), StoreFailedError; ValueError,
        TypeError for arguments that are not JSON.
        """
        task, own_key = Task(function, arguments or {}), key or uuid.uuid4().hex
        timeout_at = None if timeout_s is None else self._clock.now() + timeout_s
        for attempt in range(_SUBMIT_TIMES):
            try:
                entry = await self.board.submit(own_key, task)
                break
            except StoreUnavailableError:
                # To put it once more does no harm: it is there once at most.
                if attempt == _SUBMIT_TIMES - 1:
                    raise
        future = TaskFuture(self.board, entry, timeout_at, is_shared=key is not None)
        self._futures.add(future)
        return future

    # --- from start to stop

    async def _live(self) -> None:
        """Hold the lock that shows to others that this node runs."""
        lock = Lock(self.leases, self.board.id("node", self.me.token))
        while True:
            try:
                async with lock.held():
                    await asyncio.Event().wait()
            except LockLostError as error:
                log.warning("this node's own lock is lost", extra={"error": str(error)})
            except CoordinationError as error:
                log.warning("this node's own lock failed", extra={"error": str(error)})
                await self._sleep(self.settings.look_s)

    async def _lead(self, held_lock: HeldLock) -> None:
        """Attend to each view that this node gets, as long as it leads."""
        while True:
            await self._viewed.wait()
            held_lock.check()
            try:
                await self._leading.attend(self._view)
            except StoreUnavailableError as error:
                log.warning("the leader did not get through", extra={"error": str(error)})

    async def _look_and_take(self) -> None:
        while True:
            next_at = self._clock.now() + self.settings.look_s * self._random.uniform(0.5, 1.5)
            self._futures.tick()
            try:
                view = await self.board.look()
                self._show(view)
                self.workers.withdraw(view)
                if self.me.workers:
                    await self._nodes.join(self.me, view)
                await self._futures.look(view)
                await self._take(view, next_at)
            except CoordinationError as error:
                log.warning("the board was not reached", extra={"error": str(error)})
            except Exception:
                log.exception("looking at the board failed")
            await sleep_until(self._clock, next_at)

    def _show(self, view: View) -> None:
        self._view = view
        self._viewed.set()
        self._viewed = asyncio.Event()

    async def _take(self, view: View, until: float) -> None:
        """Have free workers take tasks: the node's share first, then what is left over.

        Each worker takes for itself, so that the pace of a node goes by its workers however slow the store is.
        """
        free = [entry for entry in view.outstanding() if self._can_take(entry)]
        own, others = shares(view.nodes, self.me, len(free), seed=zlib.crc32(free[0].id.encode()) if free else 0)
        candidates = iter([free[n] for n in own] + [free[n] for n in others if self._is_left_over(free[n])])
        picking = [self._pick(candidates, until) for _ in range(min(self.settings.workers, len(free)))]
        for ended in await asyncio.gather(*picking, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended

    async def _pick(self, candidates: Iterator[Entry], until: float) -> None:
        """Take one task after the other, with a pause of random length between two."""
        while await self._worker_is_free(until):
            entry = next((each for each in candidates if self._can_take(each)), None)
            if entry is None:
                return
            with self.workers.reserved():
                if (held_lock := await self.board.take(entry)) is not None:
                    self.workers.start(entry, held_lock)
            await self._sleep(self.settings.pause_s * self._random.uniform(0.0, 2.0))

    def _can_take(self, entry: Entry) -> bool:
        return (
            entry.id not in self.workers.running
            and entry.task.function in self.workers.functions
            and self.board.is_free(entry)
        )

    async def _worker_is_free(self, until: float) -> bool:
        """Wait until a worker has nothing to do; return False if that time comes first."""
        try:
            async with asyncio.timeout_at(self._clock.loop_time(until)):
                await self.workers.until_free()
        except TimeoutError:
            return False
        return self._clock.now() < until

    def _is_left_over(self, entry: Entry) -> bool:
        """Whether the task has been free for so long that whose share it is does not take it."""
        return self.leases.sightings.unchanged_s(entry.id) >= _PATIENCE_LOOKS * self.settings.look_s

    async def _sleep(self, seconds: float) -> None:
        await sleep_until(self._clock, self._clock.now() + seconds)

    async def _leave(self) -> None:
        try:
            await self._nodes.leave(self.me.token)
        except CoordinationError as error:
            log.warning("left without a word", extra={"error": str(error)})


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a node and a source are named by letters, digits and ._~-, not {name!r}")
    if len(set(names[1:])) < len(names) - 1:
        raise ValueError("two sources have the same name")


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a part of the node failed", exc_info=error)
