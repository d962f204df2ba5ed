"""A system of Kafka and retention-spark alone: the reports come from the test, its requests are not handled."""

from math import inf
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from harness import System, eventually

RETENTION_QUERY = "retention"
SPARK = "retention-spark-0"
_NOTHING = "127.0.0.1:1"


def kafka_and_spark(
    folder: Path, *, partitions: int, ready_s: float, keep_logs: bool = True, drivers: int = 1
) -> System:
    return System(
        folder,
        segment_stores=0,
        api_gateways=0,
        stream_workflows=0,
        cluster_managers=0,
        txn_managers=0,
        retention_sparks=drivers,
        keep_logs=keep_logs,
        # Given addresses start nothing.
        zookeeper=_NOTHING,
        redis_url=f"redis://{_NOTHING}/0",
        partitions=partitions,
        start_timeout_s=ready_s,
    )


class Batches:
    """The batches of the query that decides on retention, from now on."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._before = self._ended()

    def longest_s(self, deadline_s: float) -> float:
        """What the longest took at most, the one under way included; rounded up, as the metric's buckets are."""
        seen = self._ended()[inf]
        # Of two that end from now on the second has begun after what it is for.
        eventually(lambda: self._ended()[inf] >= seen + 2, deadline_s, "more batches end")
        within = {le: ended - self._before[le] for le, ended in self._ended().items()}
        return min(le for le, ended in within.items() if ended == within[inf])

    def _ended(self) -> dict[float, float]:
        """How many have ended so far, by the seconds that they took at most."""
        text = httpx.get(f"{self._system.health_url(SPARK)}/metrics", timeout=60).text
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return {
            float(sample.labels["le"]): sample.value
            for sample in samples
            if sample.name == "sluice_spark_batch_seconds_bucket" and sample.labels["query"] == RETENTION_QUERY
        }
