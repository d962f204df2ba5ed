"""Autoscalers of `components/scaling` on the node of `make k8s-up`, with smaller numbers, so that one node shows them.

The HorizontalPodAutoscaler is the component's, from 1 to 3. KEDA does not run there: what its Kafka scaler would ask
Kafka, and what the autoscaler would make of the answer, is done here.
"""

import math
from pathlib import Path

import yaml
from confluent_kafka import Consumer, TopicPartition
from support.wait import eventually

from bench.pods import KAFKA, READY_S, kubectl, scaled, tried, wait_for
from bench.prober import Prober

_SCALING = Path(__file__).resolve().parents[1] / "deploy" / "k8s" / "components" / "scaling"
_MOST = 3
_SMALLER = 20
"""A node of two cores makes a twentieth of the lag."""


def gateway_follows_load(address: str) -> None:
    """Calls make the autoscaler start another gateway; without them it goes back to one."""
    (scaler,) = yaml.safe_load_all((_SCALING / "api-gateway.yaml").read_text())
    scaler["spec"] |= {"minReplicas": 1, "maxReplicas": _MOST}
    scaler["spec"]["behavior"] = {
        "scaleUp": {"stabilizationWindowSeconds": 0},
        "scaleDown": {"stabilizationWindowSeconds": 15, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]},
    }
    applied = tried("apply", "--filename=-", given=yaml.safe_dump(scaler))
    assert applied.returncode == 0, applied.stderr
    try:
        with Prober(address, threads=8, per_s=100):
            eventually(lambda: replicas("api-gateway") > 1, READY_S, "more gateways under load")
            wait_for("api-gateway", replicas("api-gateway"))
        eventually(lambda: replicas("api-gateway") == 1, READY_S, "one gateway without load")
    finally:
        kubectl("delete", "horizontalpodautoscaler", "api-gateway")
    scaled("api-gateway", 1)


def workflows_follow_lag(address: str) -> None:
    """The replicas that KEDA's query says: more while creations wait or are not committed yet, one after."""
    (scaler,) = yaml.safe_load_all((_SCALING / "stream-workflows.yaml").read_text())
    (trigger,) = (found["metadata"] for found in scaler["spec"]["triggers"])
    threshold = int(trigger["lagThreshold"]) / _SMALLER
    # Reads what its group has committed, and never joins it.
    consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": trigger["consumerGroup"]})

    def wanted() -> int:
        return min(max(math.ceil(_lag(consumer, trigger["topic"]) / threshold), 1), _MOST)

    try:
        with Prober(address, threads=8, per_s=50):
            more = eventually(lambda: (found := wanted()) > 1 and found, READY_S, "the lag asks for more workflows")
            scaled("stream-workflows", more)
        eventually(lambda: wanted() == 1, READY_S, "the lag asks for one")
        scaled("stream-workflows", 1)
    finally:
        consumer.close()


def _lag(consumer: Consumer, topic: str) -> int:
    """What KEDA's Kafka scaler sums up: the distance from what is committed to the end, of all partitions."""
    partitions = [TopicPartition(topic, number) for number in consumer.list_topics(topic).topics[topic].partitions]
    committed = consumer.committed(partitions, timeout=30)
    ends = (consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions)
    return sum(end - max(partition.offset, 0) for end, partition in zip(ends, committed, strict=True))


def replicas(service: str) -> int:
    """How many pods are wanted."""
    return int(kubectl("get", f"deployment/{service}", "--output=jsonpath={.spec.replicas}"))
