"""`python -m bench.auto_scale`: a stream that scales by itself, from its first event to its last.

All reports are the segment store's own: a writer of the PyPI client gives one segment several times its
target, until no segment is above its target any more; then the widest gets a share between half and all of it, for
minutes; then nothing is written, until the stream is back at its minimum. The store says what it sees as soon as its
averages show it, which takes minutes (segment-store-cluster B10). Exit code 1 if the stream did not split, scaled
under the steady load, fell below its minimum or did not come back to it.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from support.controller import Controller, controller, info
from support.kafka import events, fold, read
from support.pravega import manager
from support.wait import NotInTime, eventually

from harness import System
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.stream import events as ev
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.kafka.topics import SCALE

_SCOPE, _STREAM = "by-itself", "st"
_READY_S, _LOOK_S, _BURST_S = 300.0, 2.0, 0.1
_STORE = {
    "autoScale.cooldown.time.seconds": "0",
    "autoScale.mute.time.seconds": "0",
    "autoScale.cache.cleanUp.interval.seconds": "5",
    # A report counts as an access, and there may be one in 2 minutes: what is written to does not expire.
    "autoScale.cache.expiry.seconds": "135",
}
_QUIET_S, _PATIENCE_S, _GIVES_UP_S = 60.0, 60.0, 3600.0


class Phase(msgspec.Struct):
    """`scaled`: seconds since the phase began, and how many segments there were then. `reports`: up and down."""

    name: str
    seconds: float
    events_per_s: float
    scaled: list[tuple[float, int]]
    reports: tuple[int, int] = (0, 0)


class Load:
    """One writer with random routing keys, and how many segments there are meanwhile."""

    def __init__(self, client: Controller, address: str) -> None:
        self._client = client
        # The client's threads end with its manager.
        self._manager = manager(address)
        self._writer: Any = self._manager.create_writer(_SCOPE, _STREAM)

    def segments(self) -> int:
        return len(self._ranges())

    def widest(self) -> float:
        """The largest part of all keys that a segment has."""
        return max(high - low for _, low, high in self._ranges())

    def _ranges(self) -> list[tuple[int, float, float]]:
        return eventually(lambda: self._client.segments(_SCOPE, _STREAM), _PATIENCE_S, "the segments are known")

    def run(self, name: str, rate: float, ends: Callable[[Phase], bool]) -> Phase:
        """Write so many events a second until the phase shall end; it is looked at every two seconds."""
        phase = Phase(name, 0.0, 0.0, [(0.0, self.segments())])
        began, written, looks_at = time.monotonic(), 0, 0.0
        while True:
            due = int(rate * (time.monotonic() - began)) - written
            for _ in range(due):
                self._writer.write_event("x" * 100, uuid4().hex)
            if due:
                self._writer.flush()
            written += due
            time.sleep(_BURST_S)
            phase.seconds = round(time.monotonic() - began, 1)
            if phase.seconds < looks_at:
                continue
            looks_at = phase.seconds + _LOOK_S
            phase.events_per_s = round(written / phase.seconds, 1)
            count = self.segments()
            if count != phase.scaled[-1][1]:
                phase.scaled.append((phase.seconds, count))
                print(f"{name}: {count} segments after {phase.seconds} s", flush=True)
            if ends(phase):
                return phase


def observe(options: argparse.Namespace) -> tuple[list[Phase], list[int]]:
    """The three phases, and the numbers of segments after each scale, by the journal."""
    with tempfile.TemporaryDirectory() as folder:
        system = System(
            Path(folder) / "system",
            segment_stores=1,
            retention_sparks=1,
            segment_store_options=_STORE,
            start_timeout_s=_READY_S,
            partitions=4,
            keep_logs=False,
        )
        with system, controller(system.grpc_address) as client:
            client.create_scope(_SCOPE)
            policy = pb.ScalingPolicy(
                scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
                targetRate=options.target,
                scaleFactor=options.factor,
                minNumSegments=options.minimum,
            )
            stream = pb.StreamConfig(streamInfo=info(_SCOPE, _STREAM), scalingPolicy=policy)
            assert client.status("createStream", stream) == "SUCCESS"
            return _phases(options, system, Load(client, system.grpc_address)), _counts(system, options.minimum)


def _phases(options: argparse.Namespace, system: System, load: Load) -> list[Phase]:
    hot = options.load * options.target * options.minimum

    def settled(phase: Phase) -> bool:
        """No segment is above its target any more."""
        if phase.seconds > _GIVES_UP_S:
            raise NotInTime(f"still splitting: {phase.scaled}")
        return phase.seconds - phase.scaled[-1][0] > _QUIET_S and hot * load.widest() < options.target

    def at_minimum(phase: Phase) -> bool:
        return phase.scaled[-1][1] == options.minimum or phase.seconds > _GIVES_UP_S

    marks, phases = [time.time_ns() // 1_000_000], []
    for name, rate, ends in (
        ("hot", hot, settled),
        ("steady", None, lambda phase: phase.seconds > 60 * options.minutes),
        ("cold", 0.0, at_minimum),
    ):
        rate = options.share * options.target / load.widest() if rate is None else rate
        phases.append(load.run(name, rate, ends))
        marks.append(time.time_ns() // 1_000_000)
    reports = [
        msgspec.json.decode(m.value() or b"", type=ScaleReport) for m in read(system.kafka_bootstrap, SCALE.name)
    ]
    ours = [r for r in reports if r.scope == _SCOPE]
    for phase, began, ended in zip(phases, marks, marks[1:], strict=False):
        seen = [report.direction for report in ours if began <= report.at < ended]
        phase.reports = seen.count(Direction.UP), seen.count(Direction.DOWN)
    return phases


def _counts(system: System, minimum: int) -> list[int]:
    counts = [minimum]
    for event in events(fold(system.kafka_bootstrap), lambda e: isinstance(e, ev.StreamScaleStarted)):
        if (event.scope, event.stream) == (_SCOPE, _STREAM):
            counts.append(counts[-1] + len(event.replacement.creates) - len(event.replacement.seals))
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", type=int, default=10, help="events per second")
    parser.add_argument("--factor", type=int, default=8, help="into how many one segment is split at most")
    parser.add_argument("--minimum", type=int, default=1, help="number of segments")
    parser.add_argument("--load", type=float, default=5.5, help="of the target, for each segment at the beginning")
    parser.add_argument(
        "--share", type=float, default=0.75, help="of the target, for the widest segment under steady load"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of steady load")
    options = parser.parse_args()
    phases, counts = observe(options)
    for phase in phases:
        print(msgspec.json.encode(phase).decode())
    print(f"segments after each scale: {counts}")
    hot, steady, cold = phases
    well = {
        "split": len(hot.scaled) > 1,
        "steady": len(steady.scaled) == 1,
        "never below its minimum": min(counts) == options.minimum,
        "back at its minimum": cold.scaled[-1][1] == options.minimum,
    }
    print(", ".join(f"{what}: {'yes' if held else 'NO'}" for what, held in well.items()))
    return 0 if all(well.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
