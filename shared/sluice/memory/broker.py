"""The broker in memory: topics are lists. An outage stops both ways.

What is sent during an outage lands when it is over, or fails after the producer's time; whether a failed record is in
the topic is open then. Records are dated when they land, as the broker does. All chance comes from `random`.
"""

import asyncio
import contextvars
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from sluice.engine.partition import partition_of
from sluice.engine.ports import RecordTooLargeError, SendError

MAX_RECORD_BYTES = 8 * 1024 * 1024
PRODUCE_TIMEOUT_S = 10.0
_TICK_S = 1e-6

_ALL_ALIKE: Mapping[str, int] = {}

Headers = Sequence[tuple[str, Any]] | Mapping[str, Any]


class MemoryMessage:
    """See Message."""

    __slots__ = ("_epoch", "_facts", "_headers")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: str,
        value: bytes,
        at_ms: int = 0,
        headers: Headers = (),
        epoch: int = 0,
    ) -> None:
        self._facts = (topic, partition, offset, key.encode(), value, at_ms)
        self._headers = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        self._epoch = epoch

    def topic(self) -> str:
        return self._facts[0]

    def partition(self) -> int:
        return self._facts[1]

    def offset(self) -> int:
        return self._facts[2]

    def key(self) -> bytes:
        return self._facts[3]

    def value(self) -> bytes:
        return self._facts[4]

    def timestamp(self) -> tuple[int, int]:
        """See Message."""
        return 2, self._facts[5]

    def headers(self) -> list[tuple[str, bytes]]:
        """As a consumer gets them: values are bytes."""
        return [(name, v.encode() if isinstance(v, str) else v) for name, v in self._headers]

    def leader_epoch(self) -> int:
        """See Message."""
        return self._epoch

    def error(self) -> None:
        """See Message."""
        return


