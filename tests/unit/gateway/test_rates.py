"""Rates are measured while they are requested, within one budget, and from what segment stores say."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from support.stream_log import STREAM, StreamLog

from api_gateway.console import kept_lengths, rates
from api_gateway.console.rates import Rates, Sample, StreamRates, rate
from api_gateway.edge.errors import OverloadedError
from sluice.domain.ids import StreamId
from sluice.domain.segment import segment_name
from sluice.domain.stream.state import Stream
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment, Moment
from sluice.pravega.store import EVENT_COUNT_ATTRIBUTE

Sent = Callable[[str], Awaitable[None] | None]


class Cluster:
    """A stream, its segments in a store, and when each call to that was made, in seconds of the loop."""

    def __init__(self, segments: int) -> None:
        self.log = StreamLog(segments=segments)
        self.store = InMemorySegmentStore(self._call)
        self.calls: list[float] = []
        self.sent: Sent = lambda _segment: None
        for id in self.stream.active_epoch.segments:
            self.store.segments[segment_name(*STREAM, id)] = MemorySegment()

    @property
    def stream(self) -> Stream:
        return self.log.stream

    def _call(self, moment: Moment, _type: str, segment: str) -> Awaitable[None] | None:
        if moment == "after":
            return None
        self.calls.append(asyncio.get_running_loop().time())
        return self.sent(segment)

    def write(self, segment: int, size: int, events: int) -> None:
        found = self.store.segments[segment_name(*STREAM, segment)]
        found.data += bytes(size)
        found.attributes[EVENT_COUNT_ATTRIBUTE] = found.attributes.get(EVENT_COUNT_ATTRIBUTE, 0) + events


def loop_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


@asynccontextmanager
async def measuring(cluster: Cluster) -> AsyncIterator[Rates]:
    found = Rates(cluster.store, lambda wanted: cluster.stream if wanted == STREAM else None, loop_ms)
    yield found
    await found.stop()


async def look_until(found: Rates, holds: Callable[[StreamRates], bool], most_s: float = 60.0) -> StreamRates:
    """Look once a second until it holds."""
    async with asyncio.timeout(most_s):
        # Each look is what keeps the measuring going.
        while not holds(known := found.look(STREAM)):  # noqa: ASYNC110
            await asyncio.sleep(1)
    return known


def test_a_rate_is_what_came_between_two_samples() -> None:
    first, second = Sample(10.0, 100, None), Sample(12.0, 300, 6)
    assert rate(7, None, first).length == 100 and rate(7, None, first).bytes_per_s is None
    between = rate(7, first, second)
    assert (between.bytes_per_s, between.events_per_s, between.length) == (100.0, 3.0, 300)
    assert rate(7, second, Sample(14.0, 300, 6)).bytes_per_s == 0.0
    behind_a_failure = rate(7, second, Sample(14.0, 200, 2))
    assert (behind_a_failure.bytes_per_s, behind_a_failure.events_per_s) == (None, None)
    # Bytes without a count of events, as of transactions: the store does not say how many.
    assert rate(7, Sample(10.0, 100, None), Sample(12.0, 300, None)).events_per_s is None
    assert rate(7, second, Sample(14.0, 500, 6)).events_per_s is None
    assert rate(7, second, Sample(14.0, 300, 6)).events_per_s == 0.0


async def test_the_second_measurement_tells_the_rate(virtual_time: None) -> None:
    cluster = Cluster(2)
    async with measuring(cluster) as found:
        assert not found.look(STREAM).complete
        await look_until(found, lambda known: all(one.length is not None for one in known.segments))
        cluster.write(0, 1000, 10)
        known = await look_until(found, lambda known: known.complete)
        busy, idle = known.segments
        assert busy.bytes_per_s and busy.bytes_per_s == pytest.approx(1000 / rates.INTERVAL_S, rel=0.1)
        assert busy.events_per_s == pytest.approx(10 / rates.INTERVAL_S, rel=0.1)
        assert (idle.bytes_per_s, idle.events_per_s) == (0.0, 0.0)


async def test_a_thousand_segments_are_measured_within_one_budget(virtual_time: None) -> None:
    cluster = Cluster(1000)
    async with measuring(cluster) as found:
        found.look(STREAM)
        began = asyncio.get_running_loop().time()
        await look_until(found, lambda known: known == found.look(STREAM) and known.complete)
        took = asyncio.get_running_loop().time() - began
        assert took < 45, "20 s for each of the two measurements"
        for at in range(int(took)):
            in_a_second = sum(at <= call - began < at + 1 for call in cluster.calls)
            assert in_a_second <= rates.MAX_CALLS_S + rates.CALLS_PER_SEGMENT


async def test_what_is_not_requested_is_measured_no_more(virtual_time: None) -> None:
    cluster = Cluster(2)
    async with measuring(cluster) as found:
        await look_until(found, lambda known: known.complete)
        await asyncio.sleep(rates.WATCHED_S + 5)
        before = len(cluster.calls)
        await asyncio.sleep(60)
        assert len(cluster.calls) == before
        assert not found.look(STREAM).complete, "what was known then says nothing of now"
        await look_until(found, lambda known: known.complete)


async def test_what_is_looked_at_is_kept_once_a_minute_within_a_bound(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_lengths, "MAX_LENGTHS", 8)
    cluster = Cluster(2)
    async with measuring(cluster) as found:
        for _ in range(10):
            await look_until(found, lambda known: known.complete)
            cluster.write(0, 600, 1)
            await asyncio.sleep(60)
        cuts = found.kept.since(STREAM, 0)
        assert len(cuts) == 4 and all(60_000 <= b.at - a.at < 70_000 for a, b in pairwise(cuts))
        assert [b.cut[0] - a.cut[0] for a, b in pairwise(cuts)] == [600, 600, 600]
        assert found.kept.since(STREAM, cuts[-1].at) == cuts[-1:]


async def test_streams_without_active_segments_are_forgotten(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_STREAMS", 2)
    async with measuring(Cluster(1)) as found:
        for name in ("sealed", "gone"):
            assert found.look(StreamId("sc", name)).segments == []
        with pytest.raises(OverloadedError):
            found.look(STREAM)
        await asyncio.sleep(rates.WATCHED_S + 1)
        assert found.look(STREAM).segments


async def test_a_store_that_hangs_leaves_the_others_measured(virtual_time: None) -> None:
    cluster = Cluster(4)
    stuck = segment_name(*STREAM, 1)
    cluster.sent = lambda segment: asyncio.sleep(3600) if segment == stuck else None
    async with measuring(cluster) as found:
        known = await look_until(found, lambda known: sum(one.bytes_per_s is not None for one in known.segments) == 3)
        assert not known.complete

        def refuse(_segment: str) -> None:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, "down")

        cluster.sent = refuse
        await asyncio.sleep(10)
        assert not found.look(STREAM).complete
        cluster.sent = lambda _segment: None
        await look_until(found, lambda known: known.complete)


async def test_new_segments_are_measured_in_place_of_the_old(virtual_time: None) -> None:
    cluster = Cluster(1)
    async with measuring(cluster) as found:
        await look_until(found, lambda known: known.complete)
        cluster.log.scale((0,), ((0.0, 0.5), (0.5, 1.0)))
        for id in cluster.stream.active_epoch.segments:
            cluster.store.segments[segment_name(*STREAM, id)] = MemorySegment()
        assert [one.id for one in found.look(STREAM).segments] == list(cluster.stream.active_epoch.segments)
        await look_until(found, lambda known: known.complete)


async def test_there_is_a_bound_on_what_is_measured(virtual_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MAX_STREAMS", 1)
    cluster = Cluster(1)
    async with measuring(cluster) as found:
        found.look(STREAM)
        with pytest.raises(OverloadedError):
            found.look(StreamId("sc", "other"))


async def test_what_only_lists_show_is_measured_less_often_and_takes_no_room(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(1)
    async with measuring(cluster) as found:
        for _ in range(60):
            known = found.look(STREAM, closely=False)
            await asyncio.sleep(1)
        assert known.complete
        listed = len(cluster.calls)
        assert listed <= rates.CALLS_PER_SEGMENT * (2 + 60 / rates.LISTED_INTERVAL_S)
        monkeypatch.setattr(rates, "MAX_STREAMS", 1)
        assert found.look(STREAM).complete, "that it was listed is no reason to refuse it"
        for _ in range(60):
            found.look(STREAM)
            found.look(STREAM, closely=False)
            await asyncio.sleep(1)
        assert len(cluster.calls) - listed >= 3 * listed
        monkeypatch.setattr(rates, "MAX_LISTED", 1)
        with pytest.raises(OverloadedError):
            found.look(StreamId("sc", "another"), closely=False)
