"""The lanes of the abort agent: order, acknowledgement, failures, what happens to records when partitions go."""

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest

from harness import eventually_async
from txn_manager.abort_agent import _aborting
from txn_manager.abort_lanes import Aborting, Lanes

DEADLINE_S = 30.0


def record(partition: int, offset: int) -> Aborting:
    return Aborting(key=f"k-{partition}", value=b"x", partition=partition, offset=offset, timestamp_ms=1)


class Handler:
    """Notes what it is given; waits while closed; fails for the offsets it is told."""

    def __init__(self, *fails: int) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.fails = fails
        self.began: list[tuple[int, int]] = []
        self.failed: list[tuple[int, str]] = []
        self.acknowledged: list[tuple[int, int]] = []

    async def __call__(self, record: Aborting) -> None:
        self.began.append((record.partition, record.offset))
        await self.open.wait()
        if record.offset in self.fails:
            raise ValueError(f"offset {record.offset}")

    async def on_failure(self, record: Aborting, error: Exception) -> None:
        self.failed.append((record.offset, str(error)))

    async def put(self, lanes: Lanes, partition: int, *offsets: int) -> None:
        for offset in offsets:
            acknowledge = partial(self.acknowledged.append, (partition, offset))
            await lanes.put(record(partition, offset), acknowledge)


async def test_a_partition_is_handled_and_acknowledged_in_order_beside_the_others() -> None:
    handler = Handler()
    handler.open.clear()
    lanes = Lanes(handler, handler.on_failure, 100)
    await handler.put(lanes, 1, 10, 11, 12)
    await handler.put(lanes, 2, 20, 21)
    await eventually_async(lambda: len(handler.began) == 2, DEADLINE_S, "both partitions have begun")
    assert handler.began == [(1, 10), (2, 20)]
    assert not handler.acknowledged
    handler.open.set()
    await eventually_async(lambda: len(handler.acknowledged) == 5, DEADLINE_S, "all are acknowledged")
    for partition, offsets in ((1, [10, 11, 12]), (2, [20, 21])):
        assert [o for p, o in handler.began if p == partition] == offsets
        assert [o for p, o in handler.acknowledged if p == partition] == offsets


async def test_a_record_that_cannot_be_handled_goes_to_on_failure_and_counts() -> None:
    handler = Handler(11)
    lanes = Lanes(handler, handler.on_failure, 100)
    await handler.put(lanes, 1, 10, 11, 12)
    await eventually_async(lambda: len(handler.acknowledged) == 3, DEADLINE_S, "all are acknowledged")
    assert handler.failed == [(11, "offset 11")]
    assert not lanes.broken.done()


async def test_a_record_that_nobody_keeps_stops_the_lanes() -> None:
    handler = Handler(11)

    async def fails_too(_record: Aborting, _error: Exception) -> None:
        raise OSError("nowhere to put it")

    lanes = Lanes(handler, fails_too, 100)
    await handler.put(lanes, 1, 10, 11, 12)
    error = await asyncio.wait_for(lanes.broken, DEADLINE_S)
    assert isinstance(error, OSError)
    await handler.put(lanes, 1, 13)
    await lanes.clear(DEADLINE_S)
    assert handler.began == [(1, 10), (1, 11)]
    assert handler.acknowledged == [(1, 10)]


async def test_what_waits_when_partitions_go_is_forgotten_and_what_runs_may_end() -> None:
    handler = Handler()
    handler.open.clear()
    lanes = Lanes(handler, handler.on_failure, 3)
    await handler.put(lanes, 1, 10, 11, 12)
    outside = asyncio.create_task(handler.put(lanes, 1, 13))
    await eventually_async(lambda: handler.began == [(1, 10)], DEADLINE_S, "the first has begun")
    clearing = asyncio.create_task(lanes.clear(DEADLINE_S))
    await asyncio.wait_for(outside, DEADLINE_S)
    handler.open.set()
    await asyncio.wait_for(clearing, DEADLINE_S)
    assert handler.began == handler.acknowledged == [(1, 10)]
    await handler.put(lanes, 1, 11, 12, 13, 14)
    await eventually_async(lambda: len(handler.acknowledged) == 5, DEADLINE_S, "they are handled when they come again")


async def test_a_handler_that_does_not_end_is_cancelled_and_not_acknowledged() -> None:
    handler = Handler()
    handler.open.clear()
    lanes = Lanes(handler, handler.on_failure, 3)
    await handler.put(lanes, 1, 10)
    await eventually_async(lambda: handler.began == [(1, 10)], DEADLINE_S, "it has begun")
    await asyncio.wait_for(lanes.clear(0), DEADLINE_S)
    assert not handler.acknowledged
    assert not handler.failed


async def test_no_more_records_are_taken_than_there_is_room_for() -> None:
    handler = Handler()
    handler.open.clear()
    lanes = Lanes(handler, handler.on_failure, 2)
    filling = asyncio.create_task(handler.put(lanes, 1, *range(10, 20)))
    await eventually_async(lambda: handler.began == [(1, 10)], DEADLINE_S, "it has begun")
    assert not filling.done()
    handler.open.set()
    await asyncio.wait_for(filling, DEADLINE_S)
    await eventually_async(lambda: len(handler.acknowledged) == 10, DEADLINE_S, "all are acknowledged")


@pytest.mark.parametrize(
    ("key", "value", "expected_key", "expected_value"),
    [
        (b"sc/st", b'{"a":1}', "sc/st", b'{"a":1}'),
        (None, None, "", b""),
        (b"\xff", b"\x00\xff", "�", b"\x00\xff"),
    ],
)
def test_a_record_is_passed_on_as_it_is(
    key: bytes | None, value: bytes | None, expected_key: str, expected_value: bytes
) -> None:
    message = SimpleNamespace(key=key, value=value, partition=3, offset=7, timestamp=1_700_000_000.123)
    assert _aborting(message) == Aborting(expected_key, expected_value, 3, 7, 1_700_000_000_123)
