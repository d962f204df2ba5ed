"""A partition's state as bytes: what is restored goes on exactly as what it was captured of, warm or at rest."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.counters import (
    Added,
    AnyEvent,
    CounterModel,
    CounterRecord,
    Dropped,
    WorkEnded,
    WorkRetried,
    WorkStarted,
    entry,
    record,
)

from sluice.engine.capture import CaptureInvalidError, Part, PartKind
from sluice.engine.fold import FORGET_EVERY_MS, Outcome, PartitionView
from sluice.engine.record import RequestPosition, Source


class Model(CounterModel):
    """Each counter has a projection of its own, so that what is forgotten first depends on their order."""

    def projection_of(self, aggregate: str) -> str:
        return f"dropped-{aggregate}"


MODEL = Model()
TOPICS = ("one@1", "two@2")
KINDS = (Added, Added, Dropped, WorkStarted, WorkRetried, WorkEnded)

EVENTS = st.builds(lambda kind, name: kind(name), st.sampled_from(KINDS), st.sampled_from("abcd"))
SOURCES = st.none() | st.builds(Source, st.sampled_from(TOPICS), st.integers(0, 1), st.integers(0, 9))
ENTRIES = st.tuples(st.lists(EVENTS, max_size=2), st.integers(0, 9), SOURCES)
FLOORS = st.dictionaries(st.sampled_from(TOPICS), st.tuples(st.integers(0, 1), st.integers(0, 4)), max_size=1)
RECORDS = st.tuples(st.lists(ENTRIES, max_size=3), FLOORS, st.sampled_from((1, FORGET_EVERY_MS)))

Script = list[tuple[list[tuple[list[AnyEvent], int, Source | None]], dict[str, RequestPosition], int]]


def records_of(script: Script) -> list[tuple[CounterRecord, int]]:
    """Records with the log's time. Most entries expect the versions there are; those with a low number do not."""
    view, now_ms, made = PartitionView(MODEL), 0, []
    for entries, floors, later_ms in script:
        now_ms += later_ms
        expected = {name: view.version(name) for name in "abcd"}
        folded = [
            entry(
                *events,
                expect={event.aggregate: expected[event.aggregate] + (wrong == 0) for event in events},
                source=source,
            )
            for events, wrong, source in entries
        ]
        made.append((record(*folded, floors=floors), now_ms))
        view.fold(made[-1][0], len(made) - 1, now_ms)
    return made


def settled(view: PartitionView) -> None:
    while view.settle(4):
        pass


@given(st.lists(RECORDS, max_size=25), st.integers(0, 25))
def test_a_restored_view_goes_on_as_the_one_it_was_captured_of(script: Script, point: int) -> None:
    warm, resting, restored = PartitionView(MODEL), PartitionView(MODEL, warm=0), PartitionView(MODEL, warm=0)
    for offset, (folded, now_ms) in enumerate(records_of(script)):
        if offset == point:
            restored.restore(warm.capture())
        outcomes = warm.fold(folded, offset, now_ms)
        assert resting.fold(folded, offset, now_ms) == outcomes
        settled(resting)
        captured = list(warm.capture())
        assert list(resting.capture()) == captured
        if offset >= point:
            assert restored.fold(folded, offset, now_ms) == outcomes
            settled(restored)
            assert list(restored.capture()) == captured
            assert restored.under_way() == warm.under_way() and restored.outcome_hash == warm.outcome_hash


def counted(*names: str) -> PartitionView:
    view = PartitionView(MODEL)
    for offset, name in enumerate(names):
        view.fold(record(entry(Added(name), expect={name: 0})), offset, offset)
    return view


def test_parts_come_in_one_order_whatever_came_first() -> None:
    one, other = counted("a", "b", "c"), counted("a", "c", "b")
    # The head says what came last.
    assert list(one.capture())[1:] == list(other.capture())[1:]
    found = [(part.kind, part.name, part.version) for part in one.capture()]
    assert found == [(PartKind.HEAD, "", 0), *((PartKind.AGGREGATE, name, 1) for name in "abc")]


