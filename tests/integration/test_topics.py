"""The topics of a running system: declared settings, and requests and records in the partitions of their keys.

That records are CloudEvents which follow their schemas is in `test_topic_docs.py`.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from support.controller import Controller, controller, unique
from support.kafka import events, fold, header, produce, read

from harness import System
from sluice.engine.fold import Outcome
from sluice.engine.partition import partition_of
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REQUESTS_CLUSTER, REQUESTS_STREAMS, TOPICS, Topic

pytestmark = pytest.mark.integration

BY_NAME = {topic.name: topic for topic in TOPICS}
CREATED = ("StreamCreationStarted", "StreamCreated")
SEALED = ("StreamSealStarted", "StreamSealed")
DELETED = ("StreamDeletionStarted", "StreamDeleted")


@pytest.fixture(scope="module")
def gateway(system: System) -> Iterator[Controller]:
    with controller(system.grpc_address) as client:
        yield client


@pytest.fixture(scope="module")
def worked(gateway: Controller) -> str:
    """A scope whose creation was refused once, with a stream that was created, sealed and deleted."""
    scope = unique("topics")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_scope(scope) == "SCOPE_EXISTS"
    assert gateway.create_stream(scope, "st", 2) == "SUCCESS"
    assert gateway.seal(scope, "st") == "SUCCESS"
    assert gateway.delete(scope, "st") == "SUCCESS"
    return scope


def partitions_of(system: System, topic: Topic) -> int:
    return topic.partitions or system.settings.partitions


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_topic_has_the_settings_it_is_declared_with(system: System, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})
    found = admin.list_topics(timeout=60).topics[name]
    assert len(found.partitions) == partitions_of(system, BY_NAME[name])
    resource = ConfigResource(ResourceType.TOPIC, name)
    present = admin.describe_configs([resource], request_timeout=60)[resource].result(60)
    declared = BY_NAME[name].config()
    assert {key: present[key].value for key in declared} == declared


def test_there_are_no_other_topics_of_ours(system: System) -> None:
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})
    present = {name for name in admin.list_topics(timeout=60).topics if name.startswith("sluice.")}
    assert present == set(BY_NAME)


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize("topic", [JOURNAL, REQUESTS_STREAMS, REQUESTS_CLUSTER], ids=lambda topic: topic.name)
def test_every_record_is_in_the_partition_of_its_key(system: System, topic: Topic) -> None:
    count = partitions_of(system, topic)
    records = sound(read(system.kafka_bootstrap, topic.name))
    assert records
    for message in records:
        assert message.partition() == partition_of(key_of(message), count), key_of(message)
        assert message.timestamp()[0] == 2, "timed by the broker"


def test_a_creation_is_one_request_and_two_records(system: System, worked: str) -> None:
    """So are a seal and a deletion: the first record is the decision, the second one is the reply."""
    key = f"{worked}/st"
    requests = [m for m in sound(read(system.kafka_bootstrap, REQUESTS_STREAMS.name)) if key_of(m) == key]
    assert [header(m, "ce_type") for m in requests] == ["CreateStream", "SealStream", "DeleteStream"]
    entries = [
        folded
        for folded in fold(system.kafka_bootstrap)
        if folded.outcome is Outcome.COUNTED and any(e.aggregate == f"stream:{key}" for e in folded.entry.events)
    ]
    happened = events(entries, lambda event: event.aggregate == f"stream:{key}")
    assert [type(event).__name__ for event in happened] == [*CREATED, *SEALED, *DELETED]
    assert len({folded.offset for folded in entries}) == 2 * len(requests)
    answered = [folded.entry.request for folded in entries if folded.entry.reply is not None]
    assert answered == [header(m, "ce_id") for m in requests]


def test_every_request_has_one_reply_in_its_partition(system: System, worked: str) -> None:
    requests = {
        (header(message, "ce_id"), message.partition())
        for message in sound(read(system.kafka_bootstrap, REQUESTS_STREAMS.name))
        if key_of(message).partition("/")[0] == worked
    }
    ids = {id for id, _ in requests}
    replies = [
        (folded.entry.request, folded.partition)
        for folded in fold(system.kafka_bootstrap)
        if folded.entry.reply is not None and folded.entry.request in ids and folded.outcome is Outcome.COUNTED
    ]
    assert len(replies) == 2 + 3 and set(replies) == requests


def test_our_partitions_are_those_of_librdkafka(system: System) -> None:
    """Into the topic of dead letters, which no service works off."""
    count = partitions_of(system, DEAD_LETTERS)
    keys = ["a", "ab", "abc", "abcd", "scope", "scope/stream", "_system", "cluster", "ünïcode/名前", "x" * 255]
    keys += [unique("key") for _ in range(40)]
    for key in keys:
        (sent,) = produce(system.kafka_bootstrap, DEAD_LETTERS.name, key, b"{}")
        assert sent.partition() == partition_of(key, count), key


def key_of(message: Message) -> str:
    return (message.key() or b"").decode()


def sound(records: list[Message]) -> list[Message]:
    """Without what other tests have put there to be refused: that has no headers."""
    return [message for message in records if message.headers()]
