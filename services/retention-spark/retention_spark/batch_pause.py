"""How long a query rests between two batches: until there are reports, or the time of a stream has come.

A stateful query with processing-time timers runs a batch at each trigger, with input or without, and none of Spark's
settings makes it wait for both. So the batch itself waits: one that decided nothing ends when there is work for the
next one. It stays uncommitted meanwhile, by which nothing is lost: it has sent nothing.

`wait` belongs to the query's thread in the driver, `stop` and `waited_s` to any.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from confluent_kafka import KafkaException

from retention_spark.topic_ends import Ends
from sluice.workflows.report_buckets import Outcome

_REMEMBERED = 16


class BatchPause:
    """`ends` says where the topic ends, or raises KafkaException; it is called every `look_s`.

    A pause takes `longest_s` at most: the driver does not know the times of all streams until each bucket had a batch.
    `clock` in epoch ms.
    """

    def __init__(
        self,
        ends: Callable[[], Ends],
        look_s: float,
        longest_s: float,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._ends = ends
        self._look_s = look_s
        self._longest_s = longest_s
        self._clock = clock
        self._stopping = threading.Event()
        self._known: Ends | None = None
        self._wake_at: dict[int, int] = {}
        self._waited: dict[int, float] = {}

    def begin(self) -> None:
        """The query starts, perhaps anew: nothing is known of its topic and its buckets, and batches count from 0."""
        self._known = None
        self._wake_at.clear()
        self._waited.clear()
        self._stopping.clear()

    def stop(self) -> None:
        """No batch waits any more, nor the one that does, until the query starts anew."""
        self._stopping.set()

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """Take over when each bucket of the batch wants its next one."""
        for outcome in outcomes:
            if outcome.wake_at is None:
                self._wake_at.pop(outcome.bucket, None)
            else:
                self._wake_at[outcome.bucket] = outcome.wake_at

    def wait(self, batch: int) -> None:
        """Return when the next batch has work; `batch` is the number of the one that waits."""
        began = self._clock()
        until = min([began + round(1000 * self._longest_s), *self._wake_at.values()])
        # What was there before the batch began, it has read.
        while self._nothing_new() and (left_s := (until - self._clock()) / 1000) >= 0 and not self._stopping.is_set():
            self._stopping.wait(min(self._look_s, left_s + 0.001))
        self._waited[batch] = (self._clock() - began) / 1000
        self._waited.pop(batch - _REMEMBERED, None)

    def waited_s(self, batch: int) -> float:
        """How long a batch has waited; for one of the latest."""
        return self._waited.get(batch, 0.0)

    def _nothing_new(self) -> bool:
        before, self._known = self._known, None
        with suppress(KafkaException):
            self._known = self._ends()
        return self._known is not None and self._known == before
