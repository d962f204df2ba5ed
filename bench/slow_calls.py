"""Where slow calls were slow, by the records that they left: Kafka says when each was appended.

Lone calls follow each other, so what a topic of requests or the journal got during a call is that call's. The longest
pause between two of them, or between the client and the first or last one, is where the call was slow. What a service
writes of itself meanwhile (prepared transactions) may stand between them, too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.figures import Figures, SlowCalls, Span
from sluice.kafka.reading import read_records
from sluice.kafka.topics import ABORT, COMMIT, JOURNAL, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS
from sluice.kafka_config import clients

CLIENT = "client"
_TOPICS = (REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, COMMIT, ABORT, JOURNAL)
_SILENCE_S = 30.0


class Appended(NamedTuple):
    """A record: when the broker appended it, in epoch ms, and to which topic."""

    at: int
    topic: str


def read_all(client: clients.Client, partitions: int) -> list[Appended]:
    """All that the topics of requests and the journal hold, in order of time. Blocks. Raises KafkaException."""
    everything = dict.fromkeys(range(partitions), (0, None))
    found = [
        Appended(message.timestamp()[1], topic.name.removeprefix("sluice."))
        for topic in _TOPICS
        for message in read_records(client, "bench-slow-calls", topic.name, everything, _SILENCE_S)
    ]
    return sorted(found)


def longest_pause(call: Span, appended: Sequence[Appended]) -> str:
    """Between what the longest pause of a call was; `appended` is in order of time."""
    within = [one for one in appended if int(call.began) <= one.at <= call.ended]
    points = [(call.began, CLIENT), *((float(one.at), one.topic) for one in within), (call.ended, CLIENT)]
    _, where = max((later - at, f"{before} → {behind}") for (at, before), (later, behind) in pairwise(points))
    return where


def summarise(measured: Mapping[str, Figures], appended: Sequence[Appended]) -> list[SlowCalls]:
    """Each kind of lone call."""
    return [
        SlowCalls(
            call=name,
            share=len(figures.slow) / figures.count,
            longest_ms=max((call.ended - call.began for call in figures.slow), default=0.0),
            where=dict(Counter(longest_pause(call, appended) for call in figures.slow).most_common()),
        )
        for name, figures in measured.items()
        if figures.p50_ms
    ]
