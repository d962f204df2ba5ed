"""A record that could not be handled is kept, however long Kafka is away."""

from support.virtual_time import run

from sluice.kafka.dead_letters import FailedRecord, send_dead_letter
from sluice.kafka.topics import DEAD_LETTERS
from sluice.memory.broker import MemoryBroker, MemoryProducer


async def kept(broker: MemoryBroker) -> list[bytes]:
    """What the topic holds once a dead letter was sent."""
    await send_dead_letter(
        MemoryProducer(broker), FailedRecord("sluice.commit", 3, 7, "sc/st", b"{}"), "txn-manager/0", "why", now_ms=1
    )
    return [message.value() for log in broker.logs(DEAD_LETTERS.name) for message in log]


def test_a_dead_letter_outlasts_an_outage() -> None:
    async def scenario() -> None:
        broker = MemoryBroker()
        broker.faulty_topic, broker.refusals = DEAD_LETTERS.name, 20
        assert await kept(broker) == [b"{}"]

    run(scenario())


def test_a_dead_letter_that_no_topic_can_hold_is_only_logged() -> None:
    async def scenario() -> None:
        assert await kept(MemoryBroker(max_bytes=1)) == []

    run(scenario())
