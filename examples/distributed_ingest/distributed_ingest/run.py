"""The life of one process of a job: it takes part until a signal stops it or, with `--once`, until all is through.

To stop (SIGINT, SIGTERM) is to finish the batches that are being written, note how far they go, and hand the tasks to
the other nodes. A second signal ends the process at once.

Concurrency: one event loop.
"""

import asyncio
import dataclasses
import os
import re
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from distributed_ingest.display import Display
from distributed_ingest.feed import Feed, Reach, Scene
from distributed_ingest.job import Job, Settings, register
from distributed_ingest.outlet import Outlet
from distributed_ingest.records import KeyRule
from distributed_ingest.sink import Sink
from distributed_ingest.stores import opened
from distributed_ingest.summary import Summary
from distributed_ingest.tally import Tally, Totals
from sluice_coordination import (
    CoordinationError,
    Functions,
    LeaseSettings,
    Node,
    NodeSettings,
    SourceState,
    StoreUnavailableError,
)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MAX_STORE_TIMEOUT_S = 2.0
_MAX_RETRY_S = 0.5
_MAX_LOOK_S = 0.5
_MAX_SETTLE_S = 1.0


@dataclass(frozen=True)
class Timing:
    """What follows from how long locks last. `lease_s`: so long after a node has died its tasks go to others."""

    lease_s: float

    @property
    def margin_s(self) -> float:
        return self.lease_s / 5

    @property
    def store_timeout_s(self) -> float:
        return min(_MAX_STORE_TIMEOUT_S, self.margin_s)

    @property
    def retry_s(self) -> float:
        """About how long after a failed renewal the next one follows."""
        return min(_MAX_RETRY_S, self.lease_s / 30)

    @property
    def look_s(self) -> float:
        return min(_MAX_LOOK_S, self.lease_s / 20)

    @property
    def settle_s(self) -> float:
        """For how long the nodes must be the same before partitions are dealt anew."""
        return min(_MAX_SETTLE_S, self.lease_s / 4)

    def node(self, workers: int) -> NodeSettings:
        """Return the settings of a node."""
        lease = LeaseSettings(lease_s=self.lease_s, margin_s=self.margin_s, retry_s=self.retry_s)
        return NodeSettings(workers=workers, look_s=self.look_s, lease=lease)


@dataclass(frozen=True)
class Run:
    """One process. `sink` is opened for as long as it runs; `make_feed` makes what it reads from.

    `settings`: how it reads, for nodes that are given nothing but the job's name.

    `once_s`: with `--once`, for how long nothing may move before it gives up; else None.
    """

    job: Job
    settings: Settings
    store_url: str
    timing: Timing
    workers: int
    once_s: float | None
    display: Display
    sink: AbstractAsyncContextManager[Sink]
    make_feed: Callable[[Scene], Feed]

    def run(self) -> Summary:
        """Take part until the end. Raises CommandError."""
        with self.display:
            return asyncio.run(self._run())

    async def _run(self) -> Summary:
        began, tally, token = time.monotonic(), Tally(), node_name()
        stopping = _Stopping()
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(opened(self.store_url, self.timing.store_timeout_s))
            await register(store, self.job, self.settings)
            totals = Totals(store, self.job.totals)
            outlet = Outlet(await stack.enter_async_context(self.sink), KeyRule(self.job.definition.key), tally)
            scene = Scene(store, self.job, outlet, self.once_s is not None, self.timing.settle_s, self.display.say)
            feed = self.make_feed(scene)
            stack.push_async_callback(feed.close)
            await feed.open()
            functions = Functions()
            feed.register(functions)
            settings = self.timing.node(self.workers)
            node = Node(store, self.job.board, functions, settings=settings, sources=[feed.source()], token=token)
            with stopping.handled():
                self.display.say(f"job {self.job.name}, node {token}; Ctrl-C stops it and keeps the position")
                async with node, _alongside(totals.keep_telling(tally, max(1.0, self.timing.look_s))):
                    reach = await self._until_end(scene, node, feed, totals, stopping)
                if stopping.by:
                    self.display.say(f"stopped by {stopping.by}")
                try:
                    await totals.tell(tally)
                except CoordinationError as error:
                    tally.problem(f"the sum over all nodes lacks the last records of this one: {error}")
        missed = reach.missed if reach is not None else ()
        seconds, finished = time.monotonic() - began, reach is not None and not missed
        return Summary(self.job, token, seconds, tally, totals.known, finished, stopping.by, missed, outlet.ended)

    async def _until_end(
        self, scene: Scene, node: Node, feed: Feed, totals: Totals, stopping: "_Stopping"
    ) -> Reach | None:
        """Watch until stopped or the stream takes nothing any more (None); with `once` also until all that was there
        is through, or given up.
        """
        store, tally = scene.store, scene.outlet.tally
        source, nodes = node.board.id("source", feed.source().name), node.board.id("nodes")
        reach, known, moved_at = Reach(0, None, "", finished=False), totals.known, time.monotonic()
        while not await stopping.within(self.timing.look_s) and not scene.outlet.ended:
            if self.once_s is not None and time.monotonic() - moved_at >= self.once_s:
                far = "" if reach.total is None else f", with {reach.done:,} of {reach.total:,} {reach.unit} through"
                return dataclasses.replace(reach, missed=(f"nothing has moved for {self.once_s:g} s{far}",))
            before = reach, known
            try:
                found, listed = await store.get(source), await store.get(nodes)
                state = SourceState() if found is None else msgspec.convert(found.body, SourceState)
                reach, known = await feed.reach(state), totals.known
            except (StoreUnavailableError, OSError) as error:
                tally.problem(f"how far the job is cannot be seen: {error}")
                continue
            if (reach, known) != before:
                moved_at = time.monotonic()
            count = 0 if listed is None else len(listed.body.get("nodes", ()))
            busy = len(node.workers.running)
            self.display.show(reach, tally.total, totals.known, busy, self.workers, count)
            if self.once_s is not None and reach.finished:
                return reach
        return None


class _Stopping:
    """Hears signals. `by`: which one has come."""

    def __init__(self) -> None:
        self.by = ""
        self._come = asyncio.Event()

    @contextmanager
    def handled(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self._stop, each)
        try:
            yield
        finally:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)

    async def within(self, seconds: float) -> bool:
        """Return whether a signal has come, or comes in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._come.wait()
        except TimeoutError:
            return False
        return True

    def _stop(self, which: signal.Signals) -> None:
        self.by = which.name
        self._come.set()
        for each in _SIGNALS:
            # The next one is meant: it ends the process, whatever that waits for.
            asyncio.get_running_loop().remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)


def node_name() -> str:
    """Return a name that tells people where the process is, and that no other has."""
    host = re.sub(r"[^A-Za-z0-9._~-]", "-", socket.gethostname())[:100] or "host"
    return f"{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


@asynccontextmanager
async def _alongside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have work go on while the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
