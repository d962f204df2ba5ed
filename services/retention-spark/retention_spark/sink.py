"""Where decisions go: requests and dead letters into their topics, everything with its reason into a Parquet table.

The driver does it: decisions are few beside the reports that they follow from, and a job of Spark's for each place
would take longer than the decisions. A batch that runs again, because the process ended before it was done, sends the
same again under the same ids; its file in the table is there already, or is written then.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaError, Message, Producer
from pyspark.sql import DataFrame, SparkSession

from retention_spark.deciding import HistoryRow, Sending
from retention_spark.files import write_once
from retention_spark.settings import SparkSettings
from retention_spark.stateful import outcomes
from sluice.domain.commands import DecisionKind
from sluice.messaging.topics import MAX_RECORD_BYTES
from sluice.workflows.crash_points import CrashPoints

DELIVERED_S = 30
_COLUMNS = pa.schema(
    [(name, pa.int64() if name == "at" else pa.string()) for name in HistoryRow.__struct_fields__ if name != "kind"]
)


class NotDeliveredError(Exception):
    """Kafka has not acknowledged all records of a batch."""


def batch_writer(kind: DecisionKind, settings: SparkSettings) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls; raises when not all could be written, so that the batch runs again."""
    producer = Producer(producer_configuration(settings))
    crash_points = CrashPoints(settings.crash_at)

    def write(batch: DataFrame, number: int) -> None:
        found = list(outcomes(batch))
        sendings = [sending for outcome in found for sending in outcome.sendings]
        if sendings:
            send(producer, sendings)
            crash_points.passed(f"{kind.value}-decisions-sent")
        rows = [row for outcome in found for row in outcome.rows]
        if rows:
            query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            keep(batch.sparkSession, settings.spark_history, kind, f"{query}-{number}", rows)

    return write


def producer_configuration(settings: SparkSettings) -> dict[str, object]:
    return {
        **settings.kafka_client(),
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        "message.timeout.ms": DELIVERED_S * 1000,
        "message.max.bytes": MAX_RECORD_BYTES,
        "compression.type": "lz4",
        # A batch brings two records for each of its reports at most.
        "queue.buffering.max.messages": 4 * settings.spark_batch_records,
    }


def send(producer: Producer, sendings: Sequence[Sending]) -> None:
    """Return when all are acknowledged. Raises NotDeliveredError, KafkaException, BufferError."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error.str())

    for sending in sendings:
        producer.produce(
            sending.topic,
            sending.value,
            sending.key,
            headers=dict[str, str | bytes | None](sending.headers),
            on_delivery=delivered,
        )
    left = producer.flush(2 * DELIVERED_S)
    if left or failures:
        why = failures[0] if failures else "no answer"
        raise NotDeliveredError(f"{left + len(failures)} of {len(sendings)} records: {why}")


def keep(session: SparkSession, folder: str, kind: DecisionKind, name: str, rows: Sequence[HistoryRow]) -> None:
    """Add a file to the table, unless it is there. All rows of a batch have its time, so they are of one day."""
    day = datetime.fromtimestamp(rows[0].at / 1000, UTC).strftime("%Y-%m-%d")
    table = pa.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema=_COLUMNS)
    file = BytesIO()
    pq.write_table(table, file, compression="snappy")
    write_once(session, f"{folder.rstrip('/')}/kind={kind.value}/day={day}", f"{name}.parquet", file.getvalue())
