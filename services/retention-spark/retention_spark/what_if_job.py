"""The batch job behind `what_if`: what a topic of reports holds, or held, replayed to the rules with another policy.

A module of its own, because what workers run must not come from the program's main module: there it has no name to be
found by.
"""

from collections.abc import Callable

import msgspec
import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, lit

from retention_spark.archive_frames import archived, repeated
from retention_spark.archive_query import archived_ids
from retention_spark.query import recorded, rules_of
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings
from sluice.archive.layout import id_folder
from sluice.domain.config import RetentionPolicy
from sluice.domain.ids import StreamId
from sluice.kafka.topics import RETENTION, SCALE, Topic
from sluice.policies.replay import Policy, Record, is_about, replay_of, replayed
from sluice.policies.reported import HistoryRow
from sluice.policies.rules import Rules

_ARCHIVED = "partition int, offset bigint, appended_at timestamp, key string, value binary"
_COLUMNS = ", ".join(f"{name} {'bigint' if name == 'at' else 'string'}" for name in HistoryRow.__struct_fields__)


def would_have(settings: SparkSettings, scope: str, stream: str, policy: Policy, now: int) -> list[HistoryRow]:
    """What would have been decided on the stream, by time."""
    topic: Topic = RETENTION if isinstance(policy, RetentionPolicy) else SCALE
    session = open_session("what-if", settings)

    def rows() -> list[Row]:
        records = reported(session, topic, StreamId(scope, stream).key, settings)
        return _replayed(records, settings, stream, policy, now).collect()

    try:
        found = repeated(rows)
    finally:
        session.stop()
    return sorted((HistoryRow(**row.asDict()) for row in found), key=lambda row: row.at)


def reported(session: SparkSession, topic: Topic, key: str, settings: SparkSettings) -> DataFrame:
    """The reports under a key that a topic holds, and what the archive holds of them, each once.

    Raises KafkaException.
    """
    columns = ("key", "partition", "offset", "unix_millis(timestamp) at", "coalesce(value, x'') value")
    found = recorded(session, topic, settings).where(col("key") == lit(key.encode())).selectExpr(*columns)
    if not settings.archive:
        return found
    before = archived(session, id_folder(settings.archive, topic.name, archived_ids(settings)[topic.name]), _ARCHIVED)
    if before is None:
        return found
    # Of those under the key alone: all of an archive would be too much to look for duplicates in.
    its = before.where(col("key") == key).withColumnRenamed("appended_at", "timestamp")
    its = its.selectExpr("cast(key as binary) key", *columns[1:])
    return found.unionByName(its).dropDuplicates(["partition", "offset"])


def _replayed(records: DataFrame, settings: SparkSettings, stream: str, policy: Policy, now: int) -> DataFrame:
    return records.groupBy("key").applyInPandas(replayer(rules_of(settings), stream, policy, now), _COLUMNS)


def replayer(rules: Rules, stream: str, policy: Policy, now: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What Spark sends to its workers: all of a key's records become the decisions on one of its streams."""

    def call(frame: pd.DataFrame) -> pd.DataFrame:
        rows = frame.sort_values("offset")
        records = [Record(at, value) for at, value in zip(rows["at"], rows["value"], strict=True)]
        replay = replay_of(rules, policy)
        found = replayed(replay, (r for r in records if is_about(r, stream)), now)
        return pd.DataFrame([msgspec.structs.astuple(row) for row in found], columns=HistoryRow.__struct_fields__)

    return call
