"""Where decisions go: requests and dead letters into their topics, everything with its reason into a Parquet table.

The driver does it: decisions are few beside the reports that they follow from, and a job of Spark's for each topic
would take longer than the decisions. A query that has failed decides again from what was saved: it sends the same
requests under the same ids. What is remembered is saved behind what was decided: between the two it is decided twice,
never left out.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer
from pyspark.sql import DataFrame, SparkSession

from retention_spark.archive_files import parquet
from retention_spark.batch_pause import BatchPause
from retention_spark.files import write_once
from retention_spark.settings import SparkSettings
from retention_spark.stateful_operator import outcomes
from sluice.domain.stream.commands import DecisionKind
from sluice.engine.crash_points import CrashPoints
from sluice.engine.partition import partition_of
from sluice.kafka.deliveries import delivery_error
from sluice.kafka.topics import MAX_RECORD_BYTES
from sluice.kafka_config import clients
from sluice.policies.reported import HistoryRow
from sluice.workflows.dead_lettering import count_dead_letters
from sluice.workflows.read_position import ReadPosition
from sluice.workflows.report_decider import OutgoingRecord

log = logging.getLogger(__name__)

DELIVERED_S = 30
ROOM_S = 0.1
_COLUMNS = pa.schema(
    [(name, pa.int64() if name == "at" else pa.string()) for name in HistoryRow.__struct_fields__ if name != "kind"]
)


class NotDeliveredError(Exception):
    """Kafka has not acknowledged all records of a batch."""


def batch_writer(
    kind: DecisionKind,
    settings: SparkSettings,
    pause: BatchPause,
    position: ReadPosition,
    commit: Callable[[Mapping[int, int]], None],
) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls; raises when not all could be written, so that the query starts anew.

    Before anything is sent, `commit` says how far the query was before; it raises if another instance decides by now.

    A batch that decided nothing, and has read all there was, returns when there is work for the next one.
    """
    producer = Producer(producer_configuration(settings))
    crash_points = CrashPoints(settings.crash_at)

    def write(batch: DataFrame, number: int) -> None:
        found = list(outcomes(batch))
        sendings = [sending for outcome in found for sending in outcome.sendings]
        saved = [record for outcome in found for record in outcome.saved]
        if sendings:
            crash_points.passed(f"{kind.value}-decided")
        if sendings or saved:
            commit(position.saved())
        if sendings:
            send(producer, sendings, settings.partitions)
            count_dead_letters(sendings)
            crash_points.passed(f"{kind.value}-decisions-sent")
        rows = [row for outcome in found for row in outcome.rows]
        if rows:
            query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            keep(batch.sparkSession, settings.spark_history, kind, f"{query}-{number}", rows)
        send(producer, saved, settings.partitions)
        position.observe(found)
        pause.observe(found)
        # Spark rounds for each partition. A batch that is full has left records behind, whatever comes.
        is_full = sum(outcome.records for outcome in found) >= max(
            1, settings.spark_batch_records - settings.partitions
        )
        if not sendings and not rows and not saved and not is_full:
            pause.wait(number)

    return write


def producer_configuration(settings: SparkSettings) -> dict[str, object]:
    more = {"linger.ms": 5, "message.timeout.ms": DELIVERED_S * 1000, "message.max.bytes": MAX_RECORD_BYTES}
    return clients.producer(settings.kafka_client(), more)


def send(producer: Producer, records: Sequence[OutgoingRecord], partitions: int) -> None:
    """Return when all are acknowledged, however many there are; their topics have so many partitions.

    Raises NotDeliveredError, KafkaException.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if (problem := delivery_error(error, message)) is not None:
            failures.append(problem.str())

    for record in records:
        _queue(producer, record, partition_of(record.key, partitions), delivered)
    left = producer.flush(2 * DELIVERED_S)
    if left or failures:
        why = failures[0] if failures else "no answer"
        raise NotDeliveredError(f"{left + len(failures)} of {len(records)} records: {why}")


def _queue(
    producer: Producer,
    record: OutgoingRecord,
    partition: int,
    delivered: Callable[[KafkaError | None, Message], None],
) -> None:
    """Hand the record over once the queue has room for it; that gets empty in `DELIVERED_S`, whatever happens."""
    end = time.monotonic() + 2 * DELIVERED_S
    while True:
        try:
            producer.produce(
                record.topic,
                record.value or None,
                record.key,
                partition,
                headers=dict[str, str | bytes | None](record.headers),
                on_delivery=delivered,
            )
        except BufferError:
            if time.monotonic() > end:
                raise NotDeliveredError(f"the queue has been full for {2 * DELIVERED_S} s") from None
            producer.poll(ROOM_S)
        else:
            producer.poll(0)
            return


def keep(session: SparkSession, folder: str, kind: DecisionKind, name: str, rows: Sequence[HistoryRow]) -> None:
    """Add a file to the table, unless it is there. All rows of a batch have its time, so they are of one day."""
    day = datetime.fromtimestamp(rows[0].at / 1000, UTC).strftime("%Y-%m-%d")
    table = pa.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema=_COLUMNS)
    write_once(session, f"{folder.rstrip('/')}/kind={kind.value}/day={day}", f"{name}.parquet", parquet(table))
