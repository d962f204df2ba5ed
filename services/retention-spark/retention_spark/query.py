"""A streaming query: from a topic of reports through the decisions to the sink."""

from collections.abc import Mapping
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark.batch_pause import BatchPause
from retention_spark.settings import SparkSettings
from retention_spark.sink import batch_writer
from retention_spark.stateful_operator import decided
from retention_spark.topic_ends import ends_reader
from sluice.kafka.topics import RETENTION, SCALE, Topic
from sluice.kafka_config.java import java_options
from sluice.policies.rules import Rule, Rules


class QueryPlan(msgspec.Struct, frozen=True):
    """What a query reads, and how it decides; `trigger_s` is the time between the beginnings of two batches."""

    name: str
    checkpoint: str
    topic: Topic
    rule: Rule
    trigger_s: float


def rules_of(settings: SparkSettings) -> Rules:
    return Rules.of(settings.scale_cooldown_s, settings.retention_tick_s, settings.retention_pause_s)


def plans(settings: SparkSettings, journal: str) -> tuple[QueryPlan, ...]:
    """The queries that decide; `journal` is the id of that topic."""
    rules = rules_of(settings)
    scale, retention = (checkpoint_of(name, settings, journal) for name in ("scale", "retention"))
    return (
        QueryPlan("scale", scale, SCALE, rules.scale, settings.scale_trigger_s),
        QueryPlan("retention", retention, RETENTION, rules.retention, settings.retention_trigger_s),
    )


def checkpoint_of(query: str, settings: SparkSettings, journal: str) -> str:
    """The folder of a query's checkpoint: one for each journal, since what is remembered of another is not true."""
    return f"{settings.spark_checkpoints.rstrip('/')}/{query}-{journal}"


def pause_of(plan: QueryPlan, settings: SparkSettings) -> BatchPause:
    """How the query rests between two batches. Raises KafkaConfError."""
    partitions = [(plan.topic.name, partition) for partition in range(settings.partitions)]
    return BatchPause(partial(ends_reader(settings.kafka_client()), partitions), plan.trigger_s, settings.spark_idle_s)


def start_query(
    session: SparkSession, plan: QueryPlan, settings: SparkSettings, source: str, pause: BatchPause
) -> StreamingQuery:
    """Begin where the checkpoint ends; a new one begins where the topic does."""
    pause.begin()
    records = session.readStream.format("kafka").options(**source_options(plan.topic.name, settings)).load()
    return (
        decided(records, plan.rule, source, settings.spark_buckets, settings.spark_state_partitions)
        .writeStream.queryName(plan.name)
        .foreachBatch(batch_writer(plan.rule.kind, settings, pause))
        .option("checkpointLocation", plan.checkpoint)
        .trigger(processingTime=f"{round(plan.trigger_s * 1000)} milliseconds")
        .start()
    )


def source_options(topics: str, settings: SparkSettings) -> Mapping[str, str]:
    """Options of Spark's source for topics, separated by commas; they may hold passwords. Raises KafkaConfError."""
    return {
        "kafka.bootstrap.servers": settings.kafka_bootstrap,
        "kafka.reconnect.backoff.max.ms": "1000",
        # A request for records that are not there yet is in the way of the next one, and a task reads many partitions
        # in turn: at Kafka's 500 ms each, reports that come now and then would wait for seconds.
        "kafka.fetch.max.wait.ms": "10",
        **_given(settings),
        "subscribe": topics,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(settings.spark_batch_records),
        # What a topic has dropped for its age may have been the end of a policy. But what was known before does not
        # hold any more, and whatever has a policy is sampled again.
        "failOnDataLoss": "false",
        # A dead letter keeps them.
        "includeHeaders": "true",
    }


def recorded(session: SparkSession, topic: Topic, settings: SparkSettings) -> DataFrame:
    """Everything that a topic holds, as one batch."""
    options = {
        "kafka.bootstrap.servers": settings.kafka_bootstrap,
        **_given(settings),
        "subscribe": topic.name,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "failOnDataLoss": "false",
    }
    return session.read.format("kafka").options(**options).load()


def _given(settings: SparkSettings) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in java_options(settings.given_kafka_conf()).items()}
