"""Whether a stream stays as it is under a load that stays as it is, between half of its target and its target.

A private system is started for it, everything real, with segment stores that say what they see as soon as they know.
Exit code 1 if the stream scaled, or anybody asked for it to scale.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import msgspec
from support.controller import controller, info
from support.decisions import asked
from support.kafka import read

from harness import System
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.commands import ScaleStream
from sluice.domain.segment_id import segment_name
from sluice.domain.stream.traffic import ScaleReport
from sluice.messaging.topics import SCALE
from sluice.segmentstore import Host, SegmentStoreClient

_SCOPE, _STREAM, _CONTAINERS = "steady", "st", 4
_READY_S = 600.0
_IMPATIENT = {"autoScale.cooldown.time.seconds": "0", "autoScale.mute.time.seconds": "0"}


class Seen(msgspec.Struct):
    """`per_s`: events a second that each segment took, least and most. `reports`: what stores said of the stream."""

    seconds: float
    target: int
    per_s: tuple[float, float]
    reports: int
    requests: int
    segments: list[int]


async def _write(store: SegmentStoreClient, segment: int, rate: float, until: float) -> float:
    """Append events at the rate; return how many there were a second."""
    name, began, count = segment_name(_SCOPE, _STREAM, segment), time.monotonic(), 0
    while time.monotonic() < until:
        await store.append(name, uuid4(), b"x" * 100)
        count += 1
        await asyncio.sleep(max(began + count / rate - time.monotonic(), 0))
    return count / (time.monotonic() - began)


def observe(minutes: float, target: int, share: float, segments: int) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        system = System(
            Path(folder) / "system",
            segment_stores=1,
            retention_sparks=1,
            segment_store_options=_IMPATIENT,
            start_timeout_s=_READY_S,
            partitions=4,
            container_count=_CONTAINERS,
            keep_logs=False,
        )
        with system, controller(system.grpc_address) as client:
            client.create_scope(_SCOPE)
            policy = pb.ScalingPolicy(
                scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
                targetRate=target,
                scaleFactor=2,
                minNumSegments=segments,
            )
            stream = pb.StreamConfig(streamInfo=info(_SCOPE, _STREAM), scalingPolicy=policy)
            assert client.status("createStream", stream) == "SUCCESS"
            # There must be something that could be merged.
            policy.minNumSegments = 1
            assert client.status("updateStream", stream) == "SUCCESS"
            address, _, port = client.store_of(_SCOPE, _STREAM).rpartition(":")
            began = time.monotonic()
            rates = asyncio.run(_load(Host(address, int(port)), segments, share * target, began + 60 * minutes))
            took = time.monotonic() - began
            reports = [
                msgspec.json.decode(m.value() or b"", type=ScaleReport)
                for m in read(system.kafka_bootstrap, SCALE.name)
            ]
            return Seen(
                seconds=round(took, 1),
                target=target,
                per_s=(round(min(rates), 2), round(max(rates), 2)),
                reports=sum(report.scope == _SCOPE for report in reports),
                requests=len(asked(system.kafka_bootstrap, ScaleStream, [_STREAM])),
                segments=[segment for segment, _, _ in client.segments(_SCOPE, _STREAM)],
            )


async def _load(host: Host, segments: int, rate: float, until: float) -> list[float]:
    store = SegmentStoreClient(lambda _container: host, _CONTAINERS)
    try:
        return await asyncio.gather(*(_write(store, segment, rate, until) for segment in range(segments)))
    finally:
        await store.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--target", type=int, default=10, help="events per second")
    parser.add_argument("--share", type=float, default=0.75, help="of the target, for each segment")
    parser.add_argument("--segments", type=int, default=2)
    options = parser.parse_args()
    seen = observe(options.minutes, options.target, options.share, options.segments)
    print(msgspec.json.format(msgspec.json.encode(seen)).decode())
    steady = seen.requests == 0 and seen.segments == list(range(options.segments))
    return 0 if steady else 1


if __name__ == "__main__":
    sys.exit(main())
