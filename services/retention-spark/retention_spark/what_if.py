"""`python -m retention_spark.what_if SCOPE/STREAM POLICY [HOURS]`: what another policy would have done.

A batch job over everything that the topics of reports hold, with the rules of the streaming queries; printed beside
what happened, as the history tells it.
"""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame

from retention_spark.asking import UnreadableError, retention_of, scaling_of
from retention_spark.deciding import HistoryRow
from retention_spark.history import last_decisions, line_of
from retention_spark.query import plans, recorded
from retention_spark.replay import OtherScaling, Record, Replay, RetentionReplay, ScalingReplay, replayed
from retention_spark.rules import RetentionRule, ScaleRule
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings
from retention_spark.stateful import HISTORY
from sluice.domain.config import RetentionPolicy
from sluice.domain.names import stream_key
from sluice.messaging.topics import RETENTION, SCALE, Topic

HOUR_MS = 3600 * 1000
HOURS = 24
KEPT = 1000
_COLUMNS = f"{HISTORY}, request string, command string"
_WIDTH = 78

Policy = RetentionPolicy | OtherScaling


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or "/" not in arguments[0]:
        print(
            "usage: what_if SCOPE/STREAM (size=100MiB..1GiB | time=1h..2d | min=2,factor=4,cooldown=5m)",
            file=sys.stderr,
        )
        return 2
    scope, _, stream = arguments[0].partition("/")
    try:
        policy = policy_of(arguments[1])
    except UnreadableError as error:
        print(error, file=sys.stderr)
        return 2
    settings = SparkSettings()
    now = time.time_ns() // 1_000_000
    since = now - int(arguments[2] if len(arguments) > 2 else HOURS) * HOUR_MS
    would = [row for row in would_have(settings, scope, stream, policy, now) if row.at >= since]
    kind = "retention" if isinstance(policy, RetentionPolicy) else "scale"
    happened = last_decisions(settings.spark_history, scope, stream, KEPT)
    happened = [row for row in happened if row.at >= since and row.kind == kind]
    for line in beside(happened, would, arguments[1]):
        print(line)
    return 0


def policy_of(text: str) -> Policy:
    """Raises UnreadableError."""
    return retention_of(text) if text.startswith(("size", "time")) else scaling_of(text)


def would_have(settings: SparkSettings, scope: str, stream: str, policy: Policy, now: int) -> list[HistoryRow]:
    """What would have been decided on the stream, by time."""
    topic: Topic = RETENTION if isinstance(policy, RetentionPolicy) else SCALE
    session = open_session("what-if", settings)
    try:
        records = recorded(session, topic, settings).where(f"key = cast('{stream_key(scope, stream)}' as binary)")
        found = _replayed(records, settings, stream, policy, now).collect()
    finally:
        session.stop()
    return sorted((HistoryRow(**row.asDict()) for row in found), key=lambda row: row.at)


def _replayed(records: DataFrame, settings: SparkSettings, stream: str, policy: Policy, now: int) -> DataFrame:
    columns = records.selectExpr("key", "offset", "unix_millis(timestamp) at", "value")
    rules = {plan.rule.kind: plan.rule for plan in plans(settings)}
    return columns.groupBy("key").applyInPandas(_call(tuple(rules.values()), stream, policy, now), _COLUMNS)


def _call(rules: tuple[Any, ...], stream: str, policy: Policy, now: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What Spark sends to its workers: all of a key's records become the decisions on one of its streams."""

    def call(frame: pd.DataFrame) -> pd.DataFrame:
        rows = frame.sort_values("offset")
        records = [Record(at, value) for at, value in zip(rows["at"], rows["value"], strict=True)]
        replay = replay_of(rules, policy)
        found = replayed(replay, (r for r in records if _is_about(r, stream)), now)
        return pd.DataFrame([msgspec.structs.astuple(row) for row in found], columns=HistoryRow.__struct_fields__)

    return call


class _About(msgspec.Struct):
    stream: str


def _is_about(record: Record, stream: str) -> bool:
    """Whether the report can be read and is about that stream, not about another one of its key."""
    try:
        return msgspec.json.decode(record.value, type=_About).stream == stream
    except msgspec.DecodeError:
        return False


def replay_of(rules: tuple[Any, ...], policy: Policy) -> Replay:
    if isinstance(policy, RetentionPolicy):
        return RetentionReplay(next(r for r in rules if isinstance(r, RetentionRule)), policy)
    return ScalingReplay(next(r for r in rules if isinstance(r, ScaleRule)), policy)


def beside(happened: list[HistoryRow], would: list[HistoryRow], policy: str) -> Iterator[str]:
    """Lines for people: on the left what happened, on the right what the policy would have done."""
    yield f"{'what happened':{_WIDTH}} | with {policy}"
    yield f"{_summary(happened):{_WIDTH}} | {_summary(would)}"
    yield "-" * _WIDTH + "-+-" + "-" * _WIDTH
    times = sorted({row.at // 1000 for row in (*happened, *would)})
    for second in times:
        left = [line_of(row) for row in happened if row.at // 1000 == second]
        right = [line_of(row) for row in would if row.at // 1000 == second]
        for here, there in zip_longest(left, right, fillvalue=""):
            yield f"{here[:_WIDTH]:{_WIDTH}} | {there}".rstrip()


def _summary(rows: list[HistoryRow]) -> str:
    acted = sum(bool(row.request) for row in rows)
    return f"{len(rows)} decisions, {acted} of them to act"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
