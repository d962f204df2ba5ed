"""The topics on a real Kafka: those that others have made, or changed, are refused, and a key keeps its partition."""

import asyncio

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions
from support.wait import eventually

from harness import System
from sluice.engine.partition import partition_of
from sluice.kafka.producer import KafkaProducer
from sluice.kafka.topics import (
    JOURNAL,
    STATISTICS,
    TopicsUnfitError,
    ensure_topics,
    present_settings,
    too_few_in_sync,
    unfit_settings,
)

pytestmark = pytest.mark.integration

PARTITIONS = 2
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def client(broker: System) -> dict[str, str]:
    """Of a Kafka with all topics."""
    client = {"bootstrap.servers": broker.kafka_bootstrap, "log_level": "2"}
    ensure_topics(client, PARTITIONS, 1)
    return client


def test_another_number_of_partitions_is_refused(client: dict[str, str]) -> None:
    said = rf"has {PARTITIONS} partitions, configured are {PARTITIONS + 1} \(SLUICE_PARTITIONS\)"
    with pytest.raises(TopicsUnfitError, match=said):
        ensure_topics(client, PARTITIONS + 1, 1)


def test_a_journal_that_kafka_would_remove_records_from_is_named(client: dict[str, str], admin: AdminClient) -> None:
    assert unfit(client) == []

    def alter(value: str) -> None:
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, JOURNAL.name, incremental_configs=[entry])
        for answer in admin.incremental_alter_configs([resource]).values():
            answer.result()

    alter("604800000")
    found = "sluice.journal has retention.ms=604800000, and must have -1"
    eventually(lambda: unfit(client) == [found], DEADLINE_S, found)
    alter("-1")
    eventually(lambda: unfit(client) == [], DEADLINE_S, "it is as it has to be")


def test_a_topic_that_is_missing_is_named(client: dict[str, str], admin: AdminClient) -> None:
    for gone in admin.delete_topics([STATISTICS.name]).values():
        gone.result()
    found = f"{STATISTICS.name} is missing"
    eventually(lambda: unfit(client) == [found], DEADLINE_S, found)
    ensure_topics(client, PARTITIONS, 1)
    eventually(lambda: unfit(client) == [], DEADLINE_S, "it is there again")


def test_topics_that_too_few_replicas_acknowledge_are_named(client: dict[str, str]) -> None:
    present = present_settings(client)
    assert too_few_in_sync(present, 2) == ""
    assert JOURNAL.name in too_few_in_sync(present, 3)


def test_keys_keep_their_partitions_when_a_topic_is_given_more(client: dict[str, str], admin: AdminClient) -> None:
    for grown in admin.create_partitions([NewPartitions(JOURNAL.name, 4 * PARTITIONS)]).values():
        grown.result()

    async def send() -> None:
        producer = KafkaProducer(client, PARTITIONS)
        producer.start()
        try:
            await asyncio.gather(*(producer.send(JOURNAL.name, f"key/{n}", b"{}", []) for n in range(50)))
        finally:
            await asyncio.to_thread(producer.stop)

    asyncio.run(send())
    ends = _ends(client, 4 * PARTITIONS)
    wanted = [sum(partition_of(f"key/{n}", PARTITIONS) == p for n in range(50)) for p in range(PARTITIONS)]
    assert ends == [*wanted, *([0] * 3 * PARTITIONS)]


def unfit(client: dict[str, str]) -> list[str]:
    return unfit_settings(present_settings(client))


def _ends(client: dict[str, str], partitions: int) -> list[int]:
    consumer = Consumer({**client, "group.id": "ends"})
    try:
        every = [TopicPartition(JOURNAL.name, partition) for partition in range(partitions)]
        return [consumer.get_watermark_offsets(place, timeout=10)[1] for place in every]
    finally:
        consumer.close()
