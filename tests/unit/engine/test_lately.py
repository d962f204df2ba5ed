"""What happened lately: counts by minute, and the last changes, of what counted alone."""

from support.counters import Added, CounterModel, WorkStarted, entry, record

from sluice.engine.fold import PartitionView
from sluice.engine.lately import KEPT_CHANGES, KEPT_EVENTS, KEPT_MINUTES, MINUTE_MS, Minute

MODEL = CounterModel()


def added(view: PartitionView, at: int, expected: int, name: str = "a") -> None:
    view.fold(record(entry(Added(name), expect={name: expected})), view.next_offset, at)


def test_what_counts_is_counted_in_its_minute_and_what_is_void_is_not() -> None:
    view = PartitionView(MODEL)
    assert view.lately.first_ms == 0 and not list(view.lately.minutes())
    added(view, 5 * MINUTE_MS + 7, 0)
    added(view, 6 * MINUTE_MS - 1, 0)
    view.fold(record(entry(Added("b"), WorkStarted("b"))), view.next_offset, 8 * MINUTE_MS)
    # The log's clock went back.
    added(view, 7 * MINUTE_MS, 1)
    assert list(view.lately.minutes()) == [
        Minute(5 * MINUTE_MS, {"Added": 1}),
        Minute(8 * MINUTE_MS, {"Added": 2, "WorkStarted": 1}),
    ]
    assert view.lately.first_ms == 5 * MINUTE_MS + 7
    assert [(change.at, change.events) for change in view.lately.changes()] == [
        (5 * MINUTE_MS + 7, [("a", "Added")]),
        (8 * MINUTE_MS, [("b", "Added"), ("b", "WorkStarted")]),
        (7 * MINUTE_MS, [("a", "Added")]),
    ]


def test_minutes_go_on_behind_a_record_of_a_clock_that_was_far_ahead() -> None:
    view = PartitionView(MODEL)
    for number, minute in enumerate((1, 121, 2, 2)):
        added(view, minute * MINUTE_MS, number)
    assert [(minute.begin // MINUTE_MS, minute.counts["Added"]) for minute in view.lately.minutes()] == [
        (1, 1),
        (121, 1),
        (2, 2),
    ]


def test_of_a_change_with_many_events_the_first_are_named_and_all_are_counted() -> None:
    view = PartitionView(MODEL)
    view.fold(record(entry(*(Added(f"a{number}") for number in range(2 * KEPT_EVENTS)))), 0, 1)
    (change,), (minute,) = view.lately.changes(), view.lately.minutes()
    assert change.events == [(f"a{number}", "Added") for number in range(KEPT_EVENTS)]
    assert minute.counts == {"Added": 2 * KEPT_EVENTS}


def test_only_the_last_hour_and_the_last_changes_are_kept_also_behind_a_restore() -> None:
    view, restored = PartitionView(MODEL), PartitionView(MODEL)
    for number in range(2 * KEPT_MINUTES):
        added(view, number * MINUTE_MS, number)
    restored.restore(view.capture())
    for each in (view, restored):
        added(each, 2 * KEPT_MINUTES * MINUTE_MS, 2 * KEPT_MINUTES)
        minutes = [minute.begin // MINUTE_MS for minute in each.lately.minutes()]
        assert minutes == list(range(KEPT_MINUTES, 2 * KEPT_MINUTES + 1))
        changes = [change.at // MINUTE_MS for change in each.lately.changes()]
        assert changes == list(range(2 * KEPT_MINUTES + 1 - KEPT_CHANGES, 2 * KEPT_MINUTES + 1))
