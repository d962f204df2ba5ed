"""The embedded Kafka, ZooKeeper, BookKeeper, Redis and segment stores, without the services of Sluice."""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient
from redis import Redis
from support.documents import DOCS
from support.kafka import read

from harness import System, eventually
from harness.system import claimed_ports
from sluice.kafka.topics import JOURNAL, MAX_RECORD_BYTES, ensure_topics
from sluice_local.errors import PartFailed, PortTaken
from sluice_local.ports import is_free
from sluice_local.process import start_ticks

pytestmark = pytest.mark.integration

HOSTS = "/pravega/pravega-cluster/cluster/hosts"
COPY_RUNS_S = 120.0
SETTLED_S = 60.0
BOOKIES = "/pravega/pravega-cluster/bookkeeper/ledgers/available"


@pytest.fixture(scope="module")
def platform(runs_folder: Path) -> Iterator[System]:
    home = runs_folder / "platform"
    with System(
        home, segment_stores=1, api_gateways=0, stream_workflows=0, cluster_managers=0, txn_managers=0
    ) as system:
        yield system


@pytest.fixture
def zookeeper(platform: System) -> Iterator[KazooClient]:
    client = KazooClient(hosts=platform.zookeeper, timeout=5)
    client.start(timeout=SETTLED_S)
    yield client
    client.stop()
    client.close()


