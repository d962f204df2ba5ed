"""What the alerts leave out and what they name is what the code does: codes of gRPC, routes of HTTP, topics."""

import re
from collections import Counter
from pathlib import Path

import httpx
import pytest
import yaml
from google.protobuf.message import DecodeError
from prometheus_client import REGISTRY
from unit.gateway.rest.world import World
from unit.telemetry.catalogue import MODULES

from api_gateway.edge import errors
from retention_spark.query_supervisor import QueryRunner
from sluice.domain.errors import IllegalStateError, InvalidArgumentError, NotFoundError
from sluice.engine.journal import JournalUnavailableError, PartitionFailedError
from sluice.engine.ports import RecordTooLargeError, SendError, SendQueueFullError
from sluice.kafka.topics import REPLAYABLE, REQUESTS_CLUSTER, STATISTICS, TOPICS, Topic
from sluice.telemetry.metrics import HTTP_SECONDS
from sluice_k8s import manifests
from sluice_local import services
from sluice_local.home import HOST
from sluice_local.settings import LocalSettings
from stream_workflows.settings import WorkflowSettings

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


def grpc_codes(*failures: Exception) -> set[str]:
    return {errors.failure_of(failure).code.name for failure in failures}


def test_an_rpc_that_we_fail_counts() -> None:
    unreachable = (SendError("why"), JournalUnavailableError("why"), PartitionFailedError("why"))
    overloaded = (SendQueueFullError("why"), errors.OverloadedError("why"), errors.RequestTimeoutError("why"))
    assert grpc_codes(*unreachable, *overloaded) <= codes()


def test_an_rpc_that_its_caller_fails_raises_no_alert() -> None:
    of_state = (NotFoundError("why"), IllegalStateError("sealed already"), InvalidArgumentError("a wrong lease"))
    of_request = (errors.BadRequestError("an empty name"), DecodeError("why"), RecordTooLargeError("why"))
    of_others = errors.NoOwnerError("another alert is about that")
    assert not grpc_codes(*of_state, *of_request, of_others) & codes()


def test_defects_have_the_code_of_callers_and_a_counter_of_their_own() -> None:
    assert not grpc_codes(ZeroDivisionError()) & codes()
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


def test_a_topic_without_consumers_counts_as_unowned() -> None:
    """Without an instance of its service it has no series to compare, so the expression gives each topic a 0 itself."""
    expression = EXPRESSIONS["SluicePartitionsUnowned"]
    zeros = re.findall(r'or label_replace\(vector\(0\), "topic", "([\w.]+)", "", ""\)', expression)
    assert sorted(zeros) == sorted(topic.name for topic in TOPICS if topic.partitions is None and is_divided(topic))
    assert re.findall(r'topic!="([\w.]+)"', expression) == [REQUESTS_CLUSTER.name], "it has one partition"


def is_divided(topic: Topic) -> bool:
    """Whether the instances of one service divide the topic's partitions, and callers wait for that."""
    return topic.read_by in (("stream-workflows",), ("txn-manager",)) and topic is not STATISTICS


def test_a_first_dead_letter_and_a_first_failure_of_a_query_are_an_increase() -> None:
    """Prometheus sees none in the first sample of a series, so each has to be there before, as 0."""
    assert "increase(sluice_dead_letters_total[" in EXPRESSIONS["SluiceDeadLetters"]
    for topic in REPLAYABLE:
        assert REGISTRY.get_sample_value("sluice_dead_letters_total", {"topic": topic.name}) is not None, topic.name
    assert "increase(sluice_spark_query_failures_total[" in EXPRESSIONS["SluiceSparkQueryFails"]
    yes, no = lambda: True, lambda: False
    QueryRunner("test-alerts", lambda: pytest.fail("not started"), lambda: None, yes, no, lambda _: None)
    assert REGISTRY.get_sample_value("sluice_spark_query_failures_total", {"query": "test-alerts"}) == 0


def test_periodic_work_that_fails_on_one_stream_each_round_is_alerted_on() -> None:
    """Whatever its rhythm, also while a segment store is waited for."""
    pattern = r"increase\(sluice_periodic_failures_total\[(\d+)m\]\)\) > (\d+)"
    ((minutes, most),) = re.findall(pattern, EXPRESSIONS["SluicePeriodicWorkFails"])
    settings = WorkflowSettings().model_dump()
    intervals = {name: value for name, value in settings.items() if name.endswith("_interval_s")}
    assert len(intervals) == 5
    for name, interval_s in intervals.items():
        failures = int(minutes) * 60 // (interval_s + settings["store_timeout_s"])
        assert failures > int(most), name


def test_a_restart_of_every_segment_store_raises_no_alert() -> None:
    """Each one leaves and comes back, so containers are assigned twice; how many move does not matter."""
    pattern = r"increase\((\w+)\[30m\]\)\) > 2 \* max\(sluice_segment_stores\) \+ (\d+)"
    ((counted, more),) = re.findall(pattern, EXPRESSIONS["SluiceContainersMove"])
    assert counted == "sluice_container_assignments_total"
    assert int(more) > 2, "one of them is away when it counts, and `increase` extrapolates"


def test_each_service_that_has_vanished_is_missed() -> None:
    """Without an instance there is no series, and a comparison with nothing never holds."""
    names = re.findall(r'absent\(sluice_process_info\{name="([\w-]+)"\}\)', EXPRESSIONS["SluiceServiceMissing"])
    assert sorted(names) == sorted(service for service in MODULES if service != "All services")


@pytest.mark.parametrize("name", ["kubernetes", "local"])
def test_the_scrape_configuration_has_what_the_alerts_expect(name: str) -> None:
    configuration = yaml.safe_load((RULES.parent / f"prometheus-{name}.yaml").read_text())
    assert [(RULES.parent / rules).resolve() for rules in configuration["rule_files"]] == [RULES]
    ((job,), (pattern,)) = configuration["scrape_configs"], matched("SluiceInstanceDown", "job")
    assert re.fullmatch(pattern, job["job_name"])


def test_the_local_scrape_configuration_has_the_ports_of_make_up() -> None:
    configuration = yaml.safe_load((RULES.parent / "prometheus-local.yaml").read_text())
    (static,) = configuration["scrape_configs"][0]["static_configs"]
    ports = (part.environment["SLUICE_HEALTH_PORT"] for part in services.parts(LocalSettings()))
    assert static["targets"] == [f"{HOST}:{port}" for port in ports]


def test_the_scrape_configuration_finds_the_pods_of_the_services() -> None:
    configuration = yaml.safe_load((RULES.parent / "prometheus-kubernetes.yaml").read_text())
    job = configuration["scrape_configs"][0]
    (discovery,), (kept, dropped, *_) = job["kubernetes_sd_configs"], job["relabel_configs"]
    assert (kept["action"], kept["source_labels"]) == ("keep", ["__meta_kubernetes_pod_container_port_name"])
    assert (dropped["action"], dropped["source_labels"]) == ("drop", ["__meta_kubernetes_pod_phase"])
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    assert [phase for phase in phases if not re.fullmatch(dropped["regex"], phase)] == ["Running", "Unknown"]
    found = set()
    for name, pod in manifests.pods(manifests.objects(manifests.kept("dev"))):
        for port in (port for container in manifests.containers(pod) for port in container.get("ports", [])):
            if re.fullmatch(kept["regex"], port["name"]):
                found.add(name.removeprefix("Deployment/"))
    assert found == set(MODULES) - {"All services"}
    assert discovery["namespaces"]["names"] == ["sluice"]
