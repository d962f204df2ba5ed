"""What a system costs that no one calls: a private one with everything, retention-spark too, and 100 streams.

The streams have no policies. Processor time is read from /proc, records are counted by the ends of all topics, Kafka's
own ones among them; both only at the begin and at the end, so that the measurement itself costs the system nothing.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench import secured
from bench.calls import Calls
from bench.figures import Idle
from bench.peer import until_scope
from bench.processor_time import cpu_by_name
from harness import System
from sluice.kafka.offsets import ends_of
from sluice.kafka_config import clients
from sluice.settings import ServiceSettings

SERVICES, SPARK, KAFKA = "Python services", "retention-spark", "Kafka"
OURS = ("api-gateway-0", "stream-workflows-0", "txn-manager-0", "cluster-manager-0")
STREAMS = 100
_SETTLE_S = 30.0
"""A broker and a Spark driver that have just started compile for a while."""


def measure(home: Path, seconds: float, say: Callable[[str], None]) -> Idle:
    """Start the system, create the streams, let it settle, and look on for so long."""
    say(f"an idle system, for {_SETTLE_S:g} s and then {seconds:g} s; logs in {home}")
    system = System(home, segment_stores=1, retention_sparks=1)
    secured.become_admin(system.settings)
    with system:
        until_scope(system.grpc_address)
        system.wait_ready("retention-spark-0")
        calls = Calls(system.grpc_address)
        calls.create_scope()
        calls.create_streams(f"s{number}" for number in range(STREAMS))
        calls.close()
        pause = threading.Event()
        pause.wait(_SETTLE_S)
        roots = {
            SERVICES: [system.pid(name) for name in OURS],
            SPARK: [system.pid("retention-spark-0")],
            KAFKA: [system.pid("kafka")],
        }
        records, used_s, began = _ends(system.kafka_bootstrap), cpu_by_name(roots), time.monotonic()
        pause.wait(seconds)
        used_s = {name: now - used_s[name] for name, now in cpu_by_name(roots).items()}
        took_s = time.monotonic() - began
        rates = per_minute(records, _ends(system.kafka_bootstrap), took_s)
    shares = {name: round(used / took_s * 100, 2) for name, used in used_s.items()}
    return Idle(round(took_s, 1), shares, rates, round(os.getloadavg()[0], 1))


def per_minute(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> dict[str, float]:
    """Records per minute by topic, those with most first; topics without any are left out."""
    rates = {name: (end - before.get(name, 0)) * 60 / seconds for name, end in after.items()}
    return {name: round(rate, 1) for name, rate in sorted(rates.items(), key=lambda r: -r[1]) if rate > 0}


def _ends(bootstrap: str) -> dict[str, int]:
    """How many records were ever appended to each topic."""
    admin = AdminClient(clients.admin(ServiceSettings(kafka_bootstrap=bootstrap, instance="bench").kafka_client()))
    topics = admin.list_topics(timeout=30).topics
    partitions = [(name, partition) for name, topic in topics.items() for partition in topic.partitions]
    ends = dict.fromkeys(topics, 0)
    for (topic, _), end in ends_of(admin, partitions, 30.0).items():
        ends[topic] += end
    return ends
