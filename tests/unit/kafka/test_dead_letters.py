"""A record that nobody could handle is kept, however long Kafka is away."""

import asyncio
from typing import Any, cast

from support.virtual_time import run

from sluice.engine.ports import RecordTooLargeError, SendError
from sluice.kafka.dead_letters import Source, send_dead_letter

SOURCE = Source("sluice.commit", 3, 7, "sc/st", b"{}")


class Kafka:
    """Raises what it is to raise first."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.kept: list[bytes] = []
        self.attempts = 0

    def send(self, _topic: str, _key: str, value: bytes, _headers: object) -> asyncio.Future[None]:
        self.attempts += 1
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failures:
            sent.set_exception(self._failures.pop(0))
        else:
            self.kept.append(value)
            sent.set_result(None)
        return sent


def test_a_dead_letter_outlasts_an_outage() -> None:
    kafka = Kafka(*(SendError("away") for _ in range(20)))
    run(send_dead_letter(cast(Any, kafka), SOURCE, "txn-manager/0", "why"))
    assert kafka.kept == [b"{}"] and kafka.attempts == 21


def test_one_that_no_topic_can_hold_is_told_to_the_log_alone() -> None:
    kafka = Kafka(RecordTooLargeError("9 MB"))
    run(send_dead_letter(cast(Any, kafka), SOURCE, "txn-manager/0", "why"))
    assert kafka.kept == [] and kafka.attempts == 1
