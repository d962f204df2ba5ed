"""Kafka in memory: topics are lists. Producers keep their order in a partition, followers and groups read.

An outage stops both ways: what is sent then lands when it is over, or fails after the producer's time, and whether a
failed record is in the topic is open. Records are dated when they land, as the broker does.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from simulation.txn.lives import SimulationLoop

from sluice.journal.barrier import BarrierError, Ends
from sluice.messaging.partition import partition_of
from sluice.messaging.producer import ProduceError
from sluice.messaging.topics import JOURNAL

PARTITIONS = 2
PRODUCE_TIMEOUT_S = 10.0
BARRIER_TIMEOUT_S = 2.0
_TICK_S = 1e-6
_DELAYS_S = (0.0, 0.0, 0.0, 0.0005, 0.001, 0.003, 0.02)


class Message:
    """As much of Kafka's message as consumers look at."""

    __slots__ = ("_at", "_key", "_offset", "_partition", "_topic", "_value")

    def __init__(self, topic: str, partition: int, offset: int, key: str, value: bytes, at: int) -> None:
        self._topic, self._partition, self._offset = topic, partition, offset
        self._key, self._value, self._at = key, value, at

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at

    def headers(self) -> None:
        return None

    def error(self) -> None:
        return None


class Broker:
    """`on_landed` is told of every record; `watchers` of a topic, that there is something to fetch."""

    def __init__(self, loop: SimulationLoop, random: Random, on_landed: Callable[[Message], None]) -> None:
        self.loop = loop
        self.random = random
        self.watchers: dict[str, list[Callable[[], None]]] = {}
        self.outages: list[tuple[float, float]] = []
        self._on_landed = on_landed
        self._logs: dict[str, list[list[Message]]] = {}

    def log(self, topic: str, partition: int) -> list[Message]:
        return self.logs(topic)[partition]

    def logs(self, topic: str) -> list[list[Message]]:
        logs = self._logs.get(topic)
        if logs is None:
            logs = self._logs[topic] = [[] for _ in range(PARTITIONS)]
        return logs

    def all_logs(self) -> list[list[Message]]:
        """Whatever landed, topic by topic."""
        return [log for _, logs in sorted(self._logs.items()) for log in logs]

    def delay_s(self) -> float:
        """How long something takes on the way this time."""
        return self.random.choice(_DELAYS_S)

    # Outages.

    @property
    def back_s(self) -> float | None:
        """When it will be back; None while it is there."""
        if self.outages and self.loop.now < self.outages[-1][1]:
            return self.outages[-1][1]
        return None

    def go_away(self, seconds: float) -> None:
        if self.back_s is None:
            until = self.loop.now + seconds
            self.outages.append((self.loop.now, until))
            self.loop.call_at(until, self._come_back, context=self.loop.outside)

    def come_back(self) -> None:
        """End an outage before its time."""
        if self.back_s is not None:
            self.outages[-1] = (self.outages[-1][0], self.loop.now)
            self._come_back()

    def _come_back(self) -> None:
        if self.back_s is None:
            for watchers in self.watchers.values():
                for watcher in list(watchers):
                    watcher()

    # What lands, and who is told.

    def land(self, topic: str, key: str, value: bytes) -> Message:
        partition = partition_of(key, PARTITIONS)
        log = self.logs(topic)[partition]
        message = Message(topic, partition, len(log), key, value, self.now_ms())
        log.append(message)
        self._on_landed(message)
        for watcher in self.watchers.get(topic, ()):
            watcher()
        return message

    def now_ms(self) -> int:
        return int(self.loop.now * 1e9) // 1_000_000

    def watch(self, topic: str, watcher: Callable[[], None]) -> None:
        self.watchers.setdefault(topic, []).append(watcher)

    def unwatch(self, topic: str, watcher: Callable[[], None]) -> None:
        self.watchers[topic].remove(watcher)


