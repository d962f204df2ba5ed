"""Each test of this folder runs over both adapters: the twin in memory, in virtual time, and a real Kafka.

That Kafka is a broker of the folder's own, without any service: it is frozen and restarted.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from ports.worlds import KafkaWorld, MemoryWorld, Play, Scenario, World
from support import virtual_time

from harness import System

PlayAll = Callable[[Scenario], None]


@pytest.fixture(scope="package")
def broker(runs_folder: Path) -> Iterator[System]:
    """One Kafka and nothing else."""
    system = System(runs_folder / "ports")
    try:
        system.start("kafka")
        yield system
    finally:
        system.down()


@pytest.fixture(scope="package")
def admin(broker: System) -> AdminClient:
    """One for all tests: a client that is collected on a thread of librdkafka's own ends the process."""
    return AdminClient({"bootstrap.servers": broker.kafka_bootstrap, "log_level": 2})


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.integration)])
def play(request: Any) -> PlayAll:
    """Runs a scenario in a world of its own."""

    async def scene(make: Callable[[], World], scenario: Scenario) -> None:
        made = Play(make())
        try:
            await scenario(made)
        finally:
            await made.stop()

    if request.param == "memory":
        return lambda scenario: virtual_time.run(scene(MemoryWorld, scenario))
    broker: System = request.getfixturevalue("broker")
    admin: AdminClient = request.getfixturevalue("admin")
    return lambda scenario: asyncio.run(scene(lambda: KafkaWorld(broker, admin), scenario))
