"""The stateful operator around the decisions: Spark keeps what is remembered of a key, and calls when its time comes.

State and output are rows of plain columns; what is in them is the business of `deciding`. The time of a step is that of
the batch, which stands in the checkpoint, so a batch that runs again has the same one. Runs in Spark's workers, one
call per key and batch.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from retention_spark.deciding import Decider, Heard, HistoryRow, Step
from retention_spark.rules import Rule

STATE = "memory binary"
HEADERS = "array<struct<key: string, value: binary>>"
HISTORY = "id string, kind string, at bigint, scope string, stream string, code string, reason string"
OUTPUT = f"topic string, key string, value binary, headers {HEADERS}, {HISTORY}, request string, command string"
_NAMES = ("topic", "key", "value", "headers", *HistoryRow.__struct_fields__)
# Empty instead of null: pandas guesses another type for columns in which nothing is.
_NO_SENDING: tuple[Any, ...] = ("", "", b"", [])
_NO_ROW = msgspec.structs.astuple(HistoryRow("", "", 0, "", "", "", "", "", ""))

Call = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def decided(records: DataFrame, rule: Rule, source: str) -> DataFrame:
    """What is decided on the records of a topic: rows to send have a topic, rows to keep have an id."""
    columns = records.selectExpr("cast(key as string) key", "topic", "partition", "offset", "value")
    return columns.groupBy("key").applyInPandasWithState(
        _call(rule, source), OUTPUT, STATE, "append", GroupStateTimeout.ProcessingTimeTimeout
    )


def _call(rule: Rule, source: str) -> Call:
    """What Spark sends to its workers; the decider is made there, because decoders do not travel."""

    def call(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        memory = state.get[0] if state.exists else None
        now = state.getCurrentProcessingTimeMs()
        heard = [] if state.hasTimedOut else _heard(key[0], frames)
        step = _decider(rule, source).step(memory, heard, now)
        _remember(state, step, now)
        rows = list(output(step))
        if rows:
            yield pd.DataFrame(rows, columns=_NAMES)

    return call


@lru_cache
def _decider(rule: Rule, source: str) -> Decider:
    """One for all batches of a worker."""
    return Decider(rule, source)


def _heard(key: str, frames: Iterable[pd.DataFrame]) -> list[Heard]:
    """The records of a key, in the order of their topic: Spark hands them over in any."""
    heard = [
        Heard(topic, partition, offset, key, value)
        for frame in frames
        for topic, partition, offset, value in zip(
            frame["topic"], frame["partition"], frame["offset"], frame["value"], strict=True
        )
    ]
    return sorted(heard, key=lambda record: record.offset)


def _remember(state: GroupState, step: Step, now: int) -> None:
    if step.memory is None:
        if state.exists:
            state.remove()
        return
    state.update((step.memory,))
    if step.wake_at is not None:
        state.setTimeoutDuration(max(step.wake_at - now, 1))


def output(step: Step) -> Iterator[tuple[Any, ...]]:
    """The rows of a step, by `OUTPUT`."""
    for sending in step.sendings:
        headers = [{"key": k, "value": v.encode() if isinstance(v, str) else v} for k, v in sending.headers]
        yield (sending.topic, sending.key, sending.value, headers, *_NO_ROW)
    for row in step.rows:
        yield (*_NO_SENDING, *msgspec.structs.astuple(row))
