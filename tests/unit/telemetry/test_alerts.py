"""What the alerts leave out and what they name is what the code does: codes of gRPC, routes of HTTP, topics."""

import re
from collections import Counter
from pathlib import Path

import httpx
import pytest
import yaml
from google.protobuf.message import DecodeError
from unit.gateway.rest.world import World

from api_gateway import errors
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.engine.journal import JournalUnavailableError, PartitionFailedError
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.kafka.topics import REQUESTS_CLUSTER, STATISTICS, TOPICS, Topic
from sluice.telemetry.metrics import HTTP_SECONDS

RULES = Path(__file__).resolve().parents[3] / "deploy/observability/alerts.yaml"
EXPRESSIONS = {
    rule["alert"]: rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}


def matched(alert: str, label: str) -> list[str]:
    """The patterns that the alert's expression holds the label against; Prometheus anchors them on both sides."""
    return re.findall(rf'\b{label}=~"([^"]*)"', EXPRESSIONS[alert])


def codes() -> set[str]:
    (pattern,) = matched("SluiceRpcErrors", "code")
    return set(pattern.split("|"))


@pytest.mark.parametrize(
    "error",
    [
        SendError("why"),
        SendQueueFullError("why"),
        JournalUnavailableError("why"),
        PartitionFailedError("why"),
        errors.OverloadedError("why"),
        errors.RequestTimeoutError("why"),
    ],
    ids=repr,
)
def test_an_rpc_that_we_fail_counts(error: Exception) -> None:
    assert errors.failure_of(error).code.name in codes()


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("why"),
        IllegalStateError("sealed already"),
        InvalidArgumentError("a wrong lease"),
        errors.BadRequestError("an empty name"),
        errors.NoOwnerError("another alert is about that"),
        errors.NotYetError("why"),
        DecodeError("why"),
        RecordTooLargeError("why"),
    ],
    ids=repr,
)
def test_an_rpc_that_its_caller_fails_raises_no_alert(error: Exception) -> None:
    assert errors.failure_of(error).code.name not in codes()


def test_the_code_of_defects_is_also_that_of_callers_so_defects_are_counted_by_themselves() -> None:
    assert errors.failure_of(ZeroDivisionError()).code.name not in codes()
    assert "sluice_rpc_defects_total" in EXPRESSIONS["SluiceRpcErrors"]


async def test_rest_is_alerted_on_and_health_is_not() -> None:
    """With 503 for all: REST before the journal is loaded, /readyz because a check fails."""
    world = World()
    world.runtime.checks["started"] = lambda: "starting"
    rest = ("/v1/scopes", "/sluice/v1/scopes", "/v1/scopes/sc/streams/st", "/sluice/v1/scopes/sc/streams/st")
    before = unavailable()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        for path in (*rest, "/readyz"):
            assert (await client.get(path)).status_code == 503, path
    counted = set(unavailable() - before)
    of_rest = {path for path in counted if path.startswith("/")}
    assert (len(of_rest), counted - of_rest) == (len(rest), {"ready"})
    patterns = matched("SluiceRestErrors", "path")
    assert len(patterns) == EXPRESSIONS["SluiceRestErrors"].count("sluice_http_seconds_count") == 2
    for pattern in patterns:
        assert {path for path in counted if re.fullmatch(pattern, path)} == of_rest


def unavailable() -> Counter[str]:
    """How often each route has answered 503."""
    found: Counter[str] = Counter()
    for sample in (sample for metric in HTTP_SECONDS.collect() for sample in metric.samples):
        if sample.name == "sluice_http_seconds_count" and sample.labels["status"] == "503":
            found[sample.labels["path"]] += int(sample.value)
    return found


def test_a_topic_that_nobody_consumes_counts_as_owned_by_nobody() -> None:
    """Without an instance of its service it has no series to compare, so the expression gives each topic a 0 itself."""
    expression = EXPRESSIONS["SluicePartitionsUnowned"]
    zeros = re.findall(r'or label_replace\(vector\(0\), "topic", "([\w.]+)", "", ""\)', expression)
    assert sorted(zeros) == sorted(topic.name for topic in TOPICS if topic.partitions is None and is_divided(topic))
    assert re.findall(r'topic!="([\w.]+)"', expression) == [REQUESTS_CLUSTER.name], "it has one partition"


def is_divided(topic: Topic) -> bool:
    """Whether the instances of one service divide the topic's partitions among them, and somebody waits for that."""
    return topic.read_by in (("stream-workflows",), ("txn-manager",)) and topic is not STATISTICS
