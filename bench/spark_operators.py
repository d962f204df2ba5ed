"""What Spark's stateful operators cost for the same decisions: seconds a batch, with nothing around them but Spark.

Files of reports, written beforehand, are read one a batch, and what comes of a batch is collected by the driver; Kafka
takes no part. Every stream reports in turn, and once as hot, as in `spark_decisions`. Each operator reads the same
files with a state of its own (RocksDB), in one session, one after the other; the first batches of each do not count.
Who decides must decide alike in every batch, or this fails. The built-in aggregation decides nothing: it keeps the
latest report of each segment, which is as near as it comes, and is what the rest is to be compared with.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from support.decisions import hot

from bench.figures import quantile
from bench.processor_time import cpu_s
from bench.spark_processors import PandasProcessor, RowProcessor
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings
from retention_spark.stateful_operator import OUTPUT, bucketed, decided, outcomes
from sluice.domain.stream.traffic import Direction
from sluice.kafka.topics import SCALE
from sluice.policies.rules import ScaleRule
from sluice_local.settings import LocalSettings

_PARTITIONS = 16
_BY_STREAM = 1 << 62
"""So many buckets that each holds one stream."""

_SOURCE = "retention-spark/bench"
_SCHEMA = (
    "topic string, partition int, offset bigint, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>"
)
_ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
_REPORT = "segment bigint, at bigint, direction string, splits int, silent boolean"

Requests = dict[int, frozenset[str]]
"""The ids of the requests, by batch."""


class Operator(msgspec.Struct, frozen=True):
    """`mode` is Spark's output mode; `decides`: its rows are outcomes of the rule."""

    name: str
    over: Callable[[DataFrame], DataFrame]
    mode: str = "append"
    decides: bool = True


class Measured(msgspec.Struct):
    """Seconds of the clock a batch, its part inside Spark's tasks and the driver's collecting, and of the processors.

    Of `batches` that count; `state_mib` is what the state's stores hold in memory, `state_rows` how many values.
    """

    name: str
    batches: int
    p50_s: float
    p90_s: float
    add_p50_s: float
    cpu_s: float
    state_rows: int
    state_mib: float
    requests: Requests


def operators(buckets: int, parts: int) -> tuple[Operator, ...]:
    rule = ScaleRule()

    def stateful(by: int) -> Callable[[DataFrame], DataFrame]:
        return lambda records: decided(records, rule, _SOURCE, by, parts)

    def in_pandas(by: int) -> Callable[[DataFrame], DataFrame]:
        return lambda records: bucketed(records, by, parts).transformWithStateInPandas(
            PandasProcessor(rule, _SOURCE), OUTPUT, "Append", "ProcessingTime"
        )

    def in_rows(by: int) -> Callable[[DataFrame], DataFrame]:
        return lambda records: bucketed(records, by, parts).transformWithState(
            RowProcessor(rule, _SOURCE), OUTPUT, "Append", "ProcessingTime"
        )

    return (
        Operator("built-in: latest report of a segment", partial(_latest, parts=parts), "update", False),
        Operator(f"applyInPandasWithState, {buckets} buckets", stateful(buckets)),
        Operator(f"transformWithStateInPandas, {buckets} buckets", in_pandas(buckets)),
        Operator(f"transformWithState (rows), {buckets} buckets", in_rows(buckets)),
        Operator("applyInPandasWithState, by stream", stateful(_BY_STREAM)),
        Operator("transformWithStateInPandas, by stream", in_pandas(_BY_STREAM)),
        Operator("transformWithState (rows), by stream", in_rows(_BY_STREAM)),
    )


def _latest(records: DataFrame, parts: int) -> DataFrame:
    """The latest word on each segment, whenever there is a later one."""
    read = records.coalesce(parts).selectExpr(
        "cast(key as string) key", f"from_json(cast(value as string), '{_REPORT}') report"
    )
    load = F.struct("report.at", "report.direction", "report.splits", "report.silent")
    return read.groupBy("key", "report.segment").agg(F.max_by(load, "report.at").alias("load"))


