"""What a measurement gives: figures of one call, as they travel between processes and into the JSON file. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec


class Span(NamedTuple):
    """When a call began and ended, in epoch ms."""

    began: float
    ended: float


class Figures(msgspec.Struct, omit_defaults=True):
    """One call, measured. Times in ms of calls one after the other, or calls per second of concurrent callers.

    `slow` are the calls of more than five times the median. `not_yet`: the controller answers UNIMPLEMENTED. `failed`:
    why there are no figures. `client_cpu` is how much of a core the load generator itself took meanwhile.
    """

    count: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    per_s: float | None = None
    client_cpu: float | None = None
    slow: list[Span] = []
    not_yet: bool = False
    failed: str = ""


class SlowCalls(msgspec.Struct):
    """Of one kind of lone call: how many of all were slow, the longest in ms, and how many were slow where."""

    call: str
    share: float
    longest_ms: float
    where: dict[str, int]


class Readiness(msgspec.Struct, omit_defaults=True):
    """Seconds until a controller served: from the moment Kafka was ready, and from its own start on a running system.

    `after_kafka_s` only for what needs Kafka.
    """

    from_start_s: float
    after_kafka_s: float | None = None


class CallCpu(msgspec.Struct):
    """What one kind of call took of the processors: microseconds per call, by process, without the idle share."""

    calls: int
    us: dict[str, float]

    def sum_us(self, names: Iterable[str]) -> float:
        """That of these processes together, as far as they ran."""
        return sum(self.us.get(name, 0.0) for name in names)


class CpuTimes(msgspec.Struct):
    """All kinds of calls, and the percentage of one core that each process takes when there are none."""

    calls: dict[str, CallCpu]
    idle_percent: dict[str, float]


class Idle(msgspec.Struct):
    """A system without calls: percent of one core by group of processes, records per minute by topic."""

    seconds: float
    cpu_percent: dict[str, float]
    records_per_min: dict[str, float]
    machine_load: float


class Measured(msgspec.Struct, omit_defaults=True):
    """All figures of one controller, by the name of the call.

    `machine_load` is the machine's load average over the last minute: high on both sides means noise, higher on one
    side that the comparison leans to the other. `parts` is what the parts of calls cost bare (`floors.py`),
    `slow` where slow calls were slow (`slow_calls.py`).
    """

    calls: dict[str, Figures]
    readiness: Readiness | None = None
    machine_load: float | None = None
    parts: dict[str, Figures] = {}
    slow: list[SlowCalls] = []
    cpu: CpuTimes | None = None


class Loaded(msgspec.Struct):
    """One load of the journal: seconds from start until loaded, of the clock and of the processor."""

    records: int
    void: int
    seconds: float
    cpu_seconds: float
    peak_mib: int


class Report(msgspec.Struct, omit_defaults=True):
    """Everything one run measured."""

    sluice: Measured | None = None
    peer: Measured | None = None
    journal: Loaded | None = None
    idle: Idle | None = None


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values lies below, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
