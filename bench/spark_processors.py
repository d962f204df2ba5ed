"""The decisions in Spark's second interface for state (`transformWithState`), to be measured beside the one in use.

The same steps over the same buckets as in `retention_spark.stateful_operator`; state and timers are read one by one,
over a socket to the JVM. A timer is not replaced by a new one, so the time of the last one lies beside the memory. A
module of its own, because workers import what they run by its name.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from retention_spark.buckets import BucketDecider
from retention_spark.report_decider import Decided, ReportDecider, ReportRecord
from retention_spark.stateful_operator import Outcome, report_records
from sluice.policies.rules import Rule

_STATE = "memory binary, wake_at bigint"


class _Processor(StatefulProcessor):
    """One step of a bucket; what rows look like is for those who inherit."""

    def __init__(self, rule: Rule, source: str) -> None:
        self._rule = rule
        self._source = source

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._memory = handle.getValueState("memory", _STATE)

    def _stepped(self, records: Iterable[ReportRecord], now: int, expired: int | None = None) -> bytes | None:
        """What came of the step, encoded; None for nothing. `expired` is the timer that led to it, if one did."""
        memory, timer = self._memory.get() or (None, None)
        known = bytes(memory) if memory is not None else None
        step = _decider(self._rule, self._source).step(known, records, now)
        self._remember(step, timer if timer != expired else None, now)
        if step.sendings or step.rows:
            return msgspec.msgpack.encode(Outcome(step.sendings, step.rows, 0, step.wake_at))
        return None

    def _remember(self, step: Decided, timer: int | None, now: int) -> None:
        wake_at = max(step.wake_at, now + 1) if step.wake_at is not None else None
        if timer is not None and timer != wake_at:
            self._handle.deleteTimer(timer)
        if step.memory is None or wake_at is None:
            self._memory.clear()
            return
        if timer != wake_at:
            self._handle.registerTimer(wake_at)
        self._memory.update((step.memory, wake_at))


class PandasProcessor(_Processor):
    """For `transformWithStateInPandas`."""

    def handleInputRows(  # noqa: N802
        self,
        _key: Any,
        rows: Iterator[Any],
        timer_values: TimerValues,
    ) -> Iterator[Any]:
        yield from _framed(self._stepped(report_records(rows), timer_values.getCurrentProcessingTimeInMs()))

    def handleExpiredTimer(  # noqa: N802
        self,
        _key: Any,
        timer_values: TimerValues,
        expired: ExpiredTimerInfo,
    ) -> Iterator[Any]:
        now, timer = timer_values.getCurrentProcessingTimeInMs(), expired.getExpiryTimeInMs()
        yield from _framed(self._stepped((), now, timer))


class RowProcessor(_Processor):
    """For `transformWithState`."""

    def handleInputRows(  # noqa: N802
        self,
        _key: Any,
        rows: Iterator[Any],
        timer_values: TimerValues,
    ) -> Iterator[Any]:
        records = [ReportRecord(row.topic, row.partition, row.offset, row.key, bytes(row.value)) for row in rows]
        records.sort(key=lambda record: (record.partition, record.offset))
        yield from _rows(self._stepped(records, timer_values.getCurrentProcessingTimeInMs()))

    def handleExpiredTimer(  # noqa: N802
        self,
        _key: Any,
        timer_values: TimerValues,
        expired: ExpiredTimerInfo,
    ) -> Iterator[Any]:
        now, timer = timer_values.getCurrentProcessingTimeInMs(), expired.getExpiryTimeInMs()
        yield from _rows(self._stepped((), now, timer))


def _framed(outcome: bytes | None) -> Iterator[pd.DataFrame]:
    if outcome is not None:
        yield pd.DataFrame({"outcome": [outcome]})


def _rows(outcome: bytes | None) -> Iterator[Row]:
    if outcome is not None:
        yield Row(outcome=outcome)


@lru_cache
def _decider(rule: Rule, source: str) -> BucketDecider:
    """One for all batches of a worker."""
    return BucketDecider(ReportDecider(rule, source))
