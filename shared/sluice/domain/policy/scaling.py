"""Which segments of a stream are split or merged: a decision on the segment stores' reports of load, and the reason.

A store reports a segment as hot above its target rate and as cold below half of it; it does not report rates between,
so a segment that was split or merged to a rate between the two stays as it is. A report holds for ten minutes. A
silent segment, which nothing is written to, is reported once; that holds until the next report or its replacement.
After each scale the stream is left alone for a while; what is reported meanwhile is done in one scale then. A report
of a silent segment counts however late it is received (users-ask 2.8), because no store repeats it.

Reports may come twice, late and in any order, so the state holds for each segment the latest report on its load and,
apart from that, on its position in the stream. For a given `now` the state depends on the set of valid reports, not on
their order. Of expired reports the last one received wins. A scale touches only segments known to be active: a report
on them or on a neighbour said so, or the last scale decided here left them in place. What a scale decided here seals
counts as sealed, until a report shows that the scale was refused or cancelled.
Reports on an earlier stream of that name change nothing.
Rules: stream-and-transaction-semantics 9.2, segment-store-cluster A9, B10.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise

import msgspec

from sluice.domain.config import MAX_SEGMENTS, ScaleType
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of, number_of
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport
from sluice.domain.wording import duration, some

VALID_MS = 10 * 60 * 1000
"""How long a report holds (9.2)."""

COOLDOWN_MS = 2 * 60 * 1000
"""How long a stream is left alone after a scale: the interval at which stores look at a segment (B10)."""

SILENT_MS = 30 * 24 * 3600 * 1000
"""For how long a silent segment is remembered if no report comes on any segment of its stream.

