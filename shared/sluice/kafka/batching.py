"""Records that come together go together: those of a partition that has a batch on its way wait for the next one.

A lone record waits for nothing. `MAX_BATCHES` bounds what is on its way for all partitions. An idempotent producer of
librdkafka has at most five requests on a connection, and with one more its thread spins until one is acknowledged.
A batch that is not acknowledged for `SLOW_S` counts no more: a broker that has gone holds up its own partitions only.
Where it is the only one, and stands still, that means more requests than five until it answers, or they are given up.
Belongs to the event loop.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

import msgspec

MAX_BATCHES = 5
SLOW_S = 1.0

RecordT = TypeVar("RecordT")
PartitionT = TypeVar("PartitionT", bound=Hashable)


class _Batch(msgspec.Struct, eq=False):
    """So many of its records are on their way."""

    left: int
    is_slow: bool = False


class Batches(Generic[PartitionT, RecordT]):
    """Hands records to `produce(record)`, in their order; each has to be reported to `ended` once, whatever it was."""

    def __init__(self, produce: Callable[[RecordT], None]) -> None:
        self.waiting = 0
        """Records that wait for their batch; each counts until it is handed over."""
        self._produce = produce
        self._under_way: dict[PartitionT, _Batch] = {}
        self._slow = 0
        self._waiting: dict[PartitionT, list[RecordT]] = {}
        self._is_watched = False

    def add(self, partition: PartitionT, record: RecordT) -> None:
        """Send a record with the next batch of its partition: at once, if none is on its way."""
        if partition not in self._under_way and self._has_room():
            self._under_way[partition] = _Batch(1)
            self._produce(record)
            return
        self._waiting.setdefault(partition, []).append(record)
        self.waiting += 1
        self._watch()

    def ended(self, partition: PartitionT) -> None:
        """One record of the batch under way is acknowledged, or failed. Behind the last one the next begins."""
        batch = self._under_way[partition]
        batch.left -= 1
        if not batch.left:
            del self._under_way[partition]
            self._slow -= batch.is_slow
            self._begin_next()

    def _has_room(self) -> bool:
        return len(self._under_way) - self._slow < MAX_BATCHES

    def _begin_next(self) -> None:
        """Begin the batch whose first record has waited longest, of those that may go."""
        following = next((waits for waits in self._waiting if waits not in self._under_way), None)
        if following is not None and self._has_room():
            records = self._waiting.pop(following)
            self._under_way[following] = _Batch(len(records))
            for record in records:
                self._produce(record)
            self.waiting -= len(records)
        if self._waiting:
            self._watch()

    def _watch(self) -> None:
        """Look in a while at what is on its way now, if that is all there may be."""
        if not self._is_watched and not self._has_room():
            self._is_watched = True
            asyncio.get_running_loop().call_later(SLOW_S, self._look, list(self._under_way.values()))

    def _look(self, begun: Collection[_Batch]) -> None:
        self._is_watched = False
        for batch in begun:
            if batch.left and not batch.is_slow:
                batch.is_slow = True
                self._slow += 1
                self._begin_next()
        if self._waiting:
            self._watch()
