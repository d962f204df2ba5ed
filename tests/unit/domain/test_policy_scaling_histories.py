"""Scaling on real streams: what is decided is accepted, and load that stays where it is comes to rest."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import segments_of
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import MAX_SEGMENTS, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.policy import requests
from sluice.domain.policy.scaling import (
    ScalingState,
    decide_scaling,
    muted_until,
    observe,
    of_use_until,
    recorded,
    split_range,
)
from sluice.domain.segment import Segment
from sluice.domain.stream import traffic
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.traffic import Direction, ScaleReport, Traffic

TARGET = 100
MINUTE = 60_000
FIRST_AGE, COLD_AGE, MUTE = 10 * MINUTE, 20 * MINUTE, 10 * MINUTE


class World(StreamLog):
    """A stream that is scaled by hand and by what is decided."""

    def __init__(self, segments: int, least: int, factor: int = 2) -> None:
        super().__init__(segments)
        self.now = 1_000_000
        self.stream.config = StreamConfig(ScalingPolicy(ScaleType.EVENTS, TARGET, factor, least))

    def report(self, segment: int, direction: Direction, splits: int = 2, silent: bool = False) -> ScaleReport:
        said = Traffic(STREAM, segment, direction, self.now, splits, silent)
        found = traffic.reporter(self.stream, "test")(said, f"{segment}-{self.now}-{direction.value}")
        assert found is not None
        return found

    def carry_out(self, command: ScaleStream) -> str:
        reply = self.ask(command)
        if reply.status == "STARTED":
            self.end_scale(dict.fromkeys(command.seals, 1))
            self.check()
        return reply.status

    def split(self, segment: Segment) -> None:
        """By hand, and in no moment in which something is decided: by that a scale is known for the one decided."""
        ranges = split_range(segment.low, segment.high, 2)
        self.carry_out(ScaleStream(*STREAM, seals=(segment.id,), ranges=ranges, at=self.now - 1))

    def check(self) -> None:
        active = self.stream.active_segments()
        assert active[0].low == 0.0 and active[-1].high == 1.0
        assert all(a.high == b.low for a, b in pairwise(active)), "neither a gap nor an overlap"
        assert self.stream.config.scaling.min_segments <= len(active) <= MAX_SEGMENTS


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_what_is_decided_on_the_present_epoch_is_accepted(data: st.DataObject) -> None:
    least = data.draw(st.integers(1, 4))
    world = World(data.draw(st.integers(least, 8)), least, data.draw(st.integers(0, 4)))
    state: ScalingState | None = None
    waiting: list[ScaleReport] = []
    for _ in range(data.draw(st.integers(1, 25))):
        world.now += data.draw(st.integers(1, 4)) * MINUTE
        known = sorted(segments_of(world.stream))
        direction = data.draw(st.sampled_from([Direction.UP, Direction.DOWN, Direction.DOWN, Direction.DOWN]))
        silent = direction is Direction.DOWN and data.draw(st.booleans())
        segment = data.draw(st.sampled_from(known[-8:]))
        waiting.append(world.report(segment, direction, data.draw(st.integers(0, 6)), silent))
        if data.draw(st.integers(0, 5)) == 0:
            world.split(data.draw(st.sampled_from(world.stream.active_segments())))
        for report in data.draw(st.permutations(waiting)):
            if data.draw(st.booleans()):
                state = observe(state, report, world.now)
        waiting = waiting[-4:]
        if state is None:
            continue
        found = decide_scaling(state, world.now, cooldown_ms=MINUTE)
        assert found.reason and found == decide_scaling(state, world.now, cooldown_ms=MINUTE)
        request = requests.scale(state, found, world.now)
        if request is None:
            continue
        assert len(set(found.seals)) == len(found.seals) and found.epoch == state.epoch
        status = world.carry_out(request[1])
        if state.epoch == found.epoch and found.epoch == world.stream.active - (status == "STARTED"):
            assert status == "STARTED", found
            assert len(world.stream.active_segments()) == found.segments
        else:
            assert status in ("STARTED", "PRECONDITION_FAILED")
        state = recorded(state, found, world.now)
        assert decide_scaling(state, world.now, cooldown_ms=1).seals == ()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_known_does_not_depend_on_the_order_of_reports(data: st.DataObject) -> None:
    world = World(4, 1)
    reports = []
    for _ in range(data.draw(st.integers(1, 8))):
        world.now += 1
        segment = data.draw(st.sampled_from(sorted(segments_of(world.stream))))
        direction = data.draw(st.sampled_from(Direction))
        reports.append(world.report(segment, direction, 3, direction is Direction.DOWN and data.draw(st.booleans())))
        if data.draw(st.integers(0, 2)) == 0:
            world.split(data.draw(st.sampled_from(world.stream.active_segments())))
    mixed = data.draw(st.permutations([*reports, *data.draw(st.lists(st.sampled_from(reports)))]))
    first = second = None
    for report in reports:
        first = observe(first, report, world.now)
    for report in mixed:
        second = observe(second, report, world.now)
    assert first == second and first is not None


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_who_forgets_a_stream_of_which_nothing_matters_any_more_decides_alike(data: st.DataObject) -> None:
    """For silence that lasts longer than `SILENT_MS` this does not hold; hours are not as long."""
    world = World(data.draw(st.integers(1, 2)), 1)
    known: ScalingState | None = None
    partly: ScalingState | None = None
    for _ in range(data.draw(st.integers(1, 20))):
        world.now += data.draw(st.integers(1, 15)) * MINUTE
        if partly is not None and not of_use_until(partly, world.now) and muted_until(partly, world.now) <= world.now:
            partly = None
        if data.draw(st.integers(0, 5)) == 0:
            world.split(data.draw(st.sampled_from(world.stream.active_segments())))
        for segment in data.draw(st.lists(st.sampled_from(world.stream.active_segments()), unique=True, max_size=3)):
            direction = data.draw(st.sampled_from([Direction.UP, Direction.DOWN, Direction.DOWN]))
            silent = direction is Direction.DOWN and data.draw(st.booleans())
            report = world.report(segment.id, direction, 2, silent)
            known, partly = observe(known, report, world.now), observe(partly, report, world.now)
        if known is None:
            continue
        found = decide_scaling(known, world.now)
        if partly is None:
            assert found.seals == ()
        else:
            alike = decide_scaling(partly, world.now)
            assert (found.seals, found.ranges) == (alike.seals, alike.ranges)
            partly = recorded(partly, alike, world.now)
        known = recorded(known, found, world.now)
        request = requests.scale(known, found, world.now)
        if request is not None:
            world.carry_out(request[1])


@given(low=st.floats(0, 1, exclude_max=True), width=st.floats(1e-9, 1), count=st.integers(2, 100))
def test_ranges_have_neither_gaps_nor_overlaps_and_end_exactly(low: float, width: float, count: int) -> None:
    high = min(low + width, 1.0)
    ranges = split_range(low, high, count)
    assert len(ranges) == count and ranges[0][0] == low and ranges[-1][1] == high
    assert all(a[1] == b[0] for a, b in pairwise(ranges))


@settings(max_examples=40, deadline=None)
@given(
    weights=st.lists(st.integers(0, 12), min_size=8, max_size=8),
    total=st.integers(0, 15),
    first=st.integers(1, 9),
    least=st.integers(1, 3),
    factor=st.integers(0, 4),
)
def test_load_that_stays_where_it_is_comes_to_rest(
    weights: list[int], total: int, first: int, least: int, factor: int
) -> None:
    """Twelve simulated hours of a load that is spread over the keys for ever in the same way."""
    world = World(max(first, least), least, factor)
    state: ScalingState | None = None
    spread = [total * TARGET * w / max(sum(weights), 1) for w in weights]
    begun = {s.id: world.now for s in world.stream.active_segments()}
    muted = dict(begun)
    scaled_at = []
    start = world.now
    while world.now < start + 12 * 60 * MINUTE:
        world.now += 2 * MINUTE
        for segment in world.stream.active_segments():
            age, rate = world.now - begun[segment.id], rate_of(segment, spread)
            if age <= FIRST_AGE or world.now - muted[segment.id] <= MUTE or TARGET / 2 <= rate <= TARGET:
                continue
            if rate > TARGET:
                word = world.report(segment.id, Direction.UP, max(2, int(rate / TARGET)))
            elif age > COLD_AGE:
                word = world.report(segment.id, Direction.DOWN, 0, silent=rate == 0)
            else:
                continue
            muted[segment.id] = world.now if rate > 0 else 2**62
            state = observe(state, word, world.now)
        request = None
        if state is not None:
            found = decide_scaling(state, world.now)
            request = requests.scale(state, found, world.now)
            state = recorded(state, found, world.now)
        if request is not None:
            assert world.carry_out(request[1]) == "STARTED"
            scaled_at.append(world.now)
            for s in world.stream.active_segments():
                begun.setdefault(s.id, world.now)
                muted.setdefault(s.id, world.now)
    assert all(at < start + 10 * 60 * MINUTE for at in scaled_at), "no end to it"
    assert all(rate_of(s, spread) <= TARGET * 1.000001 for s in world.stream.active_segments())


def rate_of(segment: Segment, spread: list[float]) -> float:
    """The part of the load that falls on the segment's keys."""
    cells = len(spread)
    return sum(
        rate * max(0.0, min(segment.high, (i + 1) / cells) - max(segment.low, i / cells)) * cells
        for i, rate in enumerate(spread)
    )
