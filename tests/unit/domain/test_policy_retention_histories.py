"""Retention over random histories of real streams: what it never does, whatever is reported and in whatever order."""

from collections.abc import Callable
from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import segments_of
from support.stream_log import STREAM, StreamLog
from support.subscribing import subscribing

from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.cut_order import Order, compare, is_at_or_before, lower_bound
from sluice.domain.policy.retention import RetentionCode, RetentionState, decide_retention, observe, recorded
from sluice.domain.policy.retention_set import Sample
from sluice.domain.segment import epoch_of
from sluice.domain.stream import cuts, retention, scale
from sluice.domain.stream.commands import UpdateSubscriberCut
from sluice.domain.stream.queries import head
from sluice.domain.stream.retention import RetentionReport

READERS = ("sc/a", "sc/b")
Draw = Callable[[st.SearchStrategy[int]], int]


class World(StreamLog):
    """A stream that is written to, scaled, read by groups and truncated; a time unit passes with every step."""

    def __init__(self, policy: RetentionPolicy) -> None:
        super().__init__(retention=policy)
        self.now = 10_000
        self.lengths = dict.fromkeys(segments_of(self.stream), 0)
        self.readers = {name: head(self.stream) for name in READERS}
        for name in READERS:
            for command in subscribing(name, STREAM):
                self.decide(command)

    @property
    def ranges(self) -> dict[int, tuple[float, float]]:
        return {s.id: (s.low, s.high) for s in segments_of(self.stream).values()}

    def write(self, draw: Draw) -> None:
        for segment in self.stream.active_epoch.segments:
            self.lengths[segment] += draw(st.integers(0, 60))

    def scale_some(self, draw: Draw) -> None:
        active = self.stream.active_segments()
        first = draw(st.integers(0, len(active) - 1))
        sealed = active[first : first + draw(st.integers(1, 3))]
        low, high = sealed[0].low, sealed[-1].high
        ways = draw(st.integers(1, 3))
        bounds = [low, *(low + (high - low) * i / ways for i in range(1, ways)), high]
        seals, ranges = tuple(s.id for s in sealed), tuple(pairwise(bounds))
        reply = self.start_scale(seals, ranges, self.now)
        assert reply.status == "STARTED"
        self.end_scale({s: self.lengths[s] for s in seals})
        self.lengths.update({s.id: 0 for s in reply.segments})

    def read(self, draw: Draw, name: str) -> None:
        """Read on in some of the segments the reader has begun; those read to the end give way to their successors."""
        cut = self.readers[name]
        for segment in [s for s, at in cut.items() if at >= 0]:
            at = cut[segment] + draw(st.integers(0, 80))
            cut[segment] = min(at, self.lengths[segment])
            if self.stream.history.replaced_in(segment) and cut[segment] == self.lengths[segment]:
                self._pass(cut, segment)

    def _pass(self, cut: dict[int, int], segment: int) -> None:
        del cut[segment]
        for successor in cuts.successors(self.stream, segment):
            before = self.stream.history.epoch(self.stream.history.last_epoch(segment)).segments
            waits = any(s in cut and cut[s] >= 0 and self._overlap(s, successor.id) for s in before)
            cut[successor.id] = -1 if waits else 0

    def _overlap(self, one: int, other: int) -> bool:
        (low, high), (other_low, other_high) = self.ranges[one], self.ranges[other]
        return low < other_high and other_low < high

    def publish(self, name: str) -> None:
        self.decide(UpdateSubscriberCut(*STREAM, name, "id", 0, dict(self.readers[name])))

    def report(self) -> RetentionReport:
        tail = {s: self.lengths[s] for s in self.stream.active_epoch.segments}
        found = retention.report(self.stream, tail, f"r{self.now}", "test", self.now)
        assert found is not None
        return found

    def truncate(self, cut: dict[int, int]) -> None:
        """No cut that was decided on is refused."""
        super().truncate(cut)
        for name, at in self.readers.items():
            if not is_at_or_before(self.stream.cut, at, self.ranges):
                self.readers[name] = dict(self.stream.cut)

    def step(self, draw: Draw) -> None:
        self.now += draw(st.integers(1, 30))
        self.write(draw)
        what = draw(st.integers(0, 5))
        if what == 0:
            self.scale_some(draw)
        if what in (1, 2, 3):
            name = READERS[what % 2]
            self.read(draw, name)
            self.publish(name)


