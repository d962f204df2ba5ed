"""The batch job behind `questions`: the whole archive of the journal, folded by Spark's workers.

A partition of the journal is folded by one worker, in order; partitions side by side. A worker needs the memory of one
partition's state. A module of its own, as `what_if_job` is.
"""

from collections.abc import Iterator
from itertools import groupby

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from retention_spark.archive_facts import GAP, SCALED, TRANSACTION, WORKFLOW, Fact, facts_of
from retention_spark.archive_frames import archived
from sluice.archive.layout import topic_folder
from sluice.archive.rows import Row
from sluice.kafka.topics import JOURNAL

_ARCHIVED = (
    "id string, day string, partition int, offset bigint, entry int, appended_at timestamp, key string, head string, "
    "value string"
)
_COLUMNS = "day string, at bigint, kind string, name string, what string, took_ms bigint"
_BATCH = 5000


def facts(session: SparkSession, target: str) -> DataFrame | None:
    """What happened, a row for each `Fact`; None while nothing is archived."""
    rows = archived(session, topic_folder(target, JOURNAL.name), _ARCHIVED)
    if rows is None:
        return None
    order = ("id", "partition", "offset", "entry")
    needed = rows.selectExpr(*order, "unix_millis(appended_at) appended_at", "key", "head", "value")
    return needed.repartition("id", "partition").sortWithinPartitions(*order).mapInArrow(fold_rows, _COLUMNS)


def most_scaled(found: DataFrame, count: int) -> list[tuple[str, int]]:
    """The streams that were scaled most often, and how often."""
    counted = found.where(f"kind = '{SCALED}'").groupBy("name").count()
    return [
        (row["name"], row["count"]) for row in counted.orderBy("count", "name", ascending=[False, True]).take(count)
    ]


def transactions(found: DataFrame) -> list[tuple[str, str, int]]:
    """By day and outcome, how many transactions ended."""
    counted = found.where(f"kind = '{TRANSACTION}'").groupBy("day", "what").count().orderBy("day", "what")
    return [(row["day"], row["what"], row["count"]) for row in counted.collect()]


def longest_workflows(found: DataFrame, count: int) -> list[Fact]:
    """The workflows that took longest, from the record that began them to the one that ended them."""
    ordered = found.where(f"kind = '{WORKFLOW}'").orderBy("took_ms", "at", ascending=[False, True])
    return [Fact(**row.asDict()) for row in ordered.take(count)]


def gaps(found: DataFrame) -> list[tuple[str, str]]:
    """The partitions of which records are missing, and before which offset."""
    return [(row["name"], row["what"]) for row in found.where(f"kind = '{GAP}'").orderBy("name").collect()]


def fold_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Spark sends to its workers: rows of whole partitions, in order, become facts."""
    gathered: list[Fact] = []
    for _, rows in groupby(_rows(batches), key=lambda row: (row["id"], row["partition"])):
        for fact in facts_of(rows):
            gathered.append(fact)
            if len(gathered) == _BATCH:
                yield _batch(gathered)
                gathered = []
    yield _batch(gathered)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from batch.to_pylist()


def _batch(found: list[Fact]) -> pa.RecordBatch:
    types = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.int64())
    schema = pa.schema(list(zip(Fact.__struct_fields__, types, strict=True)))
    return pa.RecordBatch.from_pylist([msgspec.structs.asdict(fact) for fact in found], schema=schema)
