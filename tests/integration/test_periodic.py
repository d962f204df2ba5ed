"""The periodic work of stream-workflows on real segment stores: watermarks, reports of load, samples for retention."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from support.auto_scale import REPORTS, auto_scale_event, report_load
from support.controller import Controller, config, controller, cut, info, unique
from support.kafka import header, read
from support.segments import append, on_store

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.stream.upper_bound import Watermark
from sluice.kafka.topics import RETENTION, SCALE
from sluice.pravega import SegmentStoreClient
from sluice.pravega.watermarks import decode_watermark
from stream_workflows.segment_events import read_events

pytestmark = pytest.mark.integration

SERVICE = "stream-workflows-0"
OFTEN = {
    "SLUICE_WATERMARK_INTERVAL_S": "0.2",
    "SLUICE_REPORT_INTERVAL_S": "0.2",
    "SLUICE_SAMPLE_INTERVAL_S": "0.5",
    "SLUICE_CHANGE_INTERVAL_S": "0.2",
    "SLUICE_REPORT_KEEP_BYTES": "1024",
}
SOON_S = 60.0


@pytest.fixture(scope="module")
def often(system: System) -> Iterator[System]:
    """The system, with a stream-workflows whose intervals are short."""
    system.stop(SERVICE)
    system.start(SERVICE, environment=OFTEN)
    yield system
    system.restart(SERVICE)


@pytest.fixture
def client(often: System) -> Iterator[Controller]:
    with controller(often.grpc_address) as client:
        yield client


@pytest.fixture
def scope(client: Controller) -> str:
    name = unique("sc")
    assert client.create_scope(name) == "SUCCESS"
    return name


def note(client: Controller, scope: str, writer: str, timestamp: int, position: dict[int, int]) -> None:
    recorded = pb.TimestampFromWriter(writer=writer, timestamp=timestamp, position=cut(scope, "st", position))
    assert client.call("noteTimestampFromWriter", recorded).result == pb.TimestampResponse.SUCCESS


def watermarks(client: Controller, scope: str) -> list[Watermark]:
    """All that a reader finds in the mark stream."""

    async def read_all(store: SegmentStoreClient, name: str) -> list[Watermark]:
        return [decode_watermark(event.data) async for found in read_events(store, name, 0) for event in found.events]

    return on_store(client, (scope, "_MARKst"), 0, read_all)


def reports_on(system: System, topic: str, scope: str) -> list[dict[str, Any]]:
    """The reports in a topic on streams of a scope, with their headers checked."""
    found = []
    for message in read(system.kafka_bootstrap, topic):
        value = json.loads(message.value() or b"")
        assert header(message, "ce_id") == value["id"] and header(message, "ce_source") == value["by"]
        assert (message.key() or b"").decode() == f"{value['scope']}/{value['stream']}"
        if value["scope"] == scope:
            found.append(value)
    return found


def test_watermarks_follow_the_slowest_writer_and_outlive_kill_9(often: System, client: Controller, scope: str) -> None:
    patient = config(scope, "st", 2, timestampAggregationTimeout=600_000)
    assert client.status("createStream", patient) == "SUCCESS"
    note(client, scope, "a", 1000, {0: 10, 1: 20})
    eventually(lambda: [m.lower for m in watermarks(client, scope)] == [1000], SOON_S, "a first watermark")
    note(client, scope, "b", 1500, {0: 15})
    note(client, scope, "a", 2000, {0: 12, 1: 40})
    eventually(lambda: watermarks(client, scope)[-1].lower == 1500, SOON_S, "a second watermark")

    often.kill(SERVICE)
    often.start(SERVICE, environment=OFTEN)
    note(client, scope, "b", 3000, {0: 30})
    eventually(lambda: watermarks(client, scope)[-1].lower == 2000, SOON_S, "a third watermark")

    found = watermarks(client, scope)
    assert [(m.lower, m.upper) for m in found] == [(1000, 1000), (1500, 2000), (2000, 3000)]
    assert [{s.id: at for s, at in m.cut.items()} for m in found] == [{0: 10, 1: 20}, {0: 15, 1: 40}, {0: 30, 1: 40}]
    assert [(s.low, s.high) for s in found[-1].cut] == [(0.0, 0.5), (0.5, 1.0)]


def test_reports_of_load_come_out_once_each_by_id_and_outlive_kill_9(
    often: System, client: Controller, scope: str
) -> None:
    assert client.create_stream(scope, "st", 3) == "SUCCESS"

    def report(number: int) -> None:
        event = auto_scale_event(scope, "st", number % 3, at=1000 + number, request=number)
        report_load(client, event, number % 2)

    def reported() -> dict[str, list[dict[str, Any]]]:
        by_id = defaultdict(list)
        for value in reports_on(often, SCALE.name, scope):
            by_id[value["id"]].append(value)
        return by_id

    for number in range(10):
        report(number)
    eventually(lambda: len(reported()) >= 3, SOON_S, "some of the reports")
    often.kill(SERVICE)
    for number in range(10, 40):
        report(number)
    often.start(SERVICE, environment=OFTEN)
    eventually(lambda: len(reported()) == 40, SOON_S, "all reports")

    found = {values[0]["at"]: values[0] for values in reported().values()}
    assert sorted(found) == [1000 + number for number in range(40)], "each report under one id"
    one = found[1001]
    assert (one["segment"], one["direction"], one["splits"], one["silent"]) == (1, "UP", 2, False)
    assert (one["active"], one["epoch"], one["epoch_segments"]) == (True, 0, 3)
    assert [neighbour[0] for neighbour in one["neighbours"]] == [0, 2]
    assert one["policy"]["scale_type"] == "FIXED_NUM_SEGMENTS" and one["policy"]["min_segments"] == 3

    def head() -> dict[int, int]:
        request = pb.GetSegmentsRequest(streamInfo=info(*REPORTS), timestamp=0)
        return {s.segmentId.segmentId: s.offset for s in client.call("getSegments", request).segments}

    eventually(lambda: all(at > 0 for at in head().values()), SOON_S, "the reports passed on to be truncated")


def test_samples_and_changes_of_retention_come_out(often: System, client: Controller, scope: str) -> None:
    policy = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=100, retentionMax=1000)
    assert client.status("createStream", config(scope, "st", 2, retentionPolicy=policy)) == "SUCCESS"
    assert append(client, (scope, "st"), 1, b"x" * 92) == 100

    def sample() -> dict[str, Any] | None:
        samples = [value for value in reports_on(often, RETENTION.name, scope) if value["sample"] is not None]
        return next((value for value in samples if value["sample"]["size"] == 100), None)

    value = eventually(sample, SOON_S, "a sample of 100 bytes")
    assert value is not None
    assert value["sample"]["cut"] == {"0": 0, "1": 100} and value["head"] == {"cut": {"0": 0, "1": 0}, "size": 0}
    assert value["policy"] == {"retention_type": "SIZE", "minimum": 100, "maximum": 1000}
    assert value["ranges"] == {"0": [0.0, 0.5], "1": [0.5, 1.0]}

    assert client.status("updateStream", config(scope, "st", 2)) == "SUCCESS"
    eventually(lambda: reports_on(often, RETENTION.name, scope)[-1]["policy"] is None, SOON_S, "the end of the policy")