def write(platform: System, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": platform.kafka_bootstrap, "acks": "all", "enable.idempotence": True})
    outcomes: list[KafkaError | None] = []
    producer.produce(topic, value, on_delivery=lambda error, _message: outcomes.append(error))
    assert producer.flush(SETTLED_S) == 0
    assert outcomes == [None]


def read_first(platform: System, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": platform.kafka_bootstrap, "group.id": uuid.uuid4().hex})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])

        def polled() -> bytes | None:
            message = consumer.poll(1)
            return None if message is None or message.error() else message.value()

        return eventually(polled, SETTLED_S, f"{topic} has a record")
    finally:
        consumer.close()


def make_topic(platform: System, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": platform.kafka_bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SETTLED_S)


def test_kafka_killed_and_started_again_has_its_data(platform: System) -> None:
    topic = uuid.uuid4().hex
    make_topic(platform, topic)
    write(platform, topic, b"before")
    platform.kill("kafka")
    assert not platform.is_ready("kafka")
    platform.start("kafka")
    assert read_first(platform, topic) == b"before"
    write(platform, topic, b"after")


def test_a_topic_is_not_created_by_accident(platform: System) -> None:
    admin = AdminClient({"bootstrap.servers": platform.kafka_bootstrap})
    topic = uuid.uuid4().hex
    admin.list_topics(topic, timeout=SETTLED_S)
    assert topic not in admin.list_topics(timeout=SETTLED_S).topics


def test_redis_killed_and_started_again_has_its_data(platform: System) -> None:
    with Redis.from_url(platform.redis_url) as redis:
        redis.set("key", "value")
    platform.kill("redis")
    platform.start("redis")
    with Redis.from_url(platform.redis_url) as redis:
        assert redis.get("key") == b"value"


def test_a_segment_store_registers_and_is_gone_soon_after_its_death(platform: System, zookeeper: KazooClient) -> None:
    name = f"{platform.segment_store_addresses[0]}:"
    eventually(lambda: name in zookeeper.get_children(HOSTS), SETTLED_S, "the segment store is registered")
    platform.kill("segment-store-0")
    eventually(lambda: name not in zookeeper.get_children(HOSTS), SETTLED_S, "the session of the dead has ended")
    platform.start("segment-store-0")
    eventually(lambda: name in zookeeper.get_children(HOSTS), SETTLED_S, "the segment store is registered again")


def test_the_bookie_killed_and_started_again_takes_its_old_place(platform: System, zookeeper: KazooClient) -> None:
    platform.kill("bookie")
    platform.start("bookie")
    eventually(lambda: "bookie" in zookeeper.get_children(BOOKIES), SETTLED_S, "the bookie is registered again")


def test_zookeeper_killed_and_started_again_has_its_data(platform: System) -> None:
    def client() -> KazooClient:
        client = KazooClient(hosts=platform.zookeeper, timeout=5)
        client.start(timeout=SETTLED_S)
        return client

    before = client()
    before.create("/kept", b"value", makepath=True)
    before.stop()
    platform.kill("zookeeper")
    platform.start("zookeeper")
    after = client()
    try:
        assert after.get("/kept")[0] == b"value"
        eventually(lambda: "bookie" in after.get_children(BOOKIES), SETTLED_S, "the bookie is there")
        name = f"{platform.segment_store_addresses[0]}:"
        eventually(lambda: name in after.get_children(HOSTS), SETTLED_S, "the segment store is there")
    finally:
        after.stop()
    assert platform.is_ready("bookie")
    assert platform.is_ready("segment-store-0")


def test_a_frozen_part_is_not_ready_until_it_is_thawed(platform: System) -> None:
    platform.freeze("redis")
    assert platform.is_running("redis")
    assert not platform.is_ready("redis")
    platform.thaw("redis")
    platform.wait_ready("redis", SETTLED_S)


def test_a_part_that_ends_early_is_reported_with_its_log(runs_folder: Path, tmp_path: Path) -> None:
    system = bare_system(runs_folder / "early", jars=tmp_path)
    try:
        with pytest.raises(PartFailed, match=r"zookeeper ended with exit code 1; log .*zookeeper\.log") as caught:
            system.up()
        assert "ZooKeeperServerMain" in str(caught.value)
    finally:
        system.down()


def test_a_taken_port_is_reported_before_anything_starts(platform: System, runs_folder: Path) -> None:
    system = bare_system(runs_folder / "taken", zookeeper_port=platform.settings.zookeeper_port)
    with pytest.raises(PortTaken, match="SLUICE_ZOOKEEPER_PORT"):
        system.up()
    assert not any(system.is_running(name) for name in system.names)
    system.down()


def test_a_system_that_is_down_leaves_nothing_behind(runs_folder: Path) -> None:
    with bare_system(runs_folder / "brief") as system:
        pids = [system.pid(name) for name in system.names]
        assert all(start_ticks(pid) is not None for pid in pids)
    assert all(start_ticks(pid) is None for pid in pids)
    assert all(is_free(port) for port in claimed_ports(system.settings))
    assert not system.settings.data_dir.exists()


def test_the_journal_is_copied_as_the_guide_for_operators_says(platform: System, runs_folder: Path) -> None:
    """The script of docs/operations.md: nothing is lost or changed, and nothing is copied twice."""
    journal = fill_journal(platform)
    zookeeper, redis = platform.zookeeper, platform.redis_url
    with bare_system(runs_folder / "other", kafka_bootstrap=None, zookeeper=zookeeper, redis_url=redis) as other:
        done = copy_journal(platform, other)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "partition 0: 500 records\npartition 1: 500 records\npartition 2: 0 records\n"
        assert told(read(other.kafka_bootstrap, JOURNAL.name)) == journal
        again = copy_journal(platform, other)
        assert (again.returncode, again.stderr) == (1, f"{other.kafka_bootstrap} has a {JOURNAL.name} already\n")


def fill_journal(platform: System) -> list[tuple[object, ...]]:
    """Write a thousand records, of which one is large, and leave a partition empty; return what is there."""
    client = {"bootstrap.servers": platform.kafka_bootstrap}
    ensure_topics(client, partitions=3, replication=1)
    producer = Producer({**client, "message.max.bytes": MAX_RECORD_BYTES})
    for number in range(1000):
        value = bytes(5 << 20) if number == 0 else b"%d" % number
        key = None if number % 7 == 0 else f"scope/{number % 5}"
        headers: list[tuple[str, str | bytes | None]] = [("ce_id", str(number)), ("ce_type", "StreamCreated")]
        producer.produce(JOURNAL.name, value, key, number % 2, headers=headers[: number % 3])
    assert producer.flush(SETTLED_S) == 0
    written = told(read(platform.kafka_bootstrap, JOURNAL.name))
    assert len(written) == 1000
    return written


def told(records: list[Message]) -> list[tuple[object, ...]]:
    return [(m.partition(), m.key(), m.value(), m.headers()) for m in records]


def copy_journal(old: System, new: System) -> subprocess.CompletedProcess[str]:
    """Run the script, with the addresses that a reader puts in, and a queue that is full all the time."""
    (script,) = re.findall(r"^```python\n(.*?)^```$", (DOCS / "operations.md").read_text(), re.DOTALL | re.MULTILINE)
    for place, filled in (
        (r"^OLD, NEW, .*$", f'OLD, NEW, REPLICATION = "{old.kafka_bootstrap}", "{new.kafka_bootstrap}", 1'),
        (r'"acks": "all"', '"acks": "all", "queue.buffering.max.messages": 100'),
    ):
        script, places = re.subn(place, filled, str(script), flags=re.MULTILINE)
        assert places == 1, place
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=COPY_RUNS_S, check=False)


def bare_system(home: Path, **settings: Any) -> System:
    """ZooKeeper and Redis alone, unless settings say otherwise: enough to see how a system behaves."""
    return System(
        home,
        segment_stores=0,
        api_gateways=0,
        stream_workflows=0,
        cluster_managers=0,
        txn_managers=0,
        **{"kafka_bootstrap": "127.0.0.1:1", **settings},
    )