POLICIES = st.builds(
    RetentionPolicy,
    st.sampled_from(RetentionType),
    st.integers(0, 200),
    st.one_of(st.integers(0, 500), st.just(2**63 - 1)),
)


def check_floor(world: World, state: RetentionState, samples: list[Sample], cut: dict[int, int], size: int) -> None:
    assert state.policy is not None
    if state.policy.retention_type is RetentionType.SIZE:
        assert samples[-1].size - size >= state.policy.minimum
    else:
        old = [s for s in samples if world.now - s.at >= state.policy.minimum]
        assert old and is_at_or_before(cut, old[-1].cut, world.ranges), "the minimum is a floor"


@settings(max_examples=200, deadline=None)
@given(policy=POLICIES, data=st.data())
def test_what_is_decided_leaves_the_minimum_and_what_readers_need(policy: RetentionPolicy, data: st.DataObject) -> None:
    draw: Draw = data.draw
    world = World(policy)
    state: RetentionState | None = None
    samples: list[Sample] = []
    for _ in range(draw(st.integers(1, 15))):
        world.step(draw)
        report = world.report()
        assert report.sample is not None
        samples.append(Sample(report.at, report.sample.size, report.sample.cut))
        state = observe(state, report)
        found = decide_retention(state, world.now, pause_ms=0)
        assert found == decide_retention(state, world.now, pause_ms=0) and found.reason
        if found.target is None:
            continue
        cut, ranges = found.target.cut, world.ranges
        assert compare(cut, head(world.stream), ranges) is Order.AFTER, "never backwards"
        assert cuts.is_valid(world.stream, cut)
        check_floor(world, state, samples, cut, found.target.size)
        if found.code is not RetentionCode.BEYOND_MAXIMUM:
            assert all(is_at_or_before(cut, s.cut, ranges) for s in state.subscribers.values())
        else:
            assert state.subscribers
        before = cuts.segments_between(world.stream, {}, cut)
        assert found.target.size == cuts.size_between(world.stream, {}, cut, before)
        state = recorded(state, found, world.now)
        assert decide_retention(state, world.now, pause_ms=0).target is None, "requested once"
        if draw(st.integers(0, 2)):
            world.truncate(cut)


@settings(max_examples=100, deadline=None)
@given(policy=POLICIES, data=st.data())
def test_what_is_known_does_not_depend_on_the_order_of_reports(policy: RetentionPolicy, data: st.DataObject) -> None:
    draw: Draw = data.draw
    world = World(policy)
    reports = []
    for _ in range(draw(st.integers(1, 8))):
        world.step(draw)
        reports.append(world.report())
        found = decide_retention(observe(None, reports[-1]), world.now, pause_ms=0)
        if found.cut is not None:
            world.truncate(found.cut)
    if draw(st.integers(0, 1)):
        gone = retention.gone(STREAM, "gone", "test", world.now + 1)
        reports.insert(draw(st.integers(0, len(reports))), gone)
    mixed = data.draw(st.permutations([*reports, *data.draw(st.lists(st.sampled_from(reports)))]))
    first = second = None
    for report in sorted(reports, key=lambda r: r.at):
        first = observe(first, report)
    for report in mixed:
        second = observe(second, report)
    assert first == second and first is not None
    kept = {s: world.ranges[s] for s in first.ranges}
    assert first.ranges == kept
    assert msgspec.json.decode(msgspec.json.encode(first), type=RetentionState) == first


