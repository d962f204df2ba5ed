"""What is known of the statistics of streams: their windows, and until when they are counted.

The topic of windows is the change log of a table and is followed from its beginning; it is compacted, and windows that
expire are taken back in it, so what is held here is bounded like the table. While no process writes it everything stays
as it is and grows old, which readers see. Belongs to the event loop.
"""

import logging
from collections.abc import Sequence

import msgspec
from confluent_kafka import OFFSET_BEGINNING

from api_gateway.edge.following import follow
from sluice.domain.ids import StreamId
from sluice.engine.partition import partition_of
from sluice.engine.ports import Message
from sluice.insight.statistics import Folded, StatisticsProgress, WindowKind, WindowStatistics
from sluice.kafka.topics import STATISTICS_WINDOWS
from sluice.runtime import Runtime

log = logging.getLogger(__name__)

_decoder = msgspec.json.Decoder(Folded)


class Statistics:
    """The windows of all streams, of a topic with so many partitions."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._streams: dict[str, dict[str, WindowStatistics]] = {}
        self._as_of: dict[int, int] = {}

    def windows(self, id: StreamId, kind: WindowKind, count: int) -> list[WindowStatistics]:
        """The latest windows in which something happened, the latest first."""
        found = [w for w in self._streams.get(f"{id}", {}).values() if w.window is kind]
        return sorted(found, key=lambda window: window.begin, reverse=True)[:count]

    def as_of(self, id: StreamId) -> int | None:
        """Until when everything that was reported of the stream is in its windows, epoch ms; None if that is not known.

        Then nothing has ever been counted, or it has not been read yet.
        """
        return self._as_of.get(partition_of(id.key, self._partitions))

    def take_in(self, batch: Sequence[Message]) -> None:
        """Take in records of the topic."""
        for message in batch:
            if message.error() is None:
                self._take_in(message)

    def _take_in(self, message: Message) -> None:
        key, value = (message.key() or b"").decode(errors="replace"), message.value()
        if value is None:
            self._forget(key)
            return
        try:
            fact = _decoder.decode(value)
        except msgspec.DecodeError as error:
            log.warning("no statistics", extra={"key": key, "error": str(error)})
            return
        if isinstance(fact, StatisticsProgress):
            self._as_of[fact.partition] = fact.at
        else:
            self._streams.setdefault(f"{fact.scope}/{fact.stream}", {})[key] = fact

    def _forget(self, key: str) -> None:
        stream = key.partition(" ")[0]
        windows = self._streams.get(stream, {})
        windows.pop(key, None)
        if not windows:
            self._streams.pop(stream, None)


def follow_statistics(runtime: Runtime) -> Statistics:
    """Listens as long as the service lives."""
    partitions = runtime.settings.partitions
    statistics = Statistics(partitions)
    begins = dict.fromkeys(range(partitions), OFFSET_BEGINNING)
    follow(runtime, "statistics", STATISTICS_WINDOWS.name, begins, statistics.take_in)
    return statistics
