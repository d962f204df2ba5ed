"""A record of a topic, and the four queries that commands send to Kafka.

Offsets are half-open: a span's records lie in [start, end).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

Headers = tuple[tuple[str, str], ...]


class KafkaRecord(msgspec.Struct, frozen=True):
    """A record as Kafka has it; `at` is when the broker appended it, epoch ms. A value of None is a tombstone."""

    topic: str
    partition: int
    offset: int
    at: int
    key: str
    value: bytes | None
    headers: Headers = ()

    def header(self, name: str) -> str:
        """The first header of that name, empty without one."""
        return next((value for key, value in self.headers if key == name), "")


class Span(msgspec.Struct, frozen=True):
    """What to read of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        return max(0, self.end - self.start)


class TopicFacts(msgspec.Struct, frozen=True):
    """What Kafka says of a topic; `records` counts offsets, of which a few may hold no record."""

    name: str
    partitions: int
    records: int


class Source(Protocol):
    """Reads topics. All methods block and raise UnreachableError; unknown topics raise NotFoundError."""

    def topics(self) -> list[TopicFacts]:
        """All topics but Kafka's own, by name."""
        ...

    def partitions(self, topic: str) -> int: ...

    def id(self, topic: str) -> str:
        """Which topic of that name it is: one that is made anew has another id."""
        ...

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        """What the topics hold now, appended in [since_ms, until_ms): whole partitions without these bounds."""
        ...

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        """The records of the spans, side by side, each partition in order; a span itself when it is at its end."""
        ...

    def __exit__(self, *error: object) -> None: ...


class FollowedSource(Source, Protocol):
    """One that what comes can be read from, too."""

    def follow(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | None]:
        """What comes from the ends of the spans on, for ever; None now and then while nothing comes."""
        ...


def by_time(found: Iterable[KafkaRecord | Span], spans: Sequence[Span]) -> Iterator[KafkaRecord]:
    """The records of all partitions in the order of their times, as far as each partition is in that order itself.

    A record is given once every partition that is not at its end has one waiting.
    """
    waiting: dict[tuple[str, int], list[KafkaRecord]] = {(s.topic, s.partition): [] for s in spans}
    taken = dict.fromkeys(waiting, 0)
    empty = set(waiting)
    ended: set[tuple[str, int]] = set()

    def next_ones() -> Iterator[KafkaRecord]:
        while not empty - ended and (open_ones := [tp for tp in waiting if tp not in empty]):
            first = min(open_ones, key=lambda tp: (waiting[tp][taken[tp]].at, *tp))
            queue, index = waiting[first], taken[first]
            taken[first] += 1
            if taken[first] == len(queue):
                waiting[first], taken[first] = [], 0
                empty.add(first)
            yield queue[index]

    for item in found:
        tp = (item.topic, item.partition)
        if isinstance(item, Span):
            ended.add(tp)
        else:
            waiting[tp].append(item)
            empty.discard(tp)
        if not empty - ended:
            yield from next_ones()
    ended.update(waiting)
    yield from next_ones()