def is_equal_or_after_by_epochs(world: World, cut: dict[int, int], other: dict[int, int]) -> bool:
    """The rule of 8.1, on the epochs that the segments of a cut are mapped to (8.2)."""

    def epochs(cut: dict[int, int]) -> dict[int, int]:
        newest = max(map(epoch_of, cut))
        return {s: min(newest, world.stream.history.last_epoch(s)) for s in cut}

    mine, theirs = epochs(cut), epochs(other)
    for s, (low, high) in ((s, world.ranges[s]) for s in cut):
        for o, (other_low, other_high) in ((o, world.ranges[o]) for o in other):
            if low < other_high and other_low < high and mine[s] < theirs[o]:
                return False
            if s == o and cut[s] < other[o]:
                return False
    return True


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_cuts_compare_as_in_the_history_and_their_bound_is_a_valid_cut(data: st.DataObject) -> None:
    draw: Draw = data.draw
    world = World(RetentionPolicy(RetentionType.TIME, 0, 0))
    found = [dict(cut) for cut in world.readers.values()]
    for _ in range(draw(st.integers(1, 12))):
        world.step(draw)
        found += [dict(cut) for cut in world.readers.values()]
    chosen = data.draw(st.lists(st.sampled_from(found), min_size=1, max_size=4))
    for cut in chosen:
        for other in chosen:
            order = compare(cut, other, world.ranges)
            assert (order in (Order.AFTER, Order.SAME)) == cuts.is_equal_or_after(world.stream, cut, other)
            if all(at >= 0 for at in (*cut.values(), *other.values())):
                assert (order in (Order.AFTER, Order.SAME)) == is_equal_or_after_by_epochs(world, cut, other)
    bound = lower_bound(chosen, world.ranges)
    assert cuts.is_valid(world.stream, bound)
    assert all(is_at_or_before(bound, cut, world.ranges) for cut in chosen)
    assert all(any(cut.get(s) == at for cut in chosen) for s, at in bound.items()), "nothing less than needed"
    assert bound == lower_bound(reversed(chosen), world.ranges)
    assert compare(lower_bound([chosen[0]], world.ranges), chosen[0], world.ranges) is Order.SAME


def test_a_report_has_the_bound_of_several_subscribers_with_the_bytes_before_it() -> None:
    """Neither reader's own cut nor size is that of the bound: one is behind on the old segment, one on the new ones."""
    world = World(RetentionPolicy(RetentionType.SIZE, 0, 0))
    world.lengths[0] = 100
    world.scale((0,), ((0.0, 0.5), (0.5, 1.0)))
    low, high = world.stream.active_epoch.segments
    world.lengths.update({low: 50, high: 50})
    assert world.report().bound is None, "no reader group has reported yet"
    world.readers = {"sc/a": {low: 10, high: 40}, "sc/b": {low: 30, high: 5}}
    for name in READERS:
        world.publish(name)
    report = world.report()
    assert report.bound is not None and (report.bound.cut, report.bound.size) == ({low: 10, high: 5}, 115)
    assert {name: s.size for name, s in report.subscribers.items()} == {"sc/a": 150, "sc/b": 135}
    world.truncate({low: 20, high: 0})
    moved = world.report()
    assert moved.bound is not None and moved.bound.cut == {low: 20, high: 0}, "who was forced on is at the head"


def test_a_reader_beyond_a_scale_that_goes_on_counts_as_at_the_head() -> None:
    """Else what it has read would seem smaller than it is, and a minimum of bytes further than it reaches."""
    world = World(RetentionPolicy(RetentionType.SIZE, 150, 2**63 - 1))
    world.lengths[0] = 100
    reply = world.start_scale((0,), ((0.0, 0.5), (0.5, 1.0)))
    world.apply(scale.add_epoch(world, STREAM))
    low, high = (s.id for s in reply.segments)
    world.readers[READERS[0]] = {low: 40, high: 40}
    world.publish(READERS[0])
    begun = world.report()
    assert begun.bound is not None and (begun.bound.cut, begun.bound.size) == ({0: 0}, 0)
    assert decide_retention(observe(None, begun), world.now).target is None
    world.apply(scale.finish_scale(world, STREAM, {0: 100}))
    world.lengths.update({low: 100, high: 100})
    ended = world.report()
    assert ended.bound is not None and (ended.bound.cut, ended.bound.size) == ({low: 40, high: 40}, 180)
