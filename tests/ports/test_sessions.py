"""The session of a group's member: as short as requested, or as a broker with Kafka's own settings allows."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from support.wait import eventually_async

from harness import System
from sluice.engine.ports import Message
from sluice.engine.record import RequestPosition
from sluice.kafka.request_source import KafkaRequestSource
from sluice.kafka_config import clients

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
TOO_SHORT_S = 0.5
"""The broker of this folder allows sessions of 1 s."""


class Listener:
    """See SourceListener: takes note of what is assigned."""

    def __init__(self) -> None:
        self.owned: set[int] = set()

    def assigned(self, partitions: Collection[int]) -> None:
        self.owned |= set(partitions)

    def revoked(self, partitions: Collection[int]) -> None:
        self.owned -= set(partitions)

    def lost(self, partitions: Collection[int]) -> None:
        self.owned -= set(partitions)

    def received(self, messages: Sequence[Message]) -> None:
        """Nothing is sent here."""

    def positions(self) -> Mapping[int, RequestPosition]:
        return {}


@asynccontextmanager
async def member(broker: System, admin: AdminClient) -> AsyncIterator[tuple[KafkaRequestSource, Listener]]:
    topic = f"requests-{uuid4().hex}"
    await asyncio.to_thread(admin.create_topics([NewTopic(topic, 2, 1)])[topic].result, DEADLINE_S)
    client = {"bootstrap.servers": broker.kafka_bootstrap, "log_level": 2}
    source, listener = KafkaRequestSource(client, topic, uuid4().hex, TOO_SHORT_S), Listener()
    source.start(listener)
    try:
        yield source, listener
    finally:
        await source.stop()


async def test_a_member_whose_session_is_refused_joins_with_a_longer_one(broker: System, admin: AdminClient) -> None:
    async with member(broker, admin) as (source, listener):
        await eventually_async(lambda: listener.owned == {0, 1}, DEADLINE_S, "it has the partitions")
        assert source.failure is None


async def test_a_session_that_stays_refused_is_a_failure_that_names_the_setting(
    broker: System, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "DEFAULT_SESSION_S", TOO_SHORT_S)
    async with member(broker, admin) as (source, _):
        await eventually_async(lambda: source.failure is not None, DEADLINE_S, "it is refused")
        assert "SLUICE_KAFKA_SESSION_TIMEOUT_S" in str(source.failure)
