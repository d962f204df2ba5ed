"""The twin of a topic of requests: what it pauses, and what a member reads of a topic that has lost its end."""

import asyncio
from collections.abc import Mapping, Sequence

from ports.worlds import KEYS, MemoryWorld, Play
from support.virtual_time import run

from sluice.engine.ports import Message, RequestSource


class PausingListener:
    """Has everything paused as soon as it is assigned something."""

    def __init__(self, source: RequestSource) -> None:
        self.source = source
        self.values: list[bytes] = []

    def assigned(self, partitions: list[int]) -> None:
        self.source.pause(partitions)

    def revoked(self, partitions: list[int]) -> None:
        pass

    def lost(self, partitions: list[int]) -> None:
        pass

    def received(self, batch: Sequence[Message]) -> None:
        self.values += [message.value() for message in batch]

    def positions(self) -> Mapping[int, tuple[int, int]]:
        return {}


def test_what_is_paused_when_it_is_assigned_comes_once_it_is_resumed() -> None:
    async def scene() -> None:
        play = Play(MemoryWorld())
        await play.send(KEYS)
        source = play.world.source()
        listener = PausingListener(source)
        source.start(listener)
        await asyncio.sleep(60)
        assert listener.values == []
        source.pause([])
        await asyncio.sleep(60)
        assert len(listener.values) == play.sent

    run(scene())


def test_a_topic_that_lost_its_end_is_read_anew_and_each_request_decided_once() -> None:
    async def scene() -> None:
        world = MemoryWorld()
        play = Play(world)
        member = await play.member()
        key = KEYS[0]
        await play.send([key], 10)
        await play.until_decided(member)
        partition = member.journal.partition_of(key)
        world.broker.lose_end(world.topic, partition, 5)
        # At once there are more than were read before: what is new begins in the middle.
        for number in range(20):
            world.broker.land(world.topic, key, f"{key}/new{number}".encode())
        await asyncio.sleep(60)
        new = [f"{key}/new{number}" for number in range(20)]
        assert member.decided() == [*play.requests[key], *new] and member.total(key) == 30
        assert len([o for o in member.outcomes if o.reply is None]) == 5, "what was not lost is a duplicate"
        await play.stop()

    run(scene())
