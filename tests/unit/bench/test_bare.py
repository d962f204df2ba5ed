"""The parts of calls, made on the in-memory twins of the segment store and of Kafka."""

from bench import floors
from bench.bare import StoreRounds, round_trips
from sluice.memory.broker import MemoryBroker, MemoryProducer
from sluice.memory.log import MemoryLog
from sluice.pravega.memory import InMemorySegmentStore


async def test_every_part_on_the_store_is_timed_once_a_round() -> None:
    rounds = StoreRounds(InMemorySegmentStore())
    await rounds.round()
    await rounds.round()
    assert {part: len(times) for part, times in rounds.times.items()} == dict.fromkeys(
        floors.PARTS.keys() - {floors.GRPC, floors.REQUEST, floors.KAFKA}, 2
    )


async def test_a_kafka_round_trip_is_one_record_of_the_journal() -> None:
    records: list[object] = []
    broker = MemoryBroker()
    broker.on_landed.append(records.append)
    assert len(await round_trips(MemoryLog(broker, MemoryProducer(broker)), 20)) == 20
    assert len(records) == 20
