"""The topics of a running system: declared settings, readable records with CloudEvents headers, keys in their place."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from support.controller import Controller, controller, unique
from support.kafka import header, produce, read
from support.transactions import Transactions

from harness import System
from sluice.domain.commands import Command
from sluice.domain.events import Event
from sluice.domain.model import decode_record
from sluice.engine.partition import partition_of
from sluice.kafka.topics import (
    ABORT,
    COMMIT,
    DEAD_LETTERS,
    JOURNAL,
    REQUESTS_CLUSTER,
    REQUESTS_STREAMS,
    REQUESTS_TRANSACTIONS,
    TOPICS,
    Topic,
)

pytestmark = pytest.mark.integration

BY_NAME = {topic.name: topic for topic in TOPICS}
OF_TRANSACTIONS = (REQUESTS_TRANSACTIONS, COMMIT, ABORT)


@pytest.fixture(scope="module")
def gateway(system: System) -> Iterator[Controller]:
    with controller(system.grpc_address) as client:
        yield client


@pytest.fixture(scope="module")
def worked(gateway: Controller) -> str:
    """A scope in which something was done, and refused, so that the topics have something to show."""
    scope = unique("topics")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_scope(scope) == "SCOPE_EXISTS"
    for number in range(5):
        name = f"st-{number}"
        assert gateway.create_stream(scope, name, 2) == "SUCCESS"
        assert gateway.seal(scope, name) == "SUCCESS"
        assert gateway.delete(scope, name) == "SUCCESS"
    return scope


@pytest.fixture(scope="module")
def transacted(gateway: Controller) -> str:
    """A scope with a stream whose transactions were committed and aborted, by their client and by their lease."""
    scope = unique("topics")
    assert gateway.create_scope(scope) == gateway.create_stream(scope, "st", 2) == "SUCCESS"
    transactions = Transactions(gateway, scope)
    committed, aborted, abandoned = (transactions.open() for _ in range(3))
    assert transactions.commit(committed) == transactions.abort(aborted) == "SUCCESS"
    assert transactions.ping(abandoned, lease_ms=0) == "OK"
    transactions.await_state(abandoned, "ABORTED")
    return scope


def partitions_of(system: System, topic: Topic) -> int:
    return topic.partitions or system.settings.partitions


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_topic_has_the_settings_it_is_declared_with(system: System, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})
    found = admin.list_topics(timeout=20).topics[name]
    assert len(found.partitions) == partitions_of(system, BY_NAME[name])
    resource = ConfigResource(ResourceType.TOPIC, name)
    present = admin.describe_configs([resource], request_timeout=20)[resource].result(20)
    declared = BY_NAME[name].config()
    assert {key: present[key].value for key in declared} == declared


def test_there_are_no_other_topics_of_ours(system: System) -> None:
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})
    present = {name for name in admin.list_topics(timeout=20).topics if name.startswith("sluice.")}
    assert present == set(BY_NAME)


@pytest.mark.usefixtures("worked", "transacted")
@pytest.mark.parametrize(
    "topic", [JOURNAL, REQUESTS_STREAMS, REQUESTS_CLUSTER, *OF_TRANSACTIONS], ids=lambda topic: topic.name
)
def test_records_are_json_with_the_attributes_of_cloud_events(system: System, topic: Topic) -> None:
    records = sound(read(system.kafka_bootstrap, topic.name))
    assert records
    for message in records:
        value = json.loads(message.value() or b"")
        key = (message.key() or b"").decode()
        assert header(message, "ce_specversion") == "1.0"
        assert header(message, "ce_id") == value["id"]
        assert header(message, "ce_source") == value["by"]
        assert re.fullmatch(r"(api-gateway|stream-workflows|cluster-manager|txn-manager|people)/.+", value["by"])
        at = datetime.fromisoformat(header(message, "ce_time"))
        assert round(at.timestamp() * 1000) == value["at"]
        assert abs(datetime.now(UTC) - at) < timedelta(hours=1)
        subjects = [pair[1] for pair in message.headers() or [] if pair[0] == "ce_subject"]
        assert subjects == ([key.encode()] if key else [])
        assert header(message, "content-type") == "application/json"
        assert header(message, "ce_type") == kind_of(topic, value)
        assert message.timestamp()[0] == 2, "timed by the broker"


def kind_of(topic: Topic, value: dict[str, object]) -> str:
    """What the type of a record must be, from its value."""
    if topic is not JOURNAL:
        command = value["command"]
        assert isinstance(command, dict)
        assert command["type"] in {kind.__name__ for kind in get_args(Command)}
        return str(command["type"])
    entries = value["entries"]
    assert isinstance(entries, list)
    happened = [event for entry in entries for event in entry.get("events", [])]
    for event in happened:
        assert event["type"] in {kind.__name__ for kind in get_args(Event)}
    return str(happened[0]["type"]) if happened else "Refusal"


@pytest.mark.parametrize("topic", [JOURNAL, REQUESTS_STREAMS, REQUESTS_CLUSTER], ids=lambda topic: topic.name)
def test_every_record_is_in_the_partition_of_its_key(system: System, worked: str, topic: Topic) -> None:
    count = partitions_of(system, topic)
    records = sound(read(system.kafka_bootstrap, topic.name))
    keys = {(message.key() or b"").decode() for message in records}
    if topic is REQUESTS_CLUSTER:
        assert keys == {"cluster"}
    else:
        assert {worked, *(f"{worked}/st-{number}" for number in range(5))} <= keys
    for message in records:
        key = (message.key() or b"").decode()
        assert message.partition() == partition_of(key, count), key


KINDS = {
    REQUESTS_TRANSACTIONS: {"OpenTransaction", "PingTransaction", "CheckLease"},
    COMMIT: {"CommitTransaction", "CheckLease"},
    ABORT: {"AbortTransaction"},
}


@pytest.mark.parametrize("topic", OF_TRANSACTIONS, ids=lambda topic: topic.name)
def test_a_topic_of_transactions_holds_the_commands_it_is_for(system: System, transacted: str, topic: Topic) -> None:
    """Under the key of their stream; an abort says why."""
    records = sound(
        read(system.kafka_bootstrap, topic.name, [partition_of(f"{transacted}/st", partitions_of(system, topic))])
    )
    of_stream = [json.loads(m.value() or b"")["command"] for m in records if m.key() == f"{transacted}/st".encode()]
    assert {command["type"] for command in of_stream} == KINDS[topic]
    if topic is ABORT:
        assert [command.get("reason", "user") for command in of_stream] == ["user", "lease"]


def test_our_partitions_are_those_of_librdkafka(system: System) -> None:
    """Into the topic of dead letters, which nobody reads."""
    count = partitions_of(system, DEAD_LETTERS)
    keys = ["a", "ab", "abc", "abcd", "scope", "scope/stream", "_system", "cluster", "ünïcode/名前", "x" * 255]
    keys += [unique("key") for _ in range(40)]
    for key in keys:
        (sent,) = produce(system.kafka_bootstrap, DEAD_LETTERS.name, key, b"{}")
        assert sent.partition() == partition_of(key, count), key


def test_a_request_and_its_record_share_id_and_partition(system: System, worked: str) -> None:
    requests = {header(m, "ce_id"): m for m in sound(read(system.kafka_bootstrap, REQUESTS_STREAMS.name))}
    answered = 0
    for message in sound(read(system.kafka_bootstrap, JOURNAL.name)):
        for entry in decode_record(message.value() or b"").entries:
            if entry.request is None or not (message.key() or b"").decode().startswith(worked):
                continue
            answered += 1
            assert requests[entry.request].partition() == message.partition()
    assert answered == 2 + 5 * 3


def sound(records: list[Message]) -> list[Message]:
    """Without what other tests have put there to be refused: that has no headers."""
    return [message for message in records if message.headers()]
