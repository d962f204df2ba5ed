"""A small system, the whole one with Spark, and the small one again, all on the same data: everything is real.

What one has yet to decide the other decides, and nothing is decided a second time. Stores say nothing of load within a
test; that is said for them.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.auto_scale import auto_scale_event, report_load
from support.controller import config, controller, info, unique
from support.decisions import requests_of
from support.effort import by_hand
from support.health import metric, readiness
from support.kafka import events, fold, read
from support.segments import append
from support.spark import SPARK

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import ScaleStream, TruncateStream
from sluice.domain.stream.traffic import ScaleReport
from sluice.kafka.topics import SCALE
from sluice_local.settings import Profile

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    by_hand("two systems and a Spark"),
]

READY_S = 300.0
SOON_S = 180.0
ALL = "api-gateway-0"
"""The process of all services of a small system."""
QUICK = {
    "SLUICE_REPORT_INTERVAL_S": "0.5",
    "SLUICE_SAMPLE_INTERVAL_S": "1",
    "SLUICE_CHANGE_INTERVAL_S": "0.5",
    "SLUICE_RETENTION_TICK_S": "2",
    "SLUICE_RETENTION_PAUSE_S": "0",
    "SLUICE_RETENTION_TRIGGER_S": "1",
    # Since its creation, too: long enough for what is hot within it to be left to the next profile.
    "SLUICE_SCALE_COOLDOWN_S": "20",
}


@pytest.fixture
def small(runs_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    system = System(
        runs_folder / "small-profile",
        profile=Profile.SMALL,
        segment_stores=1,
        retention_sparks=1,
        segment_store_options={"autoScale.cooldown.time.seconds": "3600"},
        start_timeout_s=READY_S,
        partitions=4,
    )
    with system:
        yield system


def create_hot(system: System, scope: str, stream: str) -> None:
    """A stream that is to be split when its cool-down is over; that is published, and may be known to who decides."""
    policy = pb.ScalingPolicy(
        scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC, targetRate=10, scaleFactor=2, minNumSegments=1
    )
    with controller(system.grpc_address) as client:
        wanted = pb.StreamConfig(streamInfo=info(scope, stream), scalingPolicy=policy)
        assert client.status("createStream", wanted) == "SUCCESS"
        report_load(client, auto_scale_event(scope, stream, 0, at=time.time_ns() // 1_000_000))
    eventually(lambda: stream in reported(system), SOON_S, f"a report on {stream} is published")


def reported(system: System) -> set[str]:
    reports = (message.value() or b"" for message in read(system.kafka_bootstrap, SCALE.name))
    return {msgspec.json.decode(report, type=ScaleReport).stream for report in reports}


def await_split(system: System, scope: str, stream: str) -> None:
    with controller(system.grpc_address) as client:
        eventually(lambda: len(client.segments(scope, stream)) == 2, SOON_S, f"{stream} is split")


def trim(system: System, scope: str) -> None:
    """Write until the stream is cut once more."""
    with controller(system.grpc_address) as client:

        def head() -> int:
            request = pb.GetSegmentsRequest(streamInfo=info(scope, "trimmed"), timestamp=0)
            return sum(s.offset for s in client.call("getSegments", request).segments)

        def is_cut() -> bool:
            append(client, (scope, "trimmed"), 0, b"x" * 92)
            return head() > before

        before = head()
        eventually(is_cut, SOON_S, "it is cut")


def events_of(system: System, scope: str, kind: type[ev.StreamEvent]) -> list[Any]:
    return events(fold(system.kafka_bootstrap), lambda event: isinstance(event, kind) and event.scope == scope)


def test_each_profile_goes_on_where_the_other_ended_and_nothing_is_decided_twice(small: System) -> None:
    system, scope = small, unique("sc")
    with controller(system.grpc_address) as client:
        assert client.create_scope(scope) == "SUCCESS"
        least = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=100, retentionMax=2**63 - 1)
        assert client.status("createStream", config(scope, "trimmed", retentionPolicy=least)) == "SUCCESS"
    assert "decided here, without Spark" in readiness(system, ALL)[1]
    create_hot(system, scope, "decided")
    trim(system, scope)
    await_split(system, scope, "decided")
    named = {json.loads(line)["service"] for line in system.log(ALL).read_text().splitlines() if line.startswith("{")}
    assert named == {"api-gateway", "stream-workflows", "cluster-manager", "txn-manager"}
    assert metric(system, ALL, "sluice_partitions_owned") > 0 and metric(system, ALL, "sluice_segment_stores") == 1
    create_hot(system, scope, "left-to-spark")

    system.change(profile=Profile.FULL)
    system.up()
    await_split(system, scope, "left-to-spark")
    trim(system, scope)
    system.stop(SPARK)
    create_hot(system, scope, "left-by-spark")

    system.change(profile=Profile.SMALL)
    system.up()
    await_split(system, scope, "left-by-spark")
    trim(system, scope)

    # What decides on would go on to cut.
    system.stop(ALL)
    scaled = [event.stream for event in events_of(system, scope, ev.StreamScaleStarted)]
    assert sorted(scaled) == ["decided", "left-by-spark", "left-to-spark"]
    scales = {(one.command.stream, one.id) for one in requests_of(system.kafka_bootstrap, ScaleStream)}
    assert len(scales) == 3, "what was requested once more is the same request"
    offsets = [event.cut[0] for event in events_of(system, scope, ev.StreamTruncationStarted)]
    assert offsets == sorted(set(offsets)) and len(offsets) >= 3
    cuts = {(one.command.cut[0], one.id) for one in requests_of(system.kafka_bootstrap, TruncateStream, ["trimmed"])}
    requested = [offset for offset, _ in cuts]
    assert len(requested) == len(set(requested)) and set(offsets) <= set(requested), "each is requested under one id"
