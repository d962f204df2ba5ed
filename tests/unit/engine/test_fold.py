"""The fold rule: what counts, what is void, and that all followers of one log agree.

The property test lets competing proposers act on views of different ages, as frozen or slow processes do.
"""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.counters import (
    Added,
    Counter,
    CounterEntry,
    CounterModel,
    CounterRecord,
    Dropped,
    WorkEnded,
    WorkStarted,
    add,
    entry,
    record,
)

from sluice.engine.decision import Context
from sluice.engine.fold import FORGET_EVERY_MS, GuardedReader, Outcome, PartitionView
from sluice.engine.record import RequestPosition, Source, record_kind

COUNTED, STALE, DUPLICATE = Outcome.COUNTED, Outcome.STALE, Outcome.DUPLICATE
MODEL = CounterModel()
TOPIC = "requests@1"


def view_of(*records: CounterRecord) -> PartitionView:
    view = PartitionView(MODEL)
    for offset, folded in enumerate(records):
        view.fold(folded, offset, 0)
    return view


def total(view: PartitionView, name: str) -> int:
    counter = view.get(name)
    return counter.total if counter is not None else 0


def snapshot(view: PartitionView) -> bytes:
    states = {name: (view.version(name), repr(state)) for name, state in view.aggregates()}
    return msgspec.json.encode(states, order="deterministic")


def test_an_entry_counts_only_on_the_version_it_expects() -> None:
    view = view_of()
    first = record(entry(Added("a"), expect={"a": 0}))
    assert view.fold(first, 0, 7) == [COUNTED]
    before = snapshot(view)
    assert view.fold(first, 1, 9) == [STALE] and snapshot(view) == before
    assert (view.version("a"), view.next_offset, view.last_ms) == (1, 2, 9)


def test_a_version_grows_by_one_however_many_events_an_entry_has() -> None:
    view = view_of(record(entry(Added("a"), Added("a"), Added("b"), expect={"a": 0, "b": 0})))
    assert (view.version("a"), view.version("b"), total(view, "a")) == (1, 1, 2)


def test_a_guard_is_checked_and_not_touched() -> None:
    view = view_of(record(entry(Added("a"), expect={"a": 0})))
    assert view.fold(record(entry(Added("b"), expect={"a": 1, "b": 0})), 1, 0) == [COUNTED]
    assert view.fold(record(entry(Added("c"), expect={"a": 0, "c": 0})), 2, 0) == [STALE]
    assert (view.version("a"), view.version("b"), view.get("c")) == (1, 1, None)


def test_entries_of_one_record_count_or_are_void_by_themselves() -> None:
    view = view_of()
    entries = [entry(Added(name), expect={name: version}) for name, version in (("a", 0), ("b", 5), ("c", 0), ("a", 1))]
    assert view.fold(record(*entries), 0, 0) == [COUNTED, STALE, COUNTED, COUNTED]
    assert (total(view, "a"), total(view, "b"), total(view, "c")) == (2, 0, 1)


def test_a_source_counts_once_and_a_stale_entry_does_not_use_it_up() -> None:
    view, source = view_of(), Source(TOPIC, 0, 3)
    assert view.fold(record(entry(Added("a"), expect={"a": 9}, source=source)), 0, 0) == [STALE]
    assert not view.is_decided(source)
    assert view.fold(record(entry(Added("a"), expect={"a": 0}, source=source)), 1, 0) == [COUNTED]
    again = record(entry(Added("a"), expect={"a": 1}, source=source), entry(Added("b"), expect={"b": 0}))
    assert view.fold(again, 2, 0) == [DUPLICATE, COUNTED]
    assert view.is_decided(source) and total(view, "a") == 1


def test_a_refusal_leaves_no_more_than_its_source() -> None:
    view, source = view_of(record(entry(Added("a"), expect={"a": 0}))), Source(TOPIC, 0, 3)
    before = snapshot(view)
    assert view.fold(record(entry(expect={"a": 1}, request="r", reply="no", source=source)), 1, 0) == [COUNTED]
    assert view.is_decided(source) and snapshot(view) == before


def test_the_floors_of_a_record_hold_before_its_entries_are_judged() -> None:
    view = view_of()
    floors: dict[str, RequestPosition] = {TOPIC: (0, 4)}
    entries = [entry(Added("a"), expect={"a": n}, source=Source(TOPIC, 0, 3 + n)) for n in range(2)]
    assert view.fold(record(*entries, floors=floors), 0, 0) == [DUPLICATE, STALE]
    assert view.fold(record(floors={TOPIC: (0, 2)}), 1, 0) == []
    assert view.is_decided(Source(TOPIC, 0, 3)) and not view.is_decided(Source(TOPIC, 0, 4))