def test_the_hash_of_outcomes_tells_which_entry_was_void() -> None:
    hashes = set()
    for expected in ({"a": 0}, {"a": 1}), ({"a": 1}, {"a": 0}), ({"a": 1}, {"a": 1}):
        view = PartitionView(MODEL)
        view.fold(record(*(entry(Added("a"), expect=e) for e in expected)), 0, 0)
        hashes.add(view.outcome_hash)
    source = Source("one@1", 0, 0)
    view = counted("x")
    assert view.outcome_hash == PartitionView(MODEL).outcome_hash
    assert view.fold(record(entry(source=source), entry(source=source)), 1, 0)[1] is Outcome.DUPLICATE
    assert len({*hashes, view.outcome_hash}) == 4


def test_what_is_used_or_under_way_stays_decoded() -> None:
    view = PartitionView(MODEL, warm=1, on_excess=lambda: None)
    for offset, name in enumerate("abc"):
        view.fold(record(entry(WorkStarted(name), expect={name: 0})), offset, 0)
    settled(view)
    assert view.resting == 0
    for offset, name in enumerate("abc", start=3):
        view.fold(record(entry(WorkEnded(name), expect={name: 1})), offset, 0)
    assert view.settle(3) and view.resting == 0, "all were used a moment ago"
    view.get("a")
    settled(view)
    assert view.resting == 2 and view.version("b") == 2
    state = view.get("a")
    assert state is view.get("a"), "it is warm"


def test_what_rests_is_decoded_for_a_walk_and_goes_on_resting() -> None:
    view = PartitionView(MODEL, warm=0, on_excess=lambda: None)
    for offset, name in enumerate(("a:x", "a:y", "b")):
        view.fold(record(entry(Added(name), expect={name: 0})), offset, 0)
    settled(view)
    assert [name for name, _ in view.aggregates("a:")] == ["a:x", "a:y"]
    assert view.peek("b") == view.peek("b") != view.peek("none") and view.resting == 3


def test_more_than_may_be_warm_is_reported_once_it_is() -> None:
    reported: list[int] = []
    view = PartitionView(MODEL, warm=2, on_excess=lambda: reported.append(view.next_offset))
    for offset, name in enumerate("abcd"):
        view.fold(record(entry(Added(name), expect={name: 0})), offset, 0)
    assert reported == [3, 4]


def head() -> Part:
    return next(PartitionView(MODEL).capture())


def aggregate(name: str, value: bytes = b"") -> Part:
    return Part(PartKind.AGGREGATE, name, 1, value)


def under_way() -> list[Part]:
    view = PartitionView(MODEL)
    view.fold(record(entry(WorkStarted("a"), expect={"a": 0})), 0, 0)
    return list(view.capture())


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "no parts"),
        ([aggregate("a")], "no head"),
        ([msgspec.structs.replace(head(), value=b"x")], "head '' cannot be decoded"),
        ([head(), head()], "out of order"),
        ([head(), aggregate("b"), aggregate("a")], "'a' is out of order"),
        ([head(), aggregate("a"), aggregate("a")], "'a' is out of order"),
        ([head(), Part(PartKind.PROJECTION, "dropped", 0, b"x")], "'dropped' cannot be decoded"),
        (under_way()[:1], "under way are missing: a"),
        ([under_way()[0], aggregate("a", b"x")], "'a' cannot be decoded"),
    ],
)
def test_parts_that_are_no_state_are_refused_and_leave_the_view_empty(parts: list[Part], why: str) -> None:
    view = PartitionView(MODEL)
    with pytest.raises(CaptureInvalidError, match=why):
        view.restore(parts)
    view.restore(counted("a").capture())
    with pytest.raises(ValueError, match="empty"):
        view.restore(counted("a").capture())


def test_a_restored_view_forgets_in_the_same_order() -> None:
    view, restored = PartitionView(MODEL), PartitionView(MODEL)
    for offset, name in enumerate("bca"):
        view.fold(record(entry(Dropped(name), expect={name: 0})), offset, 0)
    restored.restore(view.capture())
    for offset in range(3, 8):
        for one in (view, restored):
            one.fold(record(), offset, FORGET_EVERY_MS)
        assert list(restored.capture()) == list(view.capture())
    assert all(view.version(name) == 0 for name in "abc"), "all are forgotten"