class MemoryBroker:
    """`delays_s` is what anything may take on its way; `on_landed` receives every record.

    `refusals` and `lost_acks` count the next records of `faulty_topic` that are not taken, and that are taken without
    an acknowledgement. A partition of a topic in `unwritable` takes no records. `is_running` says whether a member's
    process runs: one that does not loses its partitions after the session's time. `counts` are the topics that do not
    have so many `partitions` as all others.
    """

    def __init__(
        self,
        partitions: int = 4,
        random: Random | None = None,
        delays_s: Sequence[float] = (0.0,),
        began_ms: int = 0,
        max_bytes: int = MAX_RECORD_BYTES,
        counts: Mapping[str, int] = _ALL_ALIKE,
    ) -> None:
        self.partitions = partitions
        self._counts = counts
        self.random = random or Random(0)
        self.loop = asyncio.get_running_loop()
        self.outside = contextvars.Context()
        """For what happens whichever process runs or dies."""
        self.on_landed: list[Callable[[MemoryMessage], None]] = []
        self.is_running: Callable[[object], bool] = lambda _process: True
        self.max_bytes = max_bytes
        self.refusals = 0
        self.lost_acks = 0
        self.faulty_topic = ""
        self.unwritable: set[tuple[str, int]] = set()
        self.outages: list[tuple[float, float]] = []
        self._delays_s = tuple(delays_s)
        self._began_ms = began_ms
        self._logs: dict[str, list[list[MemoryMessage]]] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._begins: dict[tuple[str, int], int] = {}
        self._creations: dict[str, int] = {}
        self._fetchings: dict[str, list[Fetching]] = {}

    def now_ms(self) -> int:
        """See Clock."""
        return self._began_ms + int(self.loop.time() * 1e9) // 1_000_000

    def count(self, topic: str) -> int:
        """How many partitions the topic has."""
        return self._counts.get(topic, self.partitions)

    def logs(self, topic: str) -> list[list[MemoryMessage]]:
        """The records of each partition."""
        # Threads ask, too: the first list is the list of all.
        return self._logs.setdefault(topic, [[] for _ in range(self.count(topic))])

    def log(self, topic: str, partition: int) -> list[MemoryMessage]:
        return self.logs(topic)[partition]

    def begin(self, topic: str, partition: int) -> int:
        """The offset of the first record that consumers get: those below it are removed for them."""
        return self._begins.get((topic, partition), 0)

    def trim(self, topic: str, partition: int, before: int, appended_before_ms: int | None = None) -> int:
        """Remove the records below the offset that were appended before that time; where the partition begins now."""
        log, begin = self.log(topic, partition), self.begin(topic, partition)
        while begin < min(before, len(log)):
            if appended_before_ms is not None and log[begin].timestamp()[1] >= appended_before_ms:
                break
            begin += 1
        self._begins[topic, partition] = begin
        return begin

    def topic_id(self, topic: str) -> int:
        """Another one when the topic is made anew."""
        return self._creations.get(topic, 0)

    def recreate(self, topic: str) -> None:
        """Delete the topic and create it anew, empty."""
        self._creations[topic] = self.topic_id(topic) + 1
        self._logs.pop(topic, None)
        for partition in range(self.count(topic)):
            self._epochs.pop((topic, partition), None)
            self._begins.pop((topic, partition), None)
            self._cut(topic, partition, 0)

    def all_logs(self) -> list[list[MemoryMessage]]:
        """Whatever landed, topic by topic."""
        return [log for _, logs in sorted(self._logs.items()) for log in logs]

    def delay_s(self) -> float:
        """How long something takes on the way this time."""
        return self.random.choice(self._delays_s) if len(self._delays_s) > 1 else self._delays_s[0]

    # Outages.

    @property
    def back_s(self) -> float | None:
        """When it will be back, in the loop's time; None while it is there."""
        if self.outages and self.loop.time() < self.outages[-1][1]:
            return self.outages[-1][1]
        return None

    def go_away(self, seconds: float) -> None:
        if self.back_s is None:
            until = self.loop.time() + seconds
            self.outages.append((self.loop.time(), until))
            self.loop.call_at(until, self._come_back, context=self.outside)

    def come_back(self) -> None:
        """End an outage before its time."""
        if self.back_s is not None:
            self.outages[-1] = (self.outages[-1][0], self.loop.time())
            self._come_back()

    def _come_back(self) -> None:
        if self.back_s is None:
            for fetchings in self._fetchings.values():
                for fetching in list(fetchings):
                    fetching.notice()

    def lose_end(self, topic: str, partition: int, end: int) -> None:
        """The partition loses its records from `end` on, as when all replicas lost them; another leader follows."""
        del self.log(topic, partition)[end:]
        self.change_leader(topic, partition)
        self._cut(topic, partition, end)

    def end_of_epoch(self, topic: str, partition: int, epoch: int) -> int:
        """Where the records of this leader epoch, and of those before it, end."""
        return bisect_right(self.log(topic, partition), epoch, key=MemoryMessage.leader_epoch)

    def change_leader(self, topic: str, partition: int) -> None:
        """What lands from now on has a higher leader epoch."""
        self._epochs[topic, partition] = self._epochs.get((topic, partition), 0) + 1

    def _cut(self, topic: str, partition: int, end: int) -> None:
        """Who has read further than the end there is now begins at the first record, as Kafka's consumers do."""
        for fetching in self._fetchings.get(topic, ()):
            if fetching.at.get(partition, 0) > end:
                fetching.at[partition] = 0
                fetching.notice()

    # What lands, and who is notified.

    def land(self, topic: str, key: str, value: bytes, headers: Headers = ()) -> MemoryMessage:
        return self.land_in(topic, partition_of(key, self.count(topic)), key, value, headers)

    def land_in(self, topic: str, partition: int, key: str, value: bytes, headers: Headers = ()) -> MemoryMessage:
        """Append to a partition that need not be that of the key."""
        log = self.log(topic, partition)
        epoch = self._epochs.get((topic, partition), 0)
        message = MemoryMessage(topic, partition, len(log), key, value, self.now_ms(), headers, epoch)
        log.append(message)
        for listener in self.on_landed:
            listener(message)
        for fetching in list(self._fetchings.get(topic, ())):
            fetching.notice()
        return message

    def watch(self, topic: str, fetching: "Fetching") -> None:
        self._fetchings.setdefault(topic, []).append(fetching)

    def unwatch(self, topic: str, fetching: "Fetching") -> None:
        fetchings = self._fetchings.get(topic, [])
        if fetching in fetchings:
            fetchings.remove(fetching)


