"""Questions to the segment stores about many segments: bounded, retried, and never answered by silence.

What does not answer within the patience leaves its container silent: the other segments of that container are not
requested, so that a store that is away costs one wait and not one for each of a million segments. Each further round
probes a silent container once. Concurrency: `concurrency` questions are out at a time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec

from sluice.engine.retry import delays
from sluice.pravega.errors import RouteStale, SegmentMissing, SegmentStoreError, TryLater
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
    """`container_of` gives the container of a segment's name; `reroute` learns where the containers are by now."""

    def __init__(
        self,
        store: SegmentStore,
        container_of: Callable[[str], int],
        reroute: Callable[[], Awaitable[None]],
        *,
        concurrency: int,
        patience_s: float,
    ) -> None:
        self._store = store
        self._container_of = container_of
        self._reroute = reroute
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._silent: dict[int, str] = {}

    async def ask(self, subjects: Iterable[Subject]) -> dict[Subject, Answer]:
        """An answer about each."""
        todo = list(subjects)
        await self._reroute()
        answers = await self._probe_silent(todo)
        rest = iter([subject for subject in todo if subject not in answers])
        await asyncio.gather(*(self._work(rest, answers) for _ in range(self._concurrency)))
        return answers

    async def _probe_silent(self, subjects: Iterable[Subject]) -> dict[Subject, Answer]:
        """One attempt for each silent container."""
        probes: dict[int, Subject] = {}
        if self._silent:
            for subject in subjects:
                probes.setdefault(self._container_of(subject.name), subject)
        answers = {}
        for container in probes.keys() & self._silent.keys():
            answers[probes[container]] = await self._attempts(probes[container], container, patience_s=0.0)
            if not answers[probes[container]].failure:
                del self._silent[container]
        return answers

    async def _work(self, subjects: Iterator[Subject], answers: dict[Subject, Answer]) -> None:
        for subject in subjects:
            container = self._container_of(subject.name)
            answers[subject] = await self._attempts(subject, container, self._patience_s)

    async def _attempts(self, subject: Subject, container: int, patience_s: float) -> Answer:
        deadline, waits = time.monotonic() + patience_s, delays(0.2)
        probing = patience_s == 0.0
        while probing or container not in self._silent:
            try:
                return Answer(await request_info(self._store, subject))
            except (RouteStale, TryLater) as error:
                wait = next(waits)
                if time.monotonic() + wait >= deadline:
                    self._silent[container] = str(error)
                    break
            except SegmentStoreError as error:
                return Answer(failure=str(error))
            await asyncio.sleep(wait)
            await self._reroute()
        return Answer(failure=f"container {container} does not answer: {self._silent[container]}")
