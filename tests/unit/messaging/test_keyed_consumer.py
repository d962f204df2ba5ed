"""What a keyed consumer does with partitions: when it pauses them, what it does once they are somebody else's.

The consumer of Kafka is in memory; its poll thread's jobs are run by hand.
"""

import asyncio
from typing import Any, cast

from confluent_kafka import Consumer, TopicPartition
from support.memory_journal import MemoryMessage, settle

from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer, Rest

TOPIC = "test.keyed"
MOST = 10


class Kafka:
    """As much of librdkafka's consumer as is paused. What was not paused must not be resumed."""

    def __init__(self) -> None:
        self.assigned: set[int] = set()
        self.paused: set[int] = set()

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in self.assigned]

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused.update(p.partition for p in partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        resumed = {p.partition for p in partitions}
        assert resumed <= self.paused
        self.paused -= resumed


class Scene:
    """Records of the key `stuck` are handled when `go` is set, those of `bad` fail; `rest` is what is done beside."""

    def __init__(self) -> None:
        self.kafka = Kafka()
        self.go = asyncio.Event()
        self.own = asyncio.Event()
        self.own.set()
        self.owned: list[tuple[str, int]] = []
        self.handled: list[int] = []
        self.keeps = True
        self.rest: Rest | None = None
        self.consumer = KeyedConsumer(
            {}, TOPIC, "g", self._handle, self._own, self._failed, max_open=MOST, on_revoked=self._disown
        )

    async def _handle(self, delivery: Delivery) -> Rest | None:
        if delivery.key == "stuck":
            return self._stuck
        if delivery.key == "bad":
            raise ValueError("cannot be handled")
        assert delivery.message is not None
        self.handled.append(delivery.message.offset() or 0)
        return self.rest

    async def _stuck(self) -> None:
        await self.go.wait()

    async def _own(self, partition: int) -> None:
        await self.own.wait()
        self.owned.append(("own", partition))

    def _disown(self, partition: int) -> None:
        self.owned.append(("disown", partition))

    async def _failed(self, _delivery: Delivery, _error: Exception) -> None:
        if not self.keeps:
            raise ValueError("cannot be kept")

    async def assign(self, *partitions: int) -> None:
        self.kafka.assigned.update(partitions)
        self.consumer._assigned(list(partitions))
        await self.turn()

    async def revoke(self, *partitions: int) -> None:
        self.consumer._let_go(self._kafka, list(partitions))
        self.kafka.assigned.difference_update(partitions)
        self.consumer._revoked(list(partitions))
        await self.turn()

    async def take(self, partition: int, key: str, *offsets: int) -> None:
        self.consumer._on_batch([cast(Any, MemoryMessage(partition, offset, b"", key.encode())) for offset in offsets])
        await self.turn()

    async def turn(self) -> None:
        await settle()
        self.consumer._poll._run_jobs(self._kafka)
        assert self.kafka.paused <= self.kafka.assigned

    @property
    def _kafka(self) -> Consumer:
        return cast(Consumer, self.kafka)


async def test_a_paused_consumer_goes_on_when_the_open_records_have_gone_with_their_partition() -> None:
    scene = Scene()
    await scene.assign(0, 1)
    await scene.take(0, "stuck", *range(MOST + 1))
    assert scene.kafka.paused == {0, 1}
    await scene.revoke(0)
    assert scene.kafka.paused == set() and scene.consumer.open_records == 0
    await scene.assign(0)
    assert scene.kafka.paused == set(), "it comes back without being paused"


async def test_what_is_assigned_while_there_is_no_room_waits() -> None:
    scene = Scene()
    await scene.assign(0)
    await scene.take(0, "stuck", *range(MOST + 1))
    await scene.assign(1)
    assert scene.kafka.paused == {0, 1}
    scene.go.set()
    await scene.turn()
    assert scene.kafka.paused == set()


async def test_a_record_that_is_stuck_holds_up_its_own_partition_at_most() -> None:
    scene = Scene()
    await scene.assign(0, 1)
    await scene.take(0, "stuck", 0)
    for offset in range(1, MOST):
        await scene.take(0, "a", offset)
    assert scene.consumer.open_records == 1 and scene.kafka.paused == set()
    await scene.take(0, "a", MOST)
    assert scene.consumer.open_records == 1 and scene.kafka.paused == {0}
    await scene.take(1, "b", *range(100, 100 + 3 * MOST))
    assert scene.handled[-1] == 99 + 3 * MOST, "the other partition goes on"
    scene.go.set()
    await scene.turn()
    assert scene.kafka.paused == set() and scene.consumer.open_records == 0
    assert scene.consumer._offsets[0].position == MOST + 1


async def test_a_full_partition_that_was_lost_is_not_full_when_it_comes_back() -> None:
    scene = Scene()
    await scene.assign(0)
    await scene.take(0, "stuck", 0)
    for offset in range(1, MOST + 1):
        await scene.take(0, "a", offset)
    assert scene.kafka.paused == {0}
    await scene.revoke(0)
    assert scene.consumer.open_records == 0
    await scene.assign(0)
    assert scene.kafka.paused == set()


async def test_a_take_over_ends_with_the_assignment() -> None:
    scene = Scene()
    scene.own.clear()
    await scene.assign(0)
    await scene.revoke(0)
    scene.own.set()
    await scene.turn()
    assert scene.owned == [("disown", 0)], "a second owner otherwise"
    await scene.assign(0)
    assert scene.owned == [("disown", 0), ("own", 0)]


async def test_a_record_that_can_neither_be_handled_nor_kept_stays_and_shows() -> None:
    scene = Scene()
    scene.keeps = False
    await scene.assign(0)
    await scene.take(0, "bad", 0)
    await scene.take(0, "bad", 1)
    await scene.take(0, "a", 2)
    assert scene.consumer._queues == {} and scene.handled == [2], "no lane is left behind"
    assert scene.consumer._offsets[0].position is None and scene.consumer.open_records == 2
    assert "cannot be kept" in repr(scene.consumer.failure)
    await scene.revoke(0)
    assert scene.consumer.failure is None, "its next owner gets the record again"


async def test_what_is_done_beside_the_records_may_fail_like_a_handler() -> None:
    async def fail() -> None:
        raise ValueError("cannot be done")

    scene = Scene()
    scene.rest = fail
    await scene.assign(0)
    await scene.take(0, "a", 0)
    assert scene.consumer._offsets[0].position == 1 and scene.consumer.failure is None
    scene.keeps = False
    await scene.take(0, "a", 1)
    assert scene.consumer._offsets[0].position == 1 and "cannot be kept" in repr(scene.consumer.failure)


async def test_what_is_read_again_counts_from_there() -> None:
    scene = Scene()
    await scene.assign(0)
    await scene.take(0, "stuck", 5, 6, 7)
    await scene.take(0, "stuck", 2, 3)
    assert scene.consumer.open_records == 2
    scene.go.set()
    await scene.turn()
    assert scene.consumer._offsets[0].position == 4 and scene.consumer.open_records == 0


async def test_what_an_earlier_assignment_accepts_late_leaves_nothing_behind() -> None:
    scene = Scene()
    await scene.assign(0)
    await scene.take(0, "stuck", 0, 1, 2)
    await scene.revoke(0)
    await scene.assign(0)
    await scene.take(0, "stuck", 2, 3)
    scene.go.set()
    await scene.turn()
    offsets = scene.consumer._offsets[0]
    assert (offsets.position, offsets.done, scene.consumer.open_records) == (4, set(), 0)
