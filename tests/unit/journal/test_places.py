"""What an aggregate remembers of the requests that changed it: the place of the last one, beyond its own end."""

import pytest

from sluice.domain import events as ev
from sluice.domain.aggregates import evolve
from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.journal.partition_view import GuardedReader, PartitionView
from sluice.journal.record import CLOCKS_MS, Place, Record, decode_record, encode_record

CREATED = ev.ScopeCreated(scope="sc", at=1)
DELETED = ev.ScopeDeleted(scope="sc")
AT = Place(7, 1000)


def fold(view: PartitionView, event: Event | None, place: Place | None = None, version: int | None = None) -> None:
    expect = {"scope:sc": view.version("scope:sc") if version is None else version}
    events = () if event is None else (event,)
    record = Record("i", 1, "t/0", expect, events=events, reply=Reply("X"), place=place)
    view.fold(decode_record(encode_record(record)), view.next_offset, 5)


@pytest.mark.parametrize(
    ("place", "has_come"),
    [
        (AT, True),
        (Place(6, 1000), True),
        (Place(6, 1), True),
        (Place(8, 1000), False),
        (Place(8, 999), False),
        # The clocks of two brokers differ.
        (Place(6, 1000 + CLOCKS_MS), True),
        # The topic begins anew.
        (Place(0, 1001 + CLOCKS_MS), False),
    ],
)
def test_a_request_has_come_if_it_stands_no_later(place: Place, has_come: bool) -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    assert view.has_come("scope:sc", place) is has_come
    assert not view.has_come("scope:other", place)


def test_the_place_outlives_the_aggregate_and_stays_through_records_without() -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    fold(view, DELETED)
    assert view.get("scope:sc") is None and view.has_come("scope:sc", AT)
    fold(view, CREATED, Place(9, 2000))
    assert view.has_come("scope:sc", Place(8, 1500))


def test_what_changes_nothing_is_not_remembered() -> None:
    view = PartitionView(evolve)
    fold(view, None, AT)
    fold(view, CREATED, AT, version=3)
    assert not view.has_come("scope:sc", AT)


def test_a_decision_that_has_asked_is_guarded() -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    reader = GuardedReader(view)
    assert reader.has_come("scope:sc", AT) and reader.seen == {"scope:sc": 1}


def test_a_broker_whose_clock_is_behind_takes_no_protection_away() -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    fold(view, DELETED, Place(8, 900))
    assert view.has_come("scope:sc", AT)


def test_a_request_that_came_again_and_was_refused_does_not_put_the_place_back() -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    fold(view, None, Place(5, 500))
    assert view.has_come("scope:sc", AT)


def test_a_refusal_has_a_place_too() -> None:
    view = PartitionView(evolve)
    fold(view, CREATED, AT)
    fold(view, None, Place(8, 1100))
    assert view.has_come("scope:sc", Place(8, 1100))