def write_reports(folder: Path, batches: int, streams: int, per_batch: int) -> None:
    """One file of reports for each batch, in the order of the times that the files bear."""
    folder.mkdir()
    began, rounds = time.time_ns() // 1_000_000, max(batches * per_batch // streams, 1)
    for batch in range(batches):
        columns: dict[str, list[object]] = {"topic": [], "partition": [], "offset": [], "key": [], "value": []}
        for number in range(batch * per_batch, (batch + 1) * per_batch):
            stream = number % streams
            up = number // streams == stream % rounds
            report = hot(f"st{stream}", began + number, direction=Direction.UP if up else Direction.DOWN)
            row = (SCALE.name, stream % _PARTITIONS, number, f"s/st{stream}".encode(), msgspec.json.encode(report))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
        file = folder / f"{batch:04}.parquet"
        pq.write_table(pa.table(columns, _ARROW), file)
        os.utime(file, (began // 1000 + batch, began // 1000 + batch))


def measure(session: SparkSession, operator: Operator, reports: Path, state: Path, warm: int, limit_s: int) -> Measured:
    """Read all files, or as many as it takes `limit_s`. Raises StreamingQueryException."""
    requests: Requests = {}
    used: dict[int, float] = {}

    def collect(batch: DataFrame, number: int) -> None:
        requests[number] = frozenset(_requests(batch)) if operator.decides else frozenset(map(str, batch.collect()))
        used[number] = cpu_s(os.getpid())

    records = session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(reports))
    query = (
        operator.over(records)
        .writeStream.outputMode(operator.mode)
        .foreachBatch(collect)
        .option("checkpointLocation", str(state))
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(limit_s):
        query.stop()
    done = [progress for progress in query.recentProgress if progress.numInputRows]
    counted = done[warm:]
    if len(counted) < 2:
        raise TooSlowError(f"{operator.name}: {len(done)} batches in {limit_s} s, {warm} of them to warm up")
    whole = [progress.durationMs["triggerExecution"] / 1000 for progress in counted]
    (store,) = counted[-1].stateOperators
    return Measured(
        name=operator.name,
        batches=len(counted),
        p50_s=quantile(whole, 0.5),
        p90_s=quantile(whole, 0.9),
        add_p50_s=quantile([progress.durationMs["addBatch"] / 1000 for progress in counted], 0.5),
        cpu_s=(used[counted[-1].batchId] - used[done[warm - 1].batchId]) / len(counted),
        state_rows=store.numRowsTotal,
        state_mib=store.memoryUsedBytes / 2**20,
        requests={progress.batchId: requests[progress.batchId] for progress in done},
    )


class TooSlowError(Exception):
    """An operator has not come as far as to be measured."""


def _requests(batch: DataFrame) -> Iterator[str]:
    for outcome in outcomes(batch):
        yield from (row.request for row in outcome.rows if row.request)


def differing(measured: list[Measured]) -> list[str]:
    """Who has decided otherwise than the first one, in a batch that both have done."""
    first, *others = measured
    return [
        f"{other.name}: batch {number} asks for {len(requests)} scales, {first.name} for {len(first.requests[number])}"
        for other in others
        for number, requests in other.requests.items()
        if requests != first.requests.get(number, requests)
    ]


def table(measured: list[Measured]) -> Iterator[str]:
    yield "| operator | batches | p50 s | p90 s | in the batch s | processor s | state rows | state MiB |"
    yield "|---|---|---|---|---|---|---|---|"
    for m in measured:
        times = f"{m.p50_s:.2f} | {m.p90_s:.2f} | {m.add_p50_s:.2f} | {m.cpu_s:.2f}"
        yield f"| {m.name} | {m.batches} | {times} | {m.state_rows} | {m.state_mib:.1f} |"


def main() -> int:
    """Print a table; exit code 1 if two operators have decided differently, or one was too slow to be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--records", type=int, default=1_000, help="per batch")
    parser.add_argument("--batches", type=int, default=20, help="that count, at most")
    parser.add_argument("--warm-up", type=int, default=5, help="batches before those that count")
    parser.add_argument("--buckets", type=int, default=32)
    parser.add_argument("--limit-s", type=int, default=30, help="for each operator")
    parser.add_argument("--reverse", action="store_true", help="the other way round: the later, the warmer is the JVM")
    parser.add_argument("--only", default="", help="operators whose name has this in it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = SparkSettings(
            spark_local=folder / "local",
            spark_jars=LocalSettings().jars_dir / "spark",
            spark_buckets=options.buckets,
        )
        write_reports(folder / "reports", options.warm_up + options.batches, options.streams, options.records)
        session = open_session("operators", settings)
        order = operators(settings.spark_buckets, settings.spark_state_partitions)[:: -1 if options.reverse else 1]
        measured: list[Measured] = []
        slow: list[str] = []
        try:
            for operator in order:
                if options.only not in operator.name:
                    continue
                state = folder / f"state-{len(measured) + len(slow)}"
                try:
                    found = measure(session, operator, folder / "reports", state, options.warm_up, options.limit_s)
                except TooSlowError as error:
                    slow.append(str(error))
                    print(error, file=sys.stderr, flush=True)
                    continue
                measured.append(found)
                print(*list(table([found]))[2:], flush=True)
        finally:
            session.stop()
    print(*table(measured), sep="\n")
    print(f"load of the machine over a minute: {os.getloadavg()[0]:.1f}")
    deciding = [m for m in measured if not m.name.startswith("built-in")]
    wrong = differing(deciding) if deciding else []
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong or slow else 0


if __name__ == "__main__":
    sys.exit(main())
