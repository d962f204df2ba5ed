"""Following a topic in memory."""

import asyncio
from collections.abc import Sequence

from support.virtual_time import run

from sluice.engine.ports import Message
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups

TOPIC = "sluice.retention"


def test_a_following_that_cannot_take_in_a_record_keeps_why_and_ends() -> None:
    taken: list[int] = []

    def observe(batch: Sequence[Message]) -> None:
        taken.extend(int(message.value() or b"") for message in batch)

    async def scene() -> None:
        broker = MemoryBroker(1)
        following = MemoryConnections(MemoryGroups(broker)).follow("numbers", TOPIC, {0: 0}, observe)
        for value in (b"1", b"no number", b"2"):
            broker.land(TOPIC, "", value)
            await asyncio.sleep(60)
        assert taken == [1]
        assert isinstance(following.failure, ValueError)

    run(scene())
