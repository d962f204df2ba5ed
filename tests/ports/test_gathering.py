"""A follower of the journal whose service no caller waits for: a fetch of its brings many records."""

import asyncio
from collections.abc import Sequence

import pytest
from confluent_kafka.admin import AdminClient
from ports.worlds import DEADLINE_S, KEYS, PARTITIONS, KafkaWorld
from support.wait import eventually_async

from harness import System
from sluice.engine.ports import Log, Message, RecordFacts, SendError

pytestmark = pytest.mark.integration

COUNT = 20


class Batches:
    """What a follower was handed over: the values of each batch that had records."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.values: list[list[bytes]] = []
        log.start(self._received, dict.fromkeys(range(PARTITIONS), 0))

    def _received(self, batch: Sequence[Message]) -> None:
        records = [message.value() for message in batch if message.error() is None]
        self.values += [records] if records else []

    @property
    def everything(self) -> list[bytes]:
        return [value for values in self.values for value in values]


def fail(error: SendError) -> None:
    raise error


async def test_records_come_together_to_a_follower_that_lets_them_gather(broker: System, admin: AdminClient) -> None:
    world = KafkaWorld(broker, admin)
    prompt, gathering = followers = Batches(world.log()), Batches(world.log(gather_ms=5000))

    async def write(number: int, *readers: Batches) -> None:
        prompt.log.append(KEYS[0], str(number).encode(), RecordFacts("Test", "id", "test/0", 0), {}, fail)
        await eventually_async(
            lambda: all(len(reader.everything) == number + 1 for reader in readers), DEADLINE_S, "it is fetched"
        )

    # Once the first one is there both follow all partitions.
    await write(0, *followers)
    for number in range(1, COUNT):
        await write(number, prompt)
    await eventually_async(lambda: len(gathering.everything) == COUNT, DEADLINE_S, "all is fetched")
    assert prompt.everything == gathering.everything == [str(number).encode() for number in range(COUNT)]
    assert len(prompt.values) == COUNT and len(gathering.values) <= COUNT // 2
    await asyncio.gather(*(follower.log.stop() for follower in followers))
    await world.stop()