class Producer:
    """One process's. `touch` is told of what it does to the outside, and may not return."""

    def __init__(self, broker: Broker, touch: Callable[[str], None]) -> None:
        self._broker = broker
        self._touch = touch
        self._last: dict[tuple[str, int], float] = {}

    def send(self, topic: str, key: str, value: bytes, _headers: Any) -> asyncio.Future[None]:
        """See KafkaProducer."""
        sent: asyncio.Future[None] = self._broker.loop.create_future()

        def acknowledged(error: ProduceError | None) -> None:
            if sent.done():
                return
            if error is None:
                sent.set_result(None)
            else:
                sent.set_exception(error)

        self._produce(topic, key, value, acknowledged)
        return sent

    def send_quietly(self, topic: str, key: str, value: bytes, _headers: Any, failed: Callable[[Any], None]) -> None:
        """See KafkaProducer."""

        def acknowledged(error: ProduceError | None) -> None:
            if error is not None:
                failed(error)

        self._produce(topic, key, value, acknowledged)

    def _produce(self, topic: str, key: str, value: bytes, done: Callable[[ProduceError | None], None]) -> None:
        self._touch(f"append to {topic}")
        broker, loop = self._broker, self._broker.loop
        back_s = broker.back_s
        if back_s is None:
            self._land_at(loop.now + broker.delay_s(), topic, key, value, done)
        elif back_s - loop.now < PRODUCE_TIMEOUT_S:
            self._land_at(back_s + broker.delay_s(), topic, key, value, done)
        else:
            late = ProduceError("Local: Message timed out")
            loop.call_at(loop.now + PRODUCE_TIMEOUT_S, done, late, context=loop.outside)
            if broker.random.random() < 0.3:
                self._land_at(back_s + broker.delay_s(), topic, key, value, _nobody)
        self._touch(f"appended to {topic}")

    def _land_at(self, when: float, topic: str, key: str, value: bytes, done: Callable[[None], None]) -> None:
        """Behind what was sent to the partition before."""
        where = (topic, partition_of(key, PARTITIONS))
        loop = self._broker.loop
        when = max(when, self._last.get(where, 0.0) + _TICK_S)
        self._last[where] = when
        if when <= loop.now:
            loop.call_soon(self._land, topic, key, value, done, context=loop.outside)
            return
        loop.call_at(when, self._land, topic, key, value, done, context=loop.outside)

    def _land(self, topic: str, key: str, value: bytes, done: Callable[[None], None]) -> None:
        self._broker.land(topic, key, value)
        done(None)


def _nobody(_error: None) -> None:
    """Nobody waits any more."""


class Fetching:
    """Fetches what a topic has for one process, and hands it over in the process's own life.

    `deliver(batch)` gets what is behind the positions in `at`, by partition.
    """

    def __init__(self, broker: Broker, topic: str, context: Any, deliver: Callable[[list[Message]], None]) -> None:
        self.at: dict[int, int] = {}
        self.stale_until = 0.0
        self._broker = broker
        self._topic = topic
        self._context = context
        self._deliver = deliver
        self._due = False
        broker.watch(topic, self.notice)

    def start(self, positions: dict[int, int]) -> None:
        self.at.update(positions)
        self.notice()

    def end(self) -> None:
        self._broker.unwatch(self._topic, self.notice)

    def notice(self) -> None:
        if not self._due and self.at:
            self._due = True
            loop = self._broker.loop
            when = max(loop.now + self._broker.delay_s(), self.stale_until)
            if when <= loop.now:
                loop.call_soon(self._fetch, context=self._context)
            else:
                loop.call_at(when, self._fetch, context=self._context)

    def _fetch(self) -> None:
        self._due = False
        loop = self._broker.loop
        if self._broker.back_s is not None:
            return
        if loop.now < self.stale_until:
            self.notice()
            return
        batch: list[Message] = []
        for partition, position in self.at.items():
            log = self._broker.log(self._topic, partition)
            if position < len(log):
                batch += log[position:]
                self.at[partition] = len(log)
        if batch:
            self._deliver(batch)


class EndOffsets:
    """The read barrier's question, answered from the lists."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ask(self) -> asyncio.Future[Ends]:
        answer: asyncio.Future[Ends] = self._broker.loop.create_future()
        self._ask(answer, self._broker.loop.now + BARRIER_TIMEOUT_S)
        return answer

    def _ask(self, answer: asyncio.Future[Ends], until_s: float) -> None:
        loop, back_s = self._broker.loop, self._broker.back_s
        if answer.done():
            return
        if back_s is None:
            answer.set_result(self.ends())
        elif back_s < until_s:
            loop.call_at(back_s, self._ask, answer, until_s, context=loop.outside)
        else:
            loop.call_at(until_s, _unknown, answer, context=loop.outside)

    def ends(self) -> Ends:
        return {p: len(log) for p, log in enumerate(self._broker.logs(JOURNAL.name))}


def _unknown(answer: asyncio.Future[Ends]) -> None:
    if not answer.done():
        answer.set_exception(BarrierError("Local: Timed out"))
