"""Reports of load: what a busy machine and a store that hangs up make of them. In virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from support.virtual_time import run

from sluice.domain.config import ScaleType
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.pravega.auto_scale_reports import decode_report
from sluice.pravega.event_frames import split_events
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice_dev.load_reports import REPORTS, LoadReports

SEGMENT = segment_name("demo", "orders", 0)
TARGET = 10
SLOWER = 4
LOOK_S = 1.0


class BusyClock:
    """What waits a second is woken after some more."""

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * SLOWER * 1000)


class Scene:
    """A segment, and what is reported of it."""

    def __init__(self) -> None:
        self.store = InMemorySegmentStore()
        self._written = 0

    async def write(self, count: int) -> None:
        self._written += count
        await self.store.append_events(SEGMENT, UUID(int=1), [b""] * count, self._written)

    def reports(self) -> list[Traffic]:
        return [decode_report(event.data) for event in split_events(self.store.segments[REPORTS].data, 0).events]


@asynccontextmanager
async def reporting() -> AsyncIterator[Scene]:
    """The segment was looked at once, half a look ago."""
    scene = Scene()
    await scene.store.create_segment(REPORTS, ScaleType.FIXED.code, 0)
    await scene.store.create_segment(SEGMENT, ScaleType.EVENTS.code, TARGET)
    running = asyncio.create_task(LoadReports(scene.store, BusyClock(), LOOK_S).run())
    await asyncio.sleep(1.5 * LOOK_S)
    yield scene
    running.cancel()


def test_the_rate_of_a_segment_is_that_of_the_time_that_passed() -> None:
    async def scene() -> None:
        async with reporting() as busy:
            await busy.write(TARGET * SLOWER)
            await asyncio.sleep(LOOK_S)
            assert busy.reports() == []
            await busy.write(3 * TARGET * SLOWER)
            await asyncio.sleep(LOOK_S)
            assert busy.reports() == [Traffic(StreamId("demo", "orders"), 0, Direction.UP, 12_000, 3, False)]

    run(scene())


def test_the_silence_of_a_segment_is_reported_until_a_report_is_stored_and_again_after_a_write() -> None:
    hung_up = []

    def fault(moment: Moment, request: str, _segment: str) -> None:
        if moment == "before":
            hung_up.append(request)
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, "on purpose")

    async def scene() -> None:
        async with reporting() as silent:
            silent.store.fault = fault
            await asyncio.sleep(LOOK_S)
            assert hung_up
            silent.store.fault = None
            await asyncio.sleep(3 * LOOK_S)
            assert [report.silent for report in silent.reports()] == [True]
            await silent.write(TARGET * SLOWER)
            await asyncio.sleep(3 * LOOK_S)
            assert [report.silent for report in silent.reports()] == [True, True]

    run(scene())
