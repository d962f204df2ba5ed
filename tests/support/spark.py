"""A system of Kafka and retention-spark alone: the reports come from the test, its requests are not handled."""

from pathlib import Path

from harness import System

SPARK = "retention-spark-0"
_NOTHING = "127.0.0.1:1"


def kafka_and_spark(folder: Path, *, partitions: int, ready_s: float, keep_logs: bool = True) -> System:
    return System(
        folder,
        segment_stores=0,
        api_gateways=0,
        stream_workflows=0,
        cluster_managers=0,
        txn_managers=0,
        retention_sparks=1,
        keep_logs=keep_logs,
        # Given addresses start nothing.
        zookeeper=_NOTHING,
        redis_url=f"redis://{_NOTHING}/0",
        partitions=partitions,
        start_timeout_s=ready_s,
        # Spark ends a batch before it stops.
        stop_timeout_s=60.0,
    )
