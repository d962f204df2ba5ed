"""What a system costs while nobody calls: processor time, memory, and records written, of each process and topic.

A private system with retention-spark and so many streams is started and left alone until it has settled. Then
nothing is called for some minutes. Processor time is that of a process and everything it started, as part of a core.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from support.controller import Controller, controller, info

from bench.processor_time import cpu_s
from harness import System
from sluice.controller_api import controller_pb2 as pb

_SCOPE = "idle"
_READY_S = 300.0


def measure(streams: int, settle_s: float, minutes: float, with_policies: bool) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        system = System(
            Path(folder) / "system", segment_stores=1, retention_sparks=1, start_timeout_s=_READY_S, keep_logs=False
        )
        with system:
            with controller(system.grpc_address) as client:
                _create(client, streams, with_policies)
            time.sleep(settle_s)
            return _measured(system, 60 * minutes)


def _create(client: Controller, streams: int, with_policies: bool) -> None:
    client.create_scope(_SCOPE)
    fixed = pb.ScalingPolicy(scaleType=pb.ScalingPolicy.FIXED_NUM_SEGMENTS, minNumSegments=1)
    retention = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=1 << 30)
    for number in range(streams):
        config = pb.StreamConfig(streamInfo=info(_SCOPE, f"s{number}"), scalingPolicy=fixed)
        if with_policies:
            config.retentionPolicy.CopyFrom(retention)
        assert client.status("createStream", config) == "SUCCESS"


def _measured(system: System, seconds: float) -> dict[str, object]:
    names = [name for name in system.names if system.is_running(name)]
    used = {name: cpu_s(system.pid(name)) for name in names}
    ends, began = _ends(system), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {
        "load": round(os.getloadavg()[0], 2),
        "percent_of_a_core": {n: round(100 * (cpu_s(system.pid(n)) - used[n]) / took, 2) for n in names},
        "records_per_minute": {
            topic: round(60 * (end - ends[topic]) / took, 1)
            for topic, end in _ends(system).items()
            if end > ends.get(topic, 0)
        },
    }


def _ends(system: System) -> dict[str, int]:
    """How many records each topic has got so far."""
    consumer = Consumer({"bootstrap.servers": system.kafka_bootstrap, "group.id": "idle"})
    try:
        topics = consumer.list_topics(timeout=10).topics
        return {
            name: sum(consumer.get_watermark_offsets(TopicPartition(name, p), timeout=10)[1] for p in topic.partitions)
            for name, topic in sorted(topics.items())
        }
    finally:
        consumer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--policies", action="store_true", help="each stream has a policy of retention")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds until it is measured")
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    print(json.dumps(measure(options.streams, options.settle, options.minutes, options.policies), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
