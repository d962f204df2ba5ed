"""A cluster in memory whose streams can be scaled, and workers on it, all in one process."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from at_least_once.events import Event
from at_least_once.functions import Function, upper_case
from at_least_once.output import Output, StreamOutput
from at_least_once.settings import AppSettings
from at_least_once.streams import ensure_stream
from at_least_once.worker import Worker
from harness import eventually_async
from sluice.domain.stream.scale import equal_ranges
from sluice.pravega import InMemorySegmentStore
from sluice_client import Client, Patience, StreamManager, open_reader_group, split_events
from sluice_client.memory import InMemoryController

SCOPE = "tests"
QUICK: dict[str, Any] = {
    "scope": SCOPE,
    "segments": 4,
    "heartbeat_s": 0.05,
    "checkpoint_s": 0.1,
    "refresh_s": 0.05,
    "patience_s": 5.0,
}
DONE_S = 60.0


class Killed(Exception):
    """Whoever gets this does no more."""


def _kill(_moment: str, _request: str, _segment: str) -> None:
    raise Killed


class ScalingController(InMemoryController):
    """The controller in memory, whose streams are scaled as a whole."""

    def __init__(self, store: InMemorySegmentStore) -> None:
        super().__init__(store)
        self._streams = StreamManager(self, store, Patience())

    async def scale(self, scope: str, stream: str, count: int) -> None:
        await self._streams.scale(await self.segments(scope, stream), equal_ranges(count))

    async def make_anew(self, scope: str, stream: str) -> None:
        """Deletes a stream and makes one of that name, whose segments go on with the numbers, as in a real one."""
        count = len(await self.segments(scope, stream))
        await self.seal(scope, stream)
        await self._streams.delete_stream(scope, stream)
        await self.create_stream(scope, stream, count)

    async def seal(self, scope: str, stream: str) -> None:
        await self._streams.seal_stream(scope, stream)


class Running:
    """A worker at work in a task."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(worker.run(self.stop))

    async def stopped(self) -> None:
        self.stop.set()
        async with asyncio.timeout(DONE_S):
            await self.task


class Cluster:
    """Streams `stream1` and `stream2`, and any number of workers from the one to the other."""

    def __init__(self) -> None:
        self.store = InMemorySegmentStore()
        self.controller = ScalingController(self.store)
        self.client = Client(self.controller, self.store)
        self.settings = AppSettings(**QUICK)

    async def write(self, first: int, count: int) -> None:
        await ensure_stream(self.client, SCOPE, "stream1", self.settings.scaling)
        writer = self.client.event_writer(SCOPE, "stream1")
        for number in range(first, first + count):
            key = f"key-{number % 8}"
            writer.add(key, Event.of("source", number, key, "text").encode())
        await writer.flush()

    async def worker(self, function: Function = upper_case, output: Output | None = None, **settings: Any) -> Worker:
        chosen = AppSettings(**{**QUICK, **settings})
        output = output or await StreamOutput.open(self.client, chosen)
        return await Worker.open(self.client, function, output, chosen)

    async def lose_a_worker(self, stored: Callable[[], object], output: Output | None = None) -> None:
        """A worker that stores results, and is killed before its first checkpoint."""
        running = Running(await self.worker(output=output, checkpoint_s=0))
        await eventually_async(stored, DONE_S, "results are stored")
        self.store.fault = _kill
        await asyncio.wait([running.task])
        assert running.task.exception() is not None
        self.store.fault = None

    async def readers(self, group: str = "workers") -> dict[str, list[str]]:
        """The readers of the group, each with its segments."""
        return await (await open_reader_group(self.client, SCOPE, group)).readers()

    async def work_until(self, processed: int, function: Function = upper_case, **settings: Any) -> Running:
        """One worker more, which is stopped once so many different events are processed."""
        worker = Running(await self.worker(function, **settings))
        await self.until_processed(processed)
        await worker.stopped()
        return worker

    async def until_processed(self, count: int) -> None:
        await eventually_async(lambda: len(set(self.numbers())) >= count, DONE_S, f"{count} events are processed")

    def results(self) -> list[Event]:
        """What is in stream2, of each key in its order if it was not scaled."""
        found = []
        for name, segment in sorted(self.store.segments.items()):
            if name.startswith(f"{SCOPE}/stream2/"):
                stored = split_events(segment.data, 0)
                assert stored.end == len(segment.data)
                found += [Event.decode(event.data) for event in stored.events]
        return found

    def numbers(self) -> list[int]:
        return sorted(event.sequence for event in self.results())


@contextmanager
def cut_off(worker: Worker) -> Iterator[None]:
    """The worker cannot show that it is there."""
    beat = worker.membership.beat
    waits = asyncio.Event()

    async def silent(member: str) -> None:
        await waits.wait()
        await beat(member)

    worker.membership.beat = silent  # type: ignore[method-assign]
    try:
        yield
    finally:
        worker.membership.beat = beat  # type: ignore[method-assign]
        waits.set()
