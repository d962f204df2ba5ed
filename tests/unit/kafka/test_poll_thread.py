"""How far the thread that polls runs ahead of those who take its batches in, and what a stop of it waits for."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from support.wait import eventually_async

from sluice.engine.ports import Room
from sluice.kafka import poll_thread
from sluice.kafka.poll_thread import MAX_WAITING, Batch, PollThread

DEADLINE_S = 60.0


class Message:
    def error(self) -> None:
        return None


class EndlessConsumer:
    """Has a message whenever it is polled."""

    def __init__(self, _config: object) -> None:
        self.polls = 0

    def poll(self, _timeout: float) -> Message:
        self.polls += 1
        return Message()

    def consume(self, _count: int, _timeout: float) -> list[Message]:
        return []

    def close(self) -> None:
        pass


class LastingConsumer(EndlessConsumer):
    """It takes its time to close."""

    def __init__(self, config: object) -> None:
        super().__init__(config)
        self.may_close = threading.Event()

    def close(self) -> None:
        assert self.may_close.wait(DEADLINE_S)


async def test_a_batch_for_which_there_is_no_room_counts_as_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers: list[EndlessConsumer] = []
    monkeypatch.setattr(poll_thread, "Consumer", EndlessConsumer)
    room = asyncio.get_running_loop().create_future()
    batches: list[Batch] = []

    def receive(batch: Batch) -> Room:
        batches.append(batch)
        return None if room.done() else room

    poll = PollThread("test", {}, consumers.append, receive)
    poll.start()
    try:
        # One more is polled, and waits for a slot.
        await until(lambda: len(batches) == MAX_WAITING and consumers[0].polls == MAX_WAITING + 1)
        room.set_result(None)
        await until(lambda: len(batches) > 2 * MAX_WAITING)
    finally:
        await poll.stop()


async def test_a_stop_waits_for_a_member_to_leave_its_group_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumers: list[LastingConsumer] = []
    monkeypatch.setattr(poll_thread, "Consumer", LastingConsumer)
    batches: list[Batch] = []
    follower = PollThread("follower", {}, consumers.append, batches.append)
    follower.start()
    await until(lambda: bool(batches))
    await follower.stop()
    taken = len(batches)
    member = PollThread("member", {}, consumers.append, lambda _batch: None, is_member=True)
    member.start()
    await until(lambda: len(consumers) == 2)
    stopping = asyncio.create_task(member.stop())
    # What the follower had handed to the loop has come by then.
    await asyncio.sleep(0)
    assert not stopping.done() and len(batches) == taken
    for consumer in consumers:
        consumer.may_close.set()
    await asyncio.wait_for(stopping, DEADLINE_S)


async def until(seen: Callable[[], bool]) -> None:
    await eventually_async(seen, DEADLINE_S, "the batches")
