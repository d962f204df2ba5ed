"""Where decisions go: requests and dead letters into their topics, everything with its reason into a Parquet table.

Both are written from one batch that is computed once. A batch that runs again, because the process ended before it was
done, writes the same again: requests have the same ids, and readers of the table drop what is there twice.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from retention_spark.settings import SparkSettings
from sluice.domain.commands import DecisionKind


def batch_writer(kind: DecisionKind, settings: SparkSettings) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls; raises when not all could be written, so that the batch runs again."""

    def write(batch: DataFrame, _number: int) -> None:
        batch.persist()
        try:
            # Whatever else is done, this takes the step of each key; most batches lead to nothing.
            found = batch.selectExpr("count_if(topic <> '') sendings", "count_if(id <> '') rows").first()
            assert found is not None
            if found["sendings"]:
                _send(batch, settings)
            if found["rows"]:
                _keep(batch, kind, settings.spark_history)
        finally:
            batch.unpersist()

    return write


def _send(batch: DataFrame, settings: SparkSettings) -> None:
    sendings = batch.where("topic <> ''").select("topic", "key", "value", "headers")
    writer = sendings.write.format("kafka").options(**kafka_producer(settings))
    writer.option("includeHeaders", "true").save()


def kafka_producer(settings: SparkSettings) -> dict[str, str]:
    """Options of Spark's producers; the partition of a key is murmur2's by default."""
    return {
        "kafka.bootstrap.servers": settings.kafka_bootstrap,
        "kafka.client.id": settings.instance,
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.compression.type": "lz4",
        "kafka.max.request.size": str(8 * 1024 * 1024),
        "kafka.delivery.timeout.ms": "30000",
        "kafka.request.timeout.ms": "10000",
    }


def _keep(batch: DataFrame, kind: DecisionKind, folder: str) -> None:
    """Add to the part of the table that is this query's own: writers of one folder remove each other's files."""
    rows = batch.where("id <> ''").drop("topic", "key", "value", "headers", "kind")
    dated = rows.selectExpr("*", "date_format(timestamp_millis(at), 'yyyy-MM-dd') day")
    dated.coalesce(1).write.mode("append").partitionBy("day").parquet(f"{folder}/kind={kind.value}")