class MemoryProducer:
    """One process's. `touch` is called before each effect on the outside, and may not return."""

    def __init__(self, broker: MemoryBroker, touch: Callable[[str], None] = lambda _what: None) -> None:
        self._broker = broker
        self._touch = touch
        self._last: dict[tuple[str, int], float] = {}

    def start(self) -> None:
        """See KafkaProducer."""

    def stop(self, _timeout_s: float = 5.0) -> None:
        """See KafkaProducer."""

    def send(self, topic: str, key: str, value: bytes | None, headers: Headers) -> asyncio.Future[None]:
        """See KafkaProducer."""
        sent: asyncio.Future[None] = self._broker.loop.create_future()

        def acknowledged(error: SendError | None) -> None:
            if sent.done():
                return
            if error is None:
                sent.set_result(None)
            else:
                sent.set_exception(error)

        self._produce(topic, key, value or b"", headers, acknowledged)
        return sent

    def send_quietly(
        self, topic: str, key: str, value: bytes, headers: Headers, failed: Callable[[SendError], None]
    ) -> None:
        """See KafkaProducer."""

        def acknowledged(error: SendError | None) -> None:
            if error is not None:
                failed(error)

        self._produce(topic, key, value, headers, acknowledged)

    def _produce(
        self, topic: str, key: str, value: bytes, headers: Headers, done: Callable[[SendError | None], None]
    ) -> None:
        self._touch(f"append to {topic}")
        broker, loop = self._broker, self._broker.loop
        if len(value) > broker.max_bytes:
            raise RecordTooLargeError(f"{len(value)} bytes, the limit is {broker.max_bytes}")
        now, back_s = loop.time(), broker.back_s
        if broker.faulty_topic == topic and broker.refusals:
            broker.refusals -= 1
            raise SendError("away")
        if (topic, partition_of(key, broker.count(topic))) in broker.unwritable:
            loop.call_at(now + PRODUCE_TIMEOUT_S, done, SendError("Local: Message timed out"), context=broker.outside)
        elif broker.faulty_topic == topic and broker.lost_acks:
            broker.lost_acks -= 1
            self._land_at(now + broker.delay_s(), topic, key, value, headers, _ignore)
            loop.call_at(now + PRODUCE_TIMEOUT_S, done, SendError("Local: Message timed out"), context=broker.outside)
        elif back_s is None:
            self._land_at(now + broker.delay_s(), topic, key, value, headers, done)
        elif back_s - now < PRODUCE_TIMEOUT_S:
            self._land_at(back_s + broker.delay_s(), topic, key, value, headers, done)
        else:
            loop.call_at(now + PRODUCE_TIMEOUT_S, done, SendError("Local: Message timed out"), context=broker.outside)
            if broker.random.random() < 0.3:
                self._land_at(back_s + broker.delay_s(), topic, key, value, headers, _ignore)
        self._touch(f"appended to {topic}")

    def _land_at(
        self, when: float, topic: str, key: str, value: bytes, headers: Headers, done: Callable[[None], None]
    ) -> None:
        """Behind what was sent to the partition before."""
        where = (topic, partition_of(key, self._broker.count(topic)))
        loop, outside = self._broker.loop, self._broker.outside
        when = max(when, self._last.get(where, 0.0))
        self._last[where] = when + _TICK_S
        if when <= loop.time():
            loop.call_soon(self._land, topic, key, value, headers, done, context=outside)
        else:
            loop.call_at(when, self._land, topic, key, value, headers, done, context=outside)

    def _land(self, topic: str, key: str, value: bytes, headers: Headers, done: Callable[[None], None]) -> None:
        self._broker.land(topic, key, value, headers)
        done(None)


def _ignore(_error: None) -> None:
    """No caller waits any more."""


class Fetching:
    """Fetches what a topic has for one process, and hands it over in the process's own context.

    `deliver(batch)` gets what is behind the positions in `at`, by partition. Until `stale_until` it fetches nothing;
    a partition in `held` is left alone.
    """

    def __init__(self, broker: MemoryBroker, topic: str, deliver: Callable[[list[MemoryMessage]], None]) -> None:
        self.at: dict[int, int] = {}
        self.held: set[int] = set()
        self.stale_until = 0.0
        self._broker = broker
        self._topic = topic
        self._context = contextvars.copy_context()
        self._deliver = deliver
        self._due = False
        broker.watch(topic, self)

    def start(self, positions: Mapping[int, int]) -> None:
        self.at.update(positions)
        self.notice()

    def end(self) -> None:
        self.at.clear()
        self._broker.unwatch(self._topic, self)

    def notice(self) -> None:
        if self._due or not self.at:
            return
        self._due = True
        loop = self._broker.loop
        when = max(loop.time() + self._broker.delay_s(), self.stale_until)
        if when <= loop.time():
            loop.call_soon(self._fetch, context=self._context)
        else:
            loop.call_at(when, self._fetch, context=self._context)

    def _fetch(self) -> None:
        self._due = False
        if self._broker.back_s is not None:
            return
        if self._broker.loop.time() < self.stale_until:
            self.notice()
            return
        batch: list[MemoryMessage] = []
        for partition, position in self.at.items():
            log = self._broker.log(self._topic, partition)
            if partition not in self.held and position < len(log):
                batch += log[max(position, self._broker.begin(self._topic, partition)) :]
                self.at[partition] = len(log)
        if batch:
            self._deliver(batch)