def test_what_a_workflow_changes_is_under_way_from_begin_to_end() -> None:
    view = view_of()
    view.fold(record(entry(WorkStarted("a"), expect={"a": 0})), 0, 500)
    view.fold(record(entry(Added("a"), expect={"a": 1})), 1, 600)
    assert dict(view.under_way()) == {"a": 500}
    view.fold(record(entry(WorkEnded("a"), expect={"a": 2})), 2, 700)
    assert dict(view.under_way()) == {}


def test_a_projection_forgets_by_the_time_of_the_log_alone() -> None:
    view = view_of(record(entry(Added("a"), expect={"a": 0})), record(entry(Dropped("a"), expect={"a": 1})))
    assert view.projection("dropped") == {"a": (2, 1)} and [name for name, _ in view.projections()] == ["dropped"]
    view.fold(record(), 2, FORGET_EVERY_MS - 1)
    assert total(view, "a") == 1
    view.fold(record(), 3, FORGET_EVERY_MS)
    view.fold(record(), 4, FORGET_EVERY_MS)
    assert view.get("a") is None and view.version("a") == 0 and view.projection("dropped") == {}


def test_a_retired_aggregate_reads_and_is_judged_as_it_was() -> None:
    view = view_of(record(entry(Added("a", 5), expect={"a": 0})), record(entry(Dropped("a"), expect={"a": 1})))
    late = record(*(entry(expect={"a": version}) for version in range(4)))
    assert not dict(view.aggregates()) and view.version("a") == 2
    assert view.get("a") == view.peek("a") == Counter("a", 5, dropped=True)
    assert view.fold(late, 2, 0) == [Outcome.STALE, Outcome.STALE, Outcome.COUNTED, Outcome.STALE]


def test_aggregates_of_one_entry_retire_in_the_order_of_its_events() -> None:
    names = [f"counter-{number}" for number in range(50)]
    view = view_of(record(entry(*map(Dropped, names), expect=dict.fromkeys(names, 0))))
    dropped = view.projection("dropped")
    assert dropped is not None and list(dropped) == names


def test_a_reader_guards_what_it_got_and_nothing_else() -> None:
    view = view_of(record(entry(Added("a"), expect={"a": 0})), record(entry(Dropped("b"), expect={"b": 0})))
    reader = GuardedReader(view)
    assert reader.get("a") is view.get("a") and reader.get("none") is None
    assert reader.version("b") == 1 and reader.projection("dropped") == {"b": (1, 0)}
    assert reader.elsewhere("b") is view and list(reader.everywhere()) == [view]
    assert reader.seen == {"a": 1, "none": 0}


def test_a_record_reads_back_as_written_and_names_its_first_event() -> None:
    refusal = entry(expect={"a": 3}, request="r", reply="no", source=Source(TOPIC, 1, 9))
    written = record(refusal, entry(Added("a", 2), expect={"a": 3}), floors={TOPIC: (1, 4)})
    assert MODEL.decode(MODEL.encode(written)) == written
    assert record_kind(written) == "Added" and record_kind(record(refusal)) == "Refusal"


class Proposer:
    """Decides on a view that is as old as it likes."""

    def __init__(self) -> None:
        self.view = PartitionView(MODEL)

    def catch_up(self, log: list[CounterRecord], upto: int) -> None:
        for offset in range(self.view.next_offset, upto):
            self.view.fold(log[offset], offset, offset)

    def propose(self, name: str, request: int) -> CounterEntry | None:
        source = Source(TOPIC, 0, request)
        if self.view.is_decided(source):
            return None
        reader = GuardedReader(self.view)
        decision = add(name)(reader, Context(1))
        return entry(*decision.events, expect=reader.seen, request=str(request), reply=decision.reply, source=source)


ACTS = st.tuples(
    st.integers(0, 2), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=3), st.integers(0, 6)
)


@given(st.lists(ACTS, max_size=40))
def test_all_followers_agree_whatever_stale_proposers_append(
    script: list[tuple[int, list[tuple[str, int]], int]],
) -> None:
    log: list[CounterRecord] = []
    proposers = [Proposer() for _ in range(3)]
    first, replies = PartitionView(MODEL), dict[str, list[str | None]]()
    for who, requests, lag in script:
        proposer = proposers[who]
        proposer.catch_up(log, max(proposer.view.next_offset, len(log) - lag))
        entries = [e for name, request in requests if (e := proposer.propose(name, request)) is not None]
        log.append(MODEL.decode(MODEL.encode(record(*entries))))
        before = snapshot(first)
        outcomes = first.fold(log[-1], len(log) - 1, len(log))
        if COUNTED not in outcomes:
            assert snapshot(first) == before
        for judged, outcome in zip(log[-1].entries, outcomes, strict=True):
            if outcome is COUNTED:
                replies.setdefault(judged.request or "", []).append(judged.reply)
    assert all(len(given_) == 1 for given_ in replies.values()), "each request is decided once"
    assert sum(state.total for _, state in first.aggregates()) == len(replies)
    for proposer in proposers:
        proposer.catch_up(log, len(log))
        assert snapshot(proposer.view) == snapshot(first)