No report shows whether such a stream is idle or was deleted. What is lost by forgetting too soon is that its silent
segments are not merged before they are reported anew.
"""

MAX_LOADS = MAX_SEGMENTS
MERGED_AT_ONCE = 3
"""A segment with its two neighbours (9.2)."""

Range = tuple[float, float]


class ScaleCode(Enum):
    """What a decision comes to; the last three scale."""

    FIXED = "fixed"
    STEADY = "steady"
    COOLING_DOWN = "cooling-down"
    AT_MAXIMUM = "at-maximum"
    AT_MINIMUM = "at-minimum"
    NO_COLD_NEIGHBOUR = "no-cold-neighbour"
    SPLIT = "split"
    MERGE = "merge"
    SPLIT_AND_MERGE = "split-and-merge"


class ScaleDecision(msgspec.Struct, frozen=True):
    """Replace `seals` of `epoch` by segments over `ranges`; nothing if there are none. `segments` are there then."""

    code: ScaleCode
    reason: str
    seals: tuple[int, ...] = ()
    ranges: tuple[Range, ...] = ()
    epoch: int = 0
    segments: int = 0


class Load(msgspec.Struct, frozen=True):
    """The latest report on a segment's load, at `at` (epoch ms at the store), and the latest on its position.

    In `epoch` it was `active`, or not any more, beside `neighbours`.
    """

    segment: Segment
    direction: Direction
    at: int
    splits: int
    silent: bool
    epoch: int
    active: bool
    neighbours: tuple[Segment, ...]

    def holds(self, now: int) -> bool:
        return (self.silent and self.active) or now < self.at + VALID_MS


class Scaled(msgspec.Struct, frozen=True):
    """A scale that was decided at `at`, epoch ms; `sealed` are its segments and those of others in the same epoch."""

    decision: ScaleDecision
    at: int
    sealed: tuple[int, ...]


class ScalingState(msgspec.Struct, frozen=True):
    """What is known of a stream's load; `last_report` is (epoch, at, id) of the newest one on the stream.

    The active epoch is number `epoch`, since `epoch_since` (epoch ms), with `epoch_segments` segments.
    """

    scope: str
    stream: str
    creation_id: str
    last_report: tuple[int, int, str]
    policy: PolicyInForce
    epoch: int
    epoch_since: int
    epoch_segments: int
    loads: dict[int, Load] = {}
    scaled: Scaled | None = None

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)


def observe(state: ScalingState | None, report: ScaleReport, now: int) -> ScalingState | None:
    """What is known after the report; `now` in epoch ms. None while no report has counted.

    One that does not hold any more counts only if it takes back that the segment is silent.
    """
    load = _load(report)
    if not load.holds(now) and not _takes_back(state, load, report):
        return state
    if state is None or (report.creation_id != state.creation_id and _is_later(report, state, now)):
        state = _begun(report)
    elif report.creation_id != state.creation_id:
        return state
    newest = _begun(report) if _report_order(report) > state.last_report else state
    newest = msgspec.structs.replace(newest, scaled=state.scaled)
    gone = _gone(newest)
    loads = {id: held for id, held in state.loads.items() if held.holds(now) and id not in gone}
    known = loads.get(report.segment)
    if report.segment not in gone:
        loads[report.segment] = _joined(known, load) if known is not None else load
    if len(loads) > MAX_LOADS:
        oldest = min(loads.values(), key=lambda held: (held.epoch, held.at, held.segment.id))
        del loads[oldest.segment.id]
    return msgspec.structs.replace(newest, loads=loads)


def _is_later(report: ScaleReport, state: ScalingState, now: int) -> bool:
    """Whether the report is of a later creation: every epoch of one began before all those of the next.

    The client sets the time of an epoch, so a time that is yet to come proves nothing.
    """
    return report.epoch_since > state.epoch_since or state.epoch_since > now


def _sealed(state: ScalingState, now: int) -> tuple[int, ...]:
    """Those of the epoch's segments that count as sealed, because of what was decided here in that epoch.

    No report need show it, as stores report a silent segment once. A report that was made in the epoch, and long after
    the scale was decided, shows that it was refused or cancelled.
    """
    scaled = state.scaled
    if scaled is None or scaled.decision.epoch != state.epoch or scaled.at > now:
        return ()
    return scaled.sealed if min(now, state.last_report[1]) < scaled.at + VALID_MS else ()


def _gone(state: ScalingState) -> frozenset[int]:
    """The segments that the last scale decided here sealed, if the active epoch came of it; else none."""
    if state.scaled is None:
        return frozenset()
    last, at = state.scaled.decision, state.scaled.at
    is_done = (last.epoch + 1, last.segments, at) == (state.epoch, state.epoch_segments, state.epoch_since)
    return frozenset(last.seals) if is_done else frozenset()


def _load(report: ScaleReport) -> Load:
    return Load(
        segment=Segment(report.segment, *report.range),
        direction=report.direction,
        at=report.at,
        splits=report.splits,
        silent=report.silent,
        epoch=report.epoch,
        active=report.active,
        neighbours=report.neighbours,
    )


def _takes_back(state: ScalingState | None, load: Load, report: ScaleReport) -> bool:
    """Whether the report shows that a segment known to be silent was written to since, or is gone."""
    if state is None or state.creation_id != report.creation_id:
        return False
    known = state.loads.get(load.segment.id)
    return known is not None and known.silent and (known.at < load.at or (known.active and known.epoch < load.epoch))


def recorded(state: ScalingState, decision: ScaleDecision, now: int) -> ScalingState:
    """What is known once the decision is on its way; `now` as in the command, which becomes the time of its epoch."""
    if not decision.seals:
        return state
    # What is known of the epoch by then must not depend on the scale before this one, which is forgotten here.
    loads = dict(state.loads)
    for load in _present(state, now):
        beside = load.neighbours if load.epoch == state.epoch else ()
        loads[load.segment.id] = msgspec.structs.replace(load, epoch=state.epoch, neighbours=beside)
    scaled = Scaled(decision, now, (*_sealed(state, now), *decision.seals))
    return msgspec.structs.replace(state, loads=loads, scaled=scaled)


def muted_until(state: ScalingState, now: int, cooldown_ms: int = COOLDOWN_MS) -> int:
    """Until when, in epoch ms, the stream is left alone: after its last scale, also one that a client requested.

    Clocks may have been wrong: a scale that is yet to come delays no other.
    """
    scales = (state.epoch_since, state.scaled.at if state.scaled is not None else 0)
    return max((at for at in scales if at <= now), default=0) + cooldown_ms


def of_use_until(state: ScalingState, now: int) -> list[int]:
    """When (epoch ms, after `now`) each load that is known stops to matter for decisions; empty if none matters.

    A hot or cold segment matters as long as its report holds. A silent one waits for a neighbour to become cold, so it
    matters for `SILENT_MS` after the last report on the stream; but if it is the only segment, it has no neighbour, and
    no scale will leave it there, so there is nothing to wait for.
    """
    if not state.loads:
        return []
    forgotten = max(load.at for load in state.loads.values()) + SILENT_MS
    waits = state.epoch_segments > 1
    ends = (forgotten if waits and load.silent and load.active else load.at + VALID_MS for load in state.loads.values())
    return [end for end in ends if end > now]


def decide_scaling(state: ScalingState, now: int, cooldown_ms: int = COOLDOWN_MS) -> ScaleDecision:
    """What to split and merge, if anything; `now` in epoch ms."""
    if state.policy.scale_type is ScaleType.FIXED:
        return ScaleDecision(ScaleCode.FIXED, "not scaled: the stream has a fixed number of segments")
    present = sorted((load for load in _present(state, now) if load.holds(now)), key=lambda load: load.segment.low)
    hot = [load for load in present if load.direction is Direction.UP]
    cold = [load.segment for load in present if load.direction is Direction.DOWN]
    if not present:
        return ScaleDecision(ScaleCode.STEADY, "not scaled: no segment is above its target or below half of it")
    muted = muted_until(state, now, cooldown_ms)
    if now < muted:
        left = duration(muted - now)
        return ScaleDecision(ScaleCode.COOLING_DOWN, f"not scaled: the last scale was a moment ago, again in {left}")
    count = _count(state, now)
    splits = list(_splits(state, hot, count))
    merges = list(_merges(cold, count - state.policy.min_segments))
    if splits or merges:
        return _scale(state, splits, merges, count)
    if hot:
        why = f"segments {_names(load.segment for load in hot)} are hot and cannot be split any further"
        return ScaleDecision(ScaleCode.AT_MAXIMUM, f"not scaled: {why}")
    if count <= state.policy.min_segments:
        why = f"segments {_names(cold)} are cold, but the policy's minimum is {state.policy.min_segments} segments"
        return ScaleDecision(ScaleCode.AT_MINIMUM, f"not scaled: {why}")
    why = f"segments {_names(cold)} are cold, but none beside them is"
    return ScaleDecision(ScaleCode.NO_COLD_NEIGHBOUR, f"not scaled: {why}")


def numbers(state: ScalingState, decision: ScaleDecision, now: int) -> dict[str, int]:
    """What the decision rests on, for operators: segments before and after it, those that are hot and cold, the policy.

    `target` is in events/s or KB/s, as the policy has it.
    """
    count, policy = _count(state, now), state.policy
    after = decision.segments if decision.seals else count
    if policy.scale_type is ScaleType.FIXED:
        return {"segments": count, "segmentsAfter": after}
    present = [load.direction for load in _present(state, now) if load.holds(now)]
    unit = "targetKBytes" if policy.scale_type is ScaleType.KBYTES else "targetEvents"
    return {
        "segments": count,
        "segmentsAfter": after,
        "hot": present.count(Direction.UP),
        "cold": present.count(Direction.DOWN),
        unit: policy.target_rate,
        "minSegments": policy.min_segments,
    }


def split_range(low: float, high: float, count: int) -> tuple[Range, ...]:
    """`count` ranges of equal width, the last one to `high` exactly (9.2)."""
    width = (high - low) / count
    bounds = [low + width * i for i in range(count)] + [high]
    return tuple(pairwise(bounds))


def _scale(
    state: ScalingState, splits: list[tuple[Segment, tuple[Range, ...]]], merges: list[list[Segment]], count: int
) -> ScaleDecision:
    seals = [segment.id for segment, _ in splits] + [segment.id for group in merges for segment in group]
    ranges = [range for _, ranges in splits for range in ranges] + [(g[0].low, g[-1].high) for g in merges]
    unit = "KB/s" if state.policy.scale_type is ScaleType.KBYTES else "events/s"
    target = f"the target of {state.policy.target_rate} {unit}"
    reasons = []
    if splits:
        parts = [f"{_name(segment)} into {len(ranges)}" for segment, ranges in splits]
        reasons.append(f"split {some(parts)}: above {target}")
    if merges:
        parts = ["+".join(_name(segment) for segment in group) for group in merges]
        reasons.append(f"merged {some(parts)}: below half of {target}")
    code = ScaleCode.SPLIT_AND_MERGE if splits and merges else ScaleCode.SPLIT if splits else ScaleCode.MERGE
    segments = count - len(seals) + len(ranges)
    return ScaleDecision(code, "; ".join(reasons), tuple(sorted(seals)), tuple(ranges), state.epoch, segments)


def _splits(state: ScalingState, hot: list[Load], segments: int) -> Iterator[tuple[Segment, tuple[Range, ...]]]:
    """The hot segments with the ranges they are split into, as far as a stream of so many segments may grow."""
    room = MAX_SEGMENTS - segments
    for load in hot:
        count = min(max(2, load.splits), max(2, state.policy.scale_factor), room + 1)
        ranges = split_range(load.segment.low, load.segment.high, count) if count >= 2 else ()
        # A segment can be too narrow for as many ranges as doubles allow.
        if ranges and all(low < high for low, high in ranges):
            room -= count - 1
            yield load.segment, ranges


def _merges(cold: list[Segment], spare: int) -> Iterator[list[Segment]]:
    """Groups of two or three adjacent cold segments; all together take `spare` segments away at most."""
    group: list[Segment] = []
    for segment in cold:
        if group and (group[-1].high != segment.low or len(group) == min(MERGED_AT_ONCE, spare + 1)):
            if len(group) > 1:
                spare -= len(group) - 1
                yield group
            group = []
        if spare < 1:
            return
        group.append(segment)
    if len(group) > 1:
        yield group


def _count(state: ScalingState, now: int) -> int:
    """How many segments there are, as if the last scale were done: its epoch may never be reported on."""
    return state.scaled.decision.segments if state.scaled is not None and _sealed(state, now) else state.epoch_segments


def _present(state: ScalingState, now: int) -> list[Load]:
    """The loads of segments that are known to be in the active epoch, and not sealed."""
    loads = state.loads.values()
    seen = [load for load in loads if load.epoch == state.epoch]
    known = {segment.id for load in seen for segment in (load.segment, *load.neighbours)} | _left_out(state)
    known.difference_update(_sealed(state, now))
    return [load for load in loads if load.active and load.segment.id in known]


def _left_out(state: ScalingState) -> set[int]:
    """If the active epoch came of the last scale decided here: the segments of the one before, which it left."""
    return {id for id, load in state.loads.items() if load.epoch == state.epoch - 1} if _gone(state) else set()


def _joined(known: Load, load: Load) -> Load:
    """The later report on the load with the later report on the position."""
    later = max(known, load, key=lambda o: (o.at, o.direction is Direction.UP, o.splits, not o.silent))
    placed = max(known, load, key=lambda o: (o.epoch, not o.active))
    return msgspec.structs.replace(later, epoch=placed.epoch, active=placed.active, neighbours=placed.neighbours)


def _report_order(report: ScaleReport) -> tuple[int, int, str]:
    return report.epoch, report.at, report.id


def _begun(report: ScaleReport) -> ScalingState:
    """The state that follows from the report alone."""
    return ScalingState(
        scope=report.scope,
        stream=report.stream,
        creation_id=report.creation_id,
        last_report=_report_order(report),
        policy=report.policy,
        epoch=report.epoch,
        epoch_since=report.epoch_since,
        epoch_segments=report.epoch_segments,
    )


def _name(segment: Segment) -> str:
    """The segment as its data are named: number and epoch."""
    return f"{number_of(segment.id)}.#epoch.{epoch_of(segment.id)}"


def _names(segments: Iterator[Segment] | list[Segment]) -> str:
    return some([_name(segment) for segment in segments])
