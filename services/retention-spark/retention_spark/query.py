"""A streaming query: from a topic of reports through the decisions to the sink."""

import json
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark.batch_pause import BatchPause
from retention_spark.files import names, remove
from retention_spark.settings import SparkSettings
from retention_spark.sink import batch_writer
from retention_spark.stateful_operator import Operator, decided
from retention_spark.topic_ends import ends_reader
from sluice.kafka.leadership import Leadership
from sluice.kafka.topics import RETENTION, RETENTION_MEMORY, SCALE, SCALE_MEMORY, Topic
from sluice.kafka_config.java import java_options
from sluice.policies.rules import Rule, Rules
from sluice.workflows.read_position import ReadPosition

_EARLIEST = -2
"""As Spark calls where a partition begins."""


class QueryPlan(msgspec.Struct, frozen=True):
    """What a query reads, and how it decides; `trigger_s` is the time between the beginnings of two batches.

    `memory` is the topic of what it remembers.
    """

    name: str
    topic: Topic
    memory: Topic
    rule: Rule
    trigger_s: float


def rules_of(settings: SparkSettings) -> Rules:
    return Rules.of(settings.scale_cooldown_s, settings.retention_tick_s, settings.retention_pause_s)


def plans(settings: SparkSettings) -> tuple[QueryPlan, ...]:
    """The queries that decide."""
    rules = rules_of(settings)
    return (
        QueryPlan("scale", SCALE, SCALE_MEMORY, rules.scale, settings.scale_trigger_s),
        QueryPlan("retention", RETENTION, RETENTION_MEMORY, rules.retention, settings.retention_trigger_s),
    )


def pause_of(plan: QueryPlan, settings: SparkSettings) -> BatchPause:
    """How the query rests between two batches. Raises KafkaConfError."""
    partitions = [(plan.topic.name, partition) for partition in range(settings.partitions)]
    return BatchPause(partial(ends_reader(settings.kafka_client()), partitions), plan.trigger_s, settings.spark_idle_s)


def start_query(
    session: SparkSession,
    plan: QueryPlan,
    settings: SparkSettings,
    source: str,
    pause: BatchPause,
    leadership: Leadership,
) -> StreamingQuery:
    """Begin with what is saved, and with the reports behind that. Raises NotLeaderError, KafkaConfError.

    The checkpoint is one of this run. Those before are removed once Kafka has taken a commit, so that this instance
    still leads; whoever still uses one fails.
    """
    pause.begin()
    term, topic, checkpoints = leadership.term, plan.topic.name, settings.spark_checkpoints.rstrip("/")
    positions = leadership.positions(topic, settings.partitions)
    begin = {partition: positions.get(partition, 0) for partition in range(settings.partitions)}
    leadership.commit(term, topic, begin)
    for old in names(session, checkpoints):
        if old.startswith(f"{plan.name}-"):
            remove(session, checkpoints, old)
    reports = source_options(topic, settings) | _from(topic, begin)
    saved = source_options(plan.memory.name, settings)
    del saved["maxOffsetsPerTrigger"]
    reads = [session.readStream.format("kafka").options(**options).load() for options in (saved, reports)]
    operator = Operator(plan.rule, source, topic, plan.memory.name, round(settings.spark_save_s * 1000))
    return (
        decided(reads[0].union(reads[1]), operator, settings.spark_buckets, settings.spark_state_partitions)
        .writeStream.queryName(plan.name)
        .foreachBatch(
            batch_writer(plan.rule.kind, settings, pause, ReadPosition(begin), partial(leadership.commit, term, topic))
        )
        .option("checkpointLocation", f"{checkpoints}/{plan.name}-{uuid4().hex}")
        .trigger(processingTime=f"{round(plan.trigger_s * 1000)} milliseconds")
        .start()
    )


def _from(topic: str, begin: Mapping[int, int]) -> dict[str, str]:
    """Where to begin; what the topic does not hold any more is passed over."""
    offsets = {str(partition): offset or _EARLIEST for partition, offset in begin.items()}
    return {"startingOffsets": json.dumps({topic: offsets})}


def source_options(topics: str, settings: SparkSettings) -> dict[str, str]:
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
