"""The batch job behind `what_if`: everything a topic of reports holds, replayed to the rules with another policy.

A module of its own, because what workers run must not come from the program's main module: there it has no name to be
found by.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame

from retention_spark.query import plans, recorded
from retention_spark.replay import OtherScaling, Record, Replay, RetentionReplay, ScalingReplay, replayed
from retention_spark.rules import RetentionRule, ScaleRule
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings
from retention_spark.stateful_operator import HistoryRow
from sluice.domain.config import RetentionPolicy
from sluice.domain.ids import StreamId
from sluice.kafka.topics import RETENTION, SCALE, Topic

Policy = RetentionPolicy | OtherScaling
_COLUMNS = ", ".join(f"{name} {'bigint' if name == 'at' else 'string'}" for name in HistoryRow.__struct_fields__)


def would_have(settings: SparkSettings, scope: str, stream: str, policy: Policy, now: int) -> list[HistoryRow]:
    """What would have been decided on the stream, by time."""
    topic: Topic = RETENTION if isinstance(policy, RetentionPolicy) else SCALE
    session = open_session("what-if", settings)
    try:
        records = recorded(session, topic, settings).where(f"key = cast('{StreamId(scope, stream).key}' as binary)")
        found = _replayed(records, settings, stream, policy, now).collect()
    finally:
        session.stop()
    return sorted((HistoryRow(**row.asDict()) for row in found), key=lambda row: row.at)


def _replayed(records: DataFrame, settings: SparkSettings, stream: str, policy: Policy, now: int) -> DataFrame:
    columns = records.selectExpr("key", "offset", "unix_millis(timestamp) at", "coalesce(value, x'') value")
    rules = {plan.rule.kind: plan.rule for plan in plans(settings)}
    return columns.groupBy("key").applyInPandas(_call(tuple(rules.values()), stream, policy, now), _COLUMNS)


def _call(rules: tuple[Any, ...], stream: str, policy: Policy, now: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What Spark sends to its workers: all of a key's records become the decisions on one of its streams."""

    def call(frame: pd.DataFrame) -> pd.DataFrame:
        rows = frame.sort_values("offset")
        records = [Record(at, value) for at, value in zip(rows["at"], rows["value"], strict=True)]
        replay = replay_of(rules, policy)
        found = replayed(replay, (r for r in records if is_about(r, stream)), now)
        return pd.DataFrame([msgspec.structs.astuple(row) for row in found], columns=HistoryRow.__struct_fields__)

    return call


class _About(msgspec.Struct):
    stream: str


def is_about(record: Record, stream: str) -> bool:
    """Whether the report can be read and is about that stream, not about another one of its key."""
    try:
        return msgspec.json.decode(record.value, type=_About).stream == stream
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def replay_of(rules: tuple[Any, ...], policy: Policy) -> Replay:
    if isinstance(policy, RetentionPolicy):
        return RetentionReplay(next(r for r in rules if isinstance(r, RetentionRule)), policy)
    return ScalingReplay(next(r for r in rules if isinstance(r, ScaleRule)), policy)
