"""The stateful operator around the decisions: Spark keeps what is remembered of a bucket, calls when its time comes.

State and output are bytes to Spark; what is in them is the business of `buckets` and `report_decider`. The time of a
step is that of the batch, also when Spark repeats a task. Runs in Spark's workers, one call per bucket and batch.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluice.policies.rules import Rule
from sluice.workflows.report_buckets import BucketDecider, BucketStep, Outcome, outcome_of
from sluice.workflows.report_decider import ReportDecider, ReportRecord

STATE = "memory binary"
OUTPUT = "outcome binary"
_COLUMNS = (
    "topic",
    "partition",
    "offset",
    # Whatever a producer has put there, it must be reported if it cannot be read.
    "coalesce(make_valid_utf8(cast(key as string)), '') key",
    "coalesce(value, x'') value",
    "coalesce(to_json(headers), '') headers",
)

Call = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


class Operator(msgspec.Struct, frozen=True):
    """How a query decides: its rule, this process as service/instance, the topic of reports and of what is remembered.

    What is remembered is saved within `save_ms`.
    """

    rule: Rule
    source: str
    topic: str
    memory: str
    save_ms: int


def outcomes(batch: DataFrame) -> Iterator[Outcome]:
    """What came of a batch, bucket by bucket; takes the steps."""
    for row in batch.collect():
        yield msgspec.msgpack.decode(row["outcome"], type=Outcome)


def decided(records: DataFrame, operator: Operator, buckets: int, parts: int) -> DataFrame:
    """What is decided on records, read in so many parts: one row for each bucket that took a step.

    `outcomes` reads them.
    """
    columns = records.coalesce(parts).selectExpr(*_COLUMNS, f"pmod(xxhash64(key), {buckets}L) bucket")
    return columns.groupBy("bucket").applyInPandasWithState(
        _call(operator), OUTPUT, STATE, "append", GroupStateTimeout.ProcessingTimeTimeout
    )


def _call(operator: Operator) -> Call:
    """What Spark sends to its workers; the decider is made there, because decoders do not travel."""

    def call(bucket: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        memory = state.get[0] if state.exists else None
        now = state.getCurrentProcessingTimeMs()
        records = [] if state.hasTimedOut else report_records(frames)
        step = _decider(operator).step(memory, records, now)
        _remember(state, step, now)
        outcome = outcome_of(step, int(bucket[0]), records, operator.topic, now)
        yield pd.DataFrame({"outcome": [msgspec.msgpack.encode(outcome)]})

    return call


@lru_cache
def _decider(operator: Operator) -> BucketDecider:
    """One for all batches of a worker."""
    return BucketDecider(ReportDecider(operator.rule, operator.source), operator.memory, operator.save_ms)


def report_records(frames: Iterable[pd.DataFrame]) -> list[ReportRecord]:
    """The records of a bucket, those of each key in the order of their topic: Spark hands them over in any."""
    records = [
        ReportRecord(*fields)
        for frame in frames
        for fields in zip(*(frame[name] for name in ReportRecord.__struct_fields__), strict=True)
    ]
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _remember(state: GroupState, step: BucketStep, now: int) -> None:
    if step.memory is None:
        if state.exists:
            state.remove()
        return
    state.update((step.memory,))
    if step.wake_at is not None:
        state.setTimeoutDuration(max(step.wake_at - now, 1))
