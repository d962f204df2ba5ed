"""Questions to the segment stores about many segments: bounded, retried, and never answered by silence.

Where a segment is not answered for within the patience, its container is probed. If that is not answered either, the
container is silent: its other segments are not requested, so that a store that is away costs one wait and not one for
each of a million segments. Each further round of questions probes the silent containers once, side by side.
Concurrency: `concurrency` questions are out at a time, and first one about each container that was silent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec

from sluice.engine.retry import delays
from sluice.pravega.errors import SegmentMissing, SegmentStoreError, TryLater
from sluice.pravega.routing import container_of, probe_name
from sluice.pravega.store import SegmentStore
from sluice.verification.comparing import Info
from sluice.verification.subjects import Subject, TableSegment


class Answer(msgspec.Struct, frozen=True):
    """`info` is None where the segment does not exist; with `failure` no store has said anything."""

    info: Info | None = None
    failure: str = ""


async def request_info(store: SegmentStore, subject: Subject) -> Info | None:
    """One attempt; None if the segment does not exist. Raises SegmentStoreError."""
    try:
        if isinstance(subject, TableSegment):
            return await store.table_info(subject.name)
        return await store.segment_info(subject.name)
    except SegmentMissing:
        return None


class Questions:
    """`reroute` learns where the containers are by now."""

    def __init__(
        self,
        store: SegmentStore,
        container_count: int,
        reroute: Callable[[], Awaitable[None]],
        *,
        concurrency: int,
        patience_s: float,
    ) -> None:
        self._store = store
        self._count = container_count
        self._reroute = reroute
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._silent: dict[int, Answer] = {}

    async def ask(self, subjects: Iterable[Subject]) -> dict[Subject, Answer]:
        """An answer about each."""
        await self._reroute()
        silent = list(self._silent)
        for container, alive in zip(silent, await asyncio.gather(*map(self._is_alive, silent)), strict=True):
            if alive:
                del self._silent[container]
        answers: dict[Subject, Answer] = {}
        rest = iter(subjects)
        await asyncio.gather(*(self._work(rest, answers) for _ in range(self._concurrency)))
        return answers

    async def _work(self, subjects: Iterator[Subject], answers: dict[Subject, Answer]) -> None:
        for subject in subjects:
            container = container_of(subject.name, self._count)
            answers[subject] = self._silent.get(container) or await self._attempts(subject, container)

    async def _attempts(self, subject: Subject, container: int) -> Answer:
        deadline, waits = time.monotonic() + self._patience_s, delays(0.2)
        while True:
            try:
                return Answer(await request_info(self._store, subject))
            except TryLater as error:
                wait, failure = next(waits), str(error)
            except SegmentStoreError as error:
                return Answer(failure=str(error))
            if time.monotonic() + wait >= deadline:
                return await self._unanswered(container, failure)
            await asyncio.sleep(wait)
            if container in self._silent:
                return self._silent[container]
            await self._reroute()

    async def _unanswered(self, container: int, failure: str) -> Answer:
        """No answer about one segment, or about all of a container that has become silent."""
        if await self._is_alive(container):
            return Answer(failure=failure)
        silence = Answer(failure=f"container {container} does not answer: {failure}")
        self._silent[container] = silence
        return silence

    async def _is_alive(self, container: int) -> bool:
        try:
            await self._store.segment_info(probe_name(container, self._count))
        except SegmentMissing:
            return True
        except SegmentStoreError:
            return False
        return True
