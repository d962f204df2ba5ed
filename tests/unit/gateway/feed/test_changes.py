"""What changed lately: how entries are merged, what the ring keeps, from which positions it can go on."""

import pytest

from api_gateway.console.feed.changes import (
    Change,
    MalformedPositionError,
    Recorded,
    Ring,
    joined,
    kind_of,
    merged,
    names_of,
    position_of,
    position_text,
)
from sluice.domain.scope.events import ScopeDeleted
from sluice.domain.stream.events import StreamSealed
from sluice.domain.transaction.events import TransactionAborted, TransactionCommitted

SEALED = StreamSealed("sc", "st")


def change(subject: str, partition: int, offset: int, *types: str) -> Change:
    return Change(subject, partition, offset, offset * 10, dict.fromkeys(types))


def shown(changes: list[Change] | None) -> list[tuple[str, int, list[str]]]:
    return [(c.subject, c.offset, list(c.types)) for c in changes or ()]


def test_many_transactions_of_a_stream_are_one_change() -> None:
    ended = tuple(TransactionCommitted("sc", "st", f"{n}", at=1) for n in range(1000))
    aborted = TransactionAborted("sc", "st", "1000", at=1)
    recorded: list[Recorded] = [(3, 7, 70, ended), (3, 8, 80, (aborted, SEALED)), (1, 2, 90, (ScopeDeleted("sc"),))]
    assert shown(merged(recorded)) == [
        ("txn:sc/st", 8, ["TransactionCommitted", "TransactionAborted"]),
        ("stream:sc/st", 8, ["StreamSealed"]),
        ("scope:sc", 2, ["ScopeDeleted"]),
    ]


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("stream:sc/st", {"stream:sc/st", "scope:sc"}),
        ("txn:sc/st", {"stream:sc/st", "scope:sc"}),
        ("commits:sc/st", {"stream:sc/st", "scope:sc"}),
        ("group:sc/rg", {"group:sc/rg", "scope:sc"}),
        ("scope:sc", {"scope:sc"}),
        ("cluster", {"cluster"}),
    ],
)
def test_a_change_goes_by_the_names_of_what_it_belongs_to(subject: str, names: set[str]) -> None:
    assert set(names_of(subject)) == names


@pytest.mark.parametrize("name", ["stream:sc", "scope:sc/st", "txn:sc/st", "stream:", "st", "stream:a/b/c"])
def test_what_is_no_name_has_no_kind(name: str) -> None:
    assert kind_of(name) is None


def test_a_position_travels_as_text() -> None:
    assert position_of(position_text((5, 0, 123))) == (5, 0, 123)


@pytest.mark.parametrize("text", ["5..0", "5.0.x", "5.0.-1", "5.0.²", f"5.0.{'1' * 20}"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(MalformedPositionError):
        position_of(text)


def test_the_ring_goes_on_from_positions_that_it_still_reaches() -> None:
    ring = Ring((10, 10), most=3)
    ring.add([change("a", 0, 10, "A"), change("b", 1, 12, "B"), change("a", 0, 15, "C")])
    assert shown(ring.since((10, 10), (20, 20))) == [("a", 15, ["A", "C"]), ("b", 12, ["B"])]
    assert shown(ring.since((11, 13), (20, 20))) == [("a", 15, ["C"])]
    assert ring.since((9, 10), (20, 20)) is None, "before the ring began"
    assert ring.since((10, 21), (20, 20)) is None, "of another journal, or this gateway is behind"
    assert ring.since((10, 10, 10), (20, 20)) is None, "of a journal with more partitions"
    ring.add([change("c", 1, 18, "D")])
    assert ring.since((10, 10), (20, 20)) is None, "the oldest change has left"
    assert shown(ring.since((11, 10), (20, 20))) == [("b", 12, ["B"]), ("a", 15, ["C"]), ("c", 18, ["D"])]


def test_a_reader_whom_the_ring_overtook_learns_of_it() -> None:
    ring = Ring((0,), most=2)
    read = ring.end
    ring.add([change("a", 0, 0), change("b", 0, 1)])
    behind = ring.behind(read)
    assert behind is not None and shown(joined(behind)) == [("a", 0, []), ("b", 1, [])]
    ring.add([change("c", 0, 2)])
    assert ring.behind(read) is None
    read = ring.end
    ring.clear((5,))
    assert ring.behind(read) is None, "something was missed"
