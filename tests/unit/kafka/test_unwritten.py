"""librdkafka reads memory that it has not written, and the services' allocator makes that harmless."""

import ctypes
import itertools
import logging
import os
import re
import subprocess
import sys
import time
from logging.handlers import BufferingHandler
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

from sluice_local.services import ALLOCATOR

CLONE = Path(__file__).resolve().parents[3]
PARTITIONS = 8
ENOUGH = 30
MOVES_EVERY_S = 0.3
FILLED = 0x7F7F7F7F
"""What glibc fills new memory with, as the number of a partition: the complement of `perturb` in each byte."""


def test_a_broker_that_names_the_leaders_of_some_partitions_alone_ends_no_client() -> None:
    """Without the settings the numbers are any, and a negative one may end the client by SIGSEGV."""
    environment = {**os.environ, **ALLOCATOR}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {str(FILLED)}
    image = (CLONE / "deploy/images/runtime.Dockerfile").read_text()
    assert all(f"{name}={value} \\" in image for name, value in ALLOCATOR.items())


def _move_leaders() -> None:
    """Follow partitions of librdkafka's broker for tests, which says at each move that half of them have no leader.

    Prints the numbers of partitions that the client read of that, and does not know.
    """
    (library,) = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs").glob("librdkafka*")
    functions = ctypes.CDLL(str(library))
    functions.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
    functions.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    producer = Producer({"test.mock.num.brokers": 3})
    # The handle of C is the first field of the object, behind what all objects of Python have.
    handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__)
    cluster = ctypes.c_void_p(functions.rd_kafka_handle_mock_cluster(handle))
    functions.rd_kafka_mock_topic_create(cluster, b"t", PARTITIONS, 1)
    said = BufferingHandler(sys.maxsize)
    logger = logging.Logger("client")
    logger.addHandler(said)
    consumer = Consumer(
        {
            "bootstrap.servers": functions.rd_kafka_mock_cluster_bootstraps(cluster).decode(),
            "group.id": "g",
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": 1000,
            "logger": logger,
        }
    )
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
    unknown: list[str] = []
    for broker in itertools.cycle((1, 2, 3)):
        for partition in range(PARTITIONS // 2, PARTITIONS):
            functions.rd_kafka_mock_partition_push_leader_response(cluster, b"t", partition, -1, 0)
        for partition in range(PARTITIONS):
            functions.rd_kafka_mock_partition_set_leader(cluster, b"t", partition, broker)
        end = time.monotonic() + MOVES_EVERY_S
        while time.monotonic() < end:
            consumer.poll(0.01)
        unknown = re.findall(r"\[(-?\d+)\]: (?:not found|new leader)", "\n".join(r.getMessage() for r in said.buffer))
        if len(unknown) >= ENOUGH:
            break
    print(*unknown)


if __name__ == "__main__":
    _move_leaders()
