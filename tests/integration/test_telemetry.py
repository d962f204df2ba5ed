"""What a running system tells about itself: one call as one trace over two services, and the metrics it promises."""

from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.controller import config, controller, unique
from support.health import metric
from support.otlp import Collector, Received, collector

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb

pytestmark = pytest.mark.integration

SERVICES = ("api-gateway-0", "stream-workflows-0", "cluster-manager-0", "txn-manager-0")
TRACED = ("api-gateway-0", "stream-workflows-0")
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
DEADLINE_S = 60.0
RPCS = set(pb.DESCRIPTOR.services_by_name["ControllerService"].methods_by_name)

CREATE_STREAM = [
    ("createStream", "api-gateway", "caller"),
    ("send CreateStream", "api-gateway", "createStream"),
    ("await reply", "api-gateway", "createStream"),
    ("handle CreateStream", "stream-workflows", "send CreateStream"),
    ("decide together", "stream-workflows", "handle CreateStream"),
    ("append StreamCreationStarted", "stream-workflows", "decide together"),
    ("workflow create-stream", "stream-workflows", "handle CreateStream"),
    ("step create-segments", "stream-workflows", "workflow create-stream"),
    ("decide together", "stream-workflows", "workflow create-stream"),
    ("append StreamCreated", "stream-workflows", "decide together"),
]
"""Each span with its service and its parent."""


@pytest.fixture
def traces(system: System) -> Iterator[Collector]:
    """The gateway and stream-workflows send their spans here, soon after they ended."""
    with collector() as found:
        settings = {"SLUICE_OTLP_ENDPOINT": found.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        restart(system, settings)
        yield found
        restart(system, {})


def restart(system: System, settings: dict[str, str]) -> None:
    for name in TRACED:
        system.stop(name)
        system.start(name, wait=False, environment=settings)
    for name in TRACED:
        system.wait_ready(name)


def shape(spans: list[Received]) -> list[tuple[str, str, str]]:
    names = {span.span: span.name for span in spans} | {CALLER: "caller"}
    return sorted((span.name, span.service, names.get(span.parent, "?")) for span in spans)


def test_a_stream_s_creation_is_one_trace_over_the_gateway_and_stream_workflows(
    system: System, traces: Collector
) -> None:
    scope, stream = unique("traced"), unique("stream")
    with controller(system.grpc_address) as gateway:
        assert gateway.create_scope(scope) == "SUCCESS"
        caller = (("traceparent", f"00-{TRACE}-{CALLER}-01"),)
        answer = gateway.stub.createStream(config(scope, stream), timeout=DEADLINE_S, metadata=caller)
        assert answer.status == 0
    eventually(lambda: len(traces.of(TRACE)) >= len(CREATE_STREAM), DEADLINE_S, "all spans are there")
    spans = traces.of(TRACE)
    assert shape(spans) == sorted(CREATE_STREAM)
    call, *inner = spans
    assert call.name == "createStream"
    known = {span.name: span for span in inner}
    assert known["await reply"].end_ns >= known["append StreamCreated"].begin_ns
    assert all(span.begin_ns <= span.end_ns for span in spans)
    others = {span.trace for span in traces.spans} - {TRACE}
    names = {span.name for trace in others for span in traces.of(trace) if not span.parent}
    assert names <= RPCS, "nothing but calls begins a trace"


def test_every_service_tells_how_it_is(system: System) -> None:
    partitions = system.settings.partitions
    for name in SERVICES:
        text = httpx.get(f"{system.health_url(name)}/metrics", timeout=60).text
        samples = {s.name: s.value for f in text_string_to_metric_families(text) for s in f.samples}
        assert samples["sluice_partitions"] == partitions, name
        assert samples["sluice_journal_records_total"] > 0
        looks = partial(metric, system, name, "sluice_event_loop_lag_seconds_count")
        eventually(looks, DEADLINE_S, f"{name} has looked how late its event loop is")
        settles(system, name, "sluice_ready", 1)
        settles(system, name, "sluice_check_failing", 0)
        info = [
            s.labels for f in text_string_to_metric_families(text) for s in f.samples if s.name == "sluice_process_info"
        ]
        assert [(labels["name"], labels["member"]) for labels in info] == [(name.removesuffix("-0"), name)]
    for name, owned in zip(SERVICES, (0, partitions, 1, 3 * partitions), strict=True):
        settles(system, name, "sluice_partitions_owned", owned)
    settles(system, "cluster-manager-0", "sluice_members", len(SERVICES))
    settles(system, "cluster-manager-0", "sluice_containers_unassigned", 0)


def settles(system: System, name: str, sample: str, value: float) -> None:
    """A metric has this value in the end; a process that stood still, or was started anew, may be on the way there."""

    def has_it() -> bool:
        found = metric(system, name, sample)
        assert found == value
        return True

    eventually(has_it, DEADLINE_S, f"{name}: {sample} is {value}")
