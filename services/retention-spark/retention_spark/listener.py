"""Progress of the queries as metrics: Spark reports it after each batch, on a thread of its own."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from retention_spark import metrics
from retention_spark.batch_pause import BatchPause

log = logging.getLogger(__name__)

_WAITS = ("triggerExecution", "addBatch")
"""Spark's phases in which a batch waits."""

SILENCE_S = 60.0
"""An outage of Kafka shows by then; a batch that is large, or waits for the machine, does not."""


class ProgressListener(StreamingQueryListener):
    """Remembers when each query last ended a batch, or found nothing to make one of.

    The latter happens until the first report since the start: after that, batches come whether there is input or not.
    `pauses` by query, of those that have one: the time that a batch has waited at its end is none that it took.
    """

    def __init__(self, pauses: Mapping[str, BatchPause], clock: Callable[[], float] = time.monotonic) -> None:
        self._pauses = pauses
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._names: dict[str, str] = {}

    def begins(self, query: str) -> None:
        """The query is about to be started: it has yet to end a batch, and one that never does must show."""
        self._ended.pop(query, None)
        self._begun[query] = self._clock()
        metrics.BATCH_SECONDS.labels(query)

    def ends_batches(self, query: str) -> bool:
        """Whether it has ended a batch, or found nothing to make one of, since it was started."""
        return query in self._ended

    def problem(self, query: str) -> str | None:
        """What is wrong with a query that has not ended a batch yet, or not for long."""
        if not self.ends_batches(query):
            since = self._clock() - self._begun.get(query, self._clock())
            return f"has ended no batch yet, {since:.0f} s after its start"
        silent = self._clock() - self._ended[query]
        return f"has ended no batch for {silent:.0f} s" if silent > SILENCE_S else None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        self._names[str(event.id)] = event.name or ""
        log.info("query started", extra={"query": event.name})

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._ended[event.progress.name or ""] = self._clock()
        progress = json.loads(event.progress.json)
        pause = self._pauses.get(progress["name"])
        record_progress(progress, pause.waited_s(progress["batchId"]) if pause is not None else 0.0)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Spark reports it by the query's id; it counts as a batch that took no time, for one that hangs makes none."""
        query = self._names.get(str(event.id), "")
        self._ended[query] = self._clock()
        metrics.BATCH_SECONDS.labels(query).observe(0)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        log.info("query ended", extra={"query_id": str(event.id), "error": event.exception})


def record_progress(progress: Mapping[str, Any], waited_s: float = 0.0) -> None:
    """Take over what Spark says of a batch, in the form of its JSON; it has waited for so long at its end."""
    query = progress["name"]
    metrics.INPUT_ROWS.labels(query).inc(progress["numInputRows"])
    metrics.INPUT_RATE.labels(query).set(progress.get("inputRowsPerSecond", 0.0))
    metrics.LAG.labels(query).set(sum(map(lag, progress["sources"])))
    took = {phase: ms / 1000 - (waited_s if phase in _WAITS else 0) for phase, ms in progress["durationMs"].items()}
    metrics.BATCH_SECONDS.labels(query).observe(took.pop("triggerExecution", 0))
    for phase, seconds in took.items():
        metrics.PHASE_SECONDS.labels(query, phase).inc(seconds)
    stores = progress["stateOperators"]
    metrics.STATE_ROWS.labels(query).set(sum(store["numRowsTotal"] for store in stores))
    metrics.STATE_BYTES.labels(query).set(sum(store["memoryUsedBytes"] for store in stores))


def lag(source: Mapping[str, Any]) -> int:
    """How many records behind its topic's end a source is."""
    ends, latest = source.get("endOffset") or {}, source.get("latestOffset") or {}
    return sum(
        max(at - ends.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in latest.items()
        for partition, at in partitions.items()
    )
