"""Records that come together go together: those of a partition that has a batch on its way wait for the next one.

A lone record waits for nothing. `MAX_BATCHES` bounds what is on its way for all partitions. An idempotent producer of
librdkafka has at most five requests on a connection, and with one more its thread spins until one is acknowledged.
Belongs to the event loop.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MAX_BATCHES = 5

RecordT = TypeVar("RecordT")
PartitionT = TypeVar("PartitionT", bound=Hashable)


class Batches(Generic[PartitionT, RecordT]):
    """Hands records to `produce(record)`, in their order; each has to be reported to `ended` once, whatever it was."""

    def __init__(self, produce: Callable[[RecordT], None]) -> None:
        self.waiting = 0
        """Records that wait for their batch; each counts until it is handed over."""
        self._produce = produce
        self._under_way: dict[PartitionT, int] = {}
        self._waiting: dict[PartitionT, list[RecordT]] = {}

    def add(self, partition: PartitionT, record: RecordT) -> None:
        """Send a record with the next batch of its partition: at once, if none is on its way."""
        if partition in self._under_way or len(self._under_way) >= MAX_BATCHES:
            self._waiting.setdefault(partition, []).append(record)
            self.waiting += 1
        else:
            self._under_way[partition] = 1
            self._produce(record)

    def ended(self, partition: PartitionT) -> None:
        """One record of the batch that is on its way is acknowledged, or failed; behind the last one the next begins.

        That is the batch whose first record has waited longest, of those that may go.
        """
        left = self._under_way[partition] - 1
        if left:
            self._under_way[partition] = left
            return
        del self._under_way[partition]
        following = next((waits for waits in self._waiting if waits not in self._under_way), None)
        if following is not None:
            batch = self._waiting.pop(following)
            self._under_way[following] = len(batch)
            for record in batch:
                self._produce(record)
            self.waiting -= len(batch)
