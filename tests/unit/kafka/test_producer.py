"""A producer that can send nothing more is replaced, and no call waits for what it still had; a stop waits for all."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from support.wait import SOON_S

from sluice.engine.ports import SendError
from sluice.kafka import producer as module
from sluice.kafka.producer import KafkaProducer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


class _Failed(Producer):  # type: ignore[misc]
    """Takes the first record; then it has failed for good, as librdkafka tells it from `produce`."""

    made = 0
    taken = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        _Failed.made += 1

    def produce(self, *args: object, **kwargs: object) -> None:
        self.taken += 1
        if self.taken > 1:
            raise KafkaException(KafkaError(KafkaError._FATAL))
        super().produce(*args, **kwargs)


class _Repetition(Producer):  # type: ignore[misc]
    """Answers as librdkafka does when the broker took a record for a repetition: no error, and no offset."""

    def produce(self, *_args: object, on_delivery: Any, **_more: object) -> None:
        on_delivery(None, SimpleNamespace(offset=lambda: None))


async def test_what_the_broker_takes_for_a_repetition_may_not_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Producer", _Repetition)
    producer, failed = KafkaProducer(NOWHERE, 1), asyncio.Event()
    with pytest.raises(SendError, match="repetition"):
        await asyncio.wait_for(producer.send("t", "k", b"", []), SOON_S)
    producer.send_quietly("t", "k", b"", [], lambda _error: failed.set())
    await asyncio.wait_for(failed.wait(), SOON_S)


async def test_a_producer_that_failed_for_good_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Producer", _Failed)
    monkeypatch.setattr(_Failed, "made", 0)
    producer = KafkaProducer(NOWHERE, 1, timeout_ms=100)
    producer.start()
    try:
        waiting = producer.send("t", "k", b"", [])
        with pytest.raises(SendError):
            await asyncio.wait_for(producer.send("another", "k", b"", []), SOON_S)
        assert _Failed.made == 2
        with pytest.raises(SendError):
            await asyncio.wait_for(waiting, SOON_S)
        producer.send("t", "k", b"", []).cancel()
    finally:
        producer.stop()


async def test_a_stop_waits_for_records_that_wait_for_their_batch() -> None:
    producer = KafkaProducer(NOWHERE, 1, timeout_ms=100)
    producer.start()
    sent = [producer.send("t", "k", b"", []) for _ in range(3)]
    await asyncio.to_thread(producer.stop, 30.0)
    assert [type(future.exception()) for future in sent] == [SendError] * 3
