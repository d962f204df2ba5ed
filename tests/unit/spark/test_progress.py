"""What Spark says of a batch, as metrics."""

from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from retention_spark.batch_pause import BatchPause
from retention_spark.listener import SILENCE_S, ProgressListener, lag, record_progress


def progress(**changes: Any) -> dict[str, Any]:
    source = {"endOffset": {"t": {"0": 5, "1": 7}}, "latestOffset": {"t": {"0": 9, "1": 7}}}
    store = {"numRowsTotal": 3, "memoryUsedBytes": 1000}
    found = {
        "name": "a-query",
        "batchId": 7,
        "numInputRows": 12,
        "inputRowsPerSecond": 6.0,
        "durationMs": {"triggerExecution": 250},
        "sources": [source],
        "stateOperators": [store, store],
    }
    return {**found, **changes}


def pause() -> BatchPause:
    return BatchPause(dict, 0, 0)


def value(name: str) -> float | None:
    return REGISTRY.get_sample_value(f"sluice_spark_{name}", {"query": "a-query"})


def test_a_batch_becomes_metrics() -> None:
    before = value("input_records_total") or 0
    record_progress(progress())
    assert value("input_records_total") == before + 12
    assert (value("lag_records"), value("state_rows"), value("state_bytes")) == (4, 6, 2000)
    assert value("input_records_per_second") == 6


def test_what_a_batch_waits_is_no_time_it_took() -> None:
    before = value("batch_seconds_sum") or 0.0
    record_progress(progress(durationMs={"triggerExecution": 30_250, "addBatch": 30_100}), waited_s=30.0)
    assert (value("batch_seconds_sum") or 0.0) - before == pytest.approx(0.25)


def test_a_batch_without_input_has_no_rate() -> None:
    without = {key: v for key, v in progress().items() if key != "inputRowsPerSecond"}
    record_progress(without)
    assert value("input_records_per_second") == 0


def test_a_source_that_has_read_nothing_has_everything_before_it() -> None:
    assert lag({"endOffset": None, "latestOffset": {"t": {"0": 9}}}) == 9
    assert lag({"endOffset": {"t": {"0": 9}}, "latestOffset": None}) == 0


class Event:
    """What Spark tells of a batch that ended."""

    class progress:  # noqa: N801 - Spark's name
        name = "a-query"
        json = msgspec.json.encode(progress()).decode()


def test_a_query_that_ends_no_batch_any_more_is_a_problem() -> None:
    now = 0.0
    listener = ProgressListener({"a-query": pause()}, lambda: now)
    listener.begins("a-query")
    now = 5.0
    assert listener.problem("a-query") == "has ended no batch yet, 5 s after its start"
    assert not listener.ends_batches("a-query")
    listener.onQueryProgress(Event)  # type: ignore[arg-type]
    assert listener.problem("a-query") is None and listener.ends_batches("a-query")
    now = 5.0 + SILENCE_S
    assert listener.problem("a-query") is None
    now = 5.0 + SILENCE_S + 1
    assert listener.problem("a-query") == "has ended no batch for 61 s"
    listener.begins("a-query")
    assert listener.problem("a-query") == "has ended no batch yet, 0 s after its start", "it was started again"


def test_a_query_that_finds_nothing_to_do_is_at_work() -> None:
    class Idle:
        id, name = "its-id", "idle"

    listener = ProgressListener({})
    listener.begins("idle")
    listener.onQueryStarted(Idle)  # type: ignore[arg-type]
    assert listener.problem("idle") is not None
    listener.onQueryIdle(Idle)  # type: ignore[arg-type]
    assert listener.problem("idle") is None
    assert REGISTRY.get_sample_value("sluice_spark_batch_seconds_count", {"query": "idle"}) == 1


def test_a_query_whose_first_batch_hangs_is_counted_as_one_without_batches() -> None:
    ProgressListener({}).begins("hanging")
    assert REGISTRY.get_sample_value("sluice_spark_batch_seconds_count", {"query": "hanging"}) == 0
