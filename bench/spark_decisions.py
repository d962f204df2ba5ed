"""How long a report waits for its decision: the scale query with many streams, from its topic to the request.

A private Kafka and the driver are started for it, nothing else. Reports arrive at a fixed rate, streams in turn. From
some time of the run on, those of a stream say that its segment is hot, of which the first leads to a request; before
they say that it is cold, which leads to nothing. The time counts from when the broker appended the first hot one until
it appended the request.
Streams of their own come first, at the same rate: the first batches of a fresh driver take seconds.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import httpx
import msgspec
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families
from support.decisions import hot
from support.kafka import read
from support.spark import SPARK, kafka_and_spark

from bench.figures import quantile
from bench.processor_time import cpu_s
from harness import System, eventually
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_STREAMS, SCALE, ensure_topics

_PARTITIONS = 16
_READY_S, _DECIDED_S = 180.0, 300.0
_QUEUED = 10_000
_COLD_S, _COLD_STREAMS = 15, 300


class Measured(msgspec.Struct):
    """`latency_…`: from the report in its topic to the request in its own. `batch_s`, `phases_s`: means. Memory in MiB.

    `cold_…`: of the streams that came first. `p99_by_fifth_ms`: of each fifth of the run, in its order.

    `decided_per_s`: of the reports, until the last decision. `cpu_s`: what the driver, its JVM and its workers used
    meanwhile. `load`: of the machine at the end, over a minute.
    """

    reports: int
    streams: int
    buckets: int
    cores: int
    per_s: float
    decided_per_s: float
    requests: int
    latency_p50_ms: float
    latency_p99_ms: float
    latency_max_ms: float
    p99_by_fifth_ms: list[float]
    cold_p50_ms: float
    cold_p99_ms: float
    batches: int
    batch_s: float
    phases_s: dict[str, float]
    state_rows: float
    state_mib: float
    cpu_s: float
    load: float


def measure(reports: int, streams: int, rate: int, buckets: int, cores: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        system = kafka_and_spark(Path(folder) / "system", partitions=_PARTITIONS, ready_s=_READY_S, keep_logs=False)
        try:
            system.start("kafka")
            ensure_topics({"bootstrap.servers": system.kafka_bootstrap}, _PARTITIONS, 1)
            settings = {"SLUICE_SPARK_BUCKETS": str(buckets), "SLUICE_SPARK_MASTER": f"local[{cores}]"}
            system.start(SPARK, environment=settings)
            return _measured(system, reports, streams, rate, buckets, cores)
        finally:
            system.down()


def _measured(system: System, reports: int, streams: int, rate: int, buckets: int, cores: int) -> Measured:
    first = rate * _COLD_S
    _tell(system, first, _COLD_STREAMS, rate, "cold")
    _drain(system, first, _COLD_STREAMS)
    before = _metrics(system)
    began, used = time.time(), cpu_s(system.pid(SPARK))
    _tell(system, reports, streams, rate, "st")
    took = time.time() - began
    decided_at = _drain(system, first + reports, _COLD_STREAMS + streams)
    used = cpu_s(system.pid(SPARK)) - used
    reported, requests = _hot_reports(system), _requests(system)
    # In the order of the reports.
    by_report = sorted(reported.items(), key=lambda entry: entry[1])
    waits = {stream: float(requests[stream] - at) for stream, at in by_report}
    cold = [wait for stream, wait in waits.items() if stream.startswith("cold")]
    waited = [wait for stream, wait in waits.items() if stream.startswith("st")]
    fifth = max(len(waited) // 5, 1)
    after = _metrics(system)
    spent = {name: value - before.get(name, 0) for name, value in after.items()}
    batches = max(spent["batch_seconds_count"], 1)
    phase = "phase_seconds_total:"
    return Measured(
        reports=reports,
        streams=streams,
        buckets=buckets,
        cores=cores,
        per_s=round(reports / took, 1),
        decided_per_s=round(reports / (decided_at / 1000 - began), 1),
        requests=len(waited),
        latency_p50_ms=quantile(waited, 0.5),
        latency_p99_ms=quantile(waited, 0.99),
        latency_max_ms=max(waited),
        p99_by_fifth_ms=[quantile(waited[i : i + fifth], 0.99) for i in range(0, len(waited), fifth)],
        cold_p50_ms=quantile(cold, 0.5),
        cold_p99_ms=quantile(cold, 0.99),
        batches=int(batches),
        batch_s=round(spent["batch_seconds_sum"] / batches, 2),
        phases_s={
            name.removeprefix(phase): round(value / batches, 3)
            for name, value in spent.items()
            if name.startswith(phase)
        },
        state_rows=after["state_rows"],
        state_mib=round(after["state_bytes"] / 2**20, 1),
        cpu_s=round(used, 1),
        load=round(os.getloadavg()[0], 1),
    )


def _tell(system: System, reports: int, streams: int, rate: int, prefix: str) -> None:
    """Send reports, streams in turn, at the rate per second."""
    producer = Producer(
        {"bootstrap.servers": system.kafka_bootstrap, "partitioner": "murmur2_random", "linger.ms": 5, "acks": "all"}
    )
    began = time.monotonic()
    for number in range(reports):
        name = f"{prefix}{number % streams}"
        at = time.time_ns() // 1_000_000
        is_hot = number // streams >= number % streams % max(reports // streams, 1)
        report = hot(name, at, id=f"{name}-{number}", direction=Direction.UP if is_hot else Direction.DOWN)
        producer.produce(SCALE.name, msgspec.json.encode(report), key=f"s/{name}")
        ahead = (number + 1) / rate - (time.monotonic() - began)
        producer.poll(max(ahead, 0))
        if len(producer) > _QUEUED:
            producer.flush()
    producer.flush()


def _drain(system: System, reports: int, streams: int) -> int:
    """Wait until all is decided that was reported, which was hot of so many streams; when the last was, in epoch ms."""

    def all_read() -> bool:
        now = _metrics(system)
        return now["input_records_total"] >= reports and now["lag_records"] == 0

    # Reading requests costs more than this, and there are many.
    eventually(all_read, _DECIDED_S, "all reports are read")
    eventually(lambda: len(_requests(system)) >= streams, _DECIDED_S, "every stream has its request")
    return max(_requests(system).values())


def _requests(system: System) -> dict[str, int]:
    """When the first request for each stream was appended, in epoch ms."""
    found: dict[str, int] = {}
    for message in read(system.kafka_bootstrap, REQUESTS_STREAMS.name):
        command = decode_request(message.value() or b"").command
        if isinstance(command, ScaleStream):
            found.setdefault(command.stream, message.timestamp()[1])
    return found


def _hot_reports(system: System) -> dict[str, int]:
    """The streams said to be hot, and when first, in epoch ms."""
    found: dict[str, int] = {}
    for message in read(system.kafka_bootstrap, SCALE.name):
        report = msgspec.json.decode(message.value() or b"", type=ScaleReport)
        if report.direction is Direction.UP:
            found.setdefault(report.stream, message.timestamp()[1])
    return found


def _metrics(system: System) -> dict[str, float]:
    """The metrics of the scale query, those of a phase as `name:phase`."""
    text = httpx.get(f"{system.health_url(SPARK)}/metrics", timeout=5).text
    samples = (s for family in text_string_to_metric_families(text) for s in family.samples)
    return {
        ":".join(filter(None, (s.name.removeprefix("sluice_spark_"), s.labels.get("phase")))): s.value
        for s in samples
        if s.labels.get("query") == "scale" and "le" not in s.labels
    }


def main() -> int:
    """Print the figures; exit code 1 if the p99 is 5 s or more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--rate", type=int, default=1_000, help="reports per second")
    parser.add_argument("--buckets", type=int, default=32)
    parser.add_argument("--cores", type=int, default=2, help="tasks at a time")
    parser.add_argument("--limit-ms", type=float, default=5_000)
    options = parser.parse_args()
    measured = measure(options.reports, options.streams, options.rate, options.buckets, options.cores)
    print(msgspec.json.format(msgspec.json.encode(measured)).decode())
    return 0 if measured.latency_p99_ms < options.limit_ms else 1


if __name__ == "__main__":
    sys.exit(main())
