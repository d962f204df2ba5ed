"""What updates make of a group's state, and what readers propose on it: reader-groups 3 to 5."""

from collections.abc import Callable

import pytest

from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.reader_group_state import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
)
from sluice_client.groups import decisions
from sluice_client.groups.decisions import ReaderExists, ReaderOffline
from sluice_client.groups.state import RuleBroken, apply, apply_all, at_end_of_data, outstanding, pending

A, B, C, D = (f"s/t/{number}.#epoch.0" for number in range(4))
AFTER, ALSO_AFTER = "s/t/4.#epoch.1", "s/t/5.#epoch.1"
CONFIG = GroupConfig(starts={"s/t": None})
LAG = UpdateDistanceToTail("q", 0, {})


def group(*segments: str) -> GroupState:
    """Nobody reads these yet."""
    return GroupState(CONFIG, dict.fromkeys(segments, 0), last_read=dict.fromkeys(segments, 0))


def reading(**held: list[str]) -> GroupState:
    """Each reader has these."""
    first = group(*(segment for segments in held.values() for segment in segments))
    joined = apply_all(first, [AddReader(reader) for reader in held])
    return apply_all(joined, [AcquireSegment(reader, one) for reader, segments in held.items() for one in segments])


def test_a_reader_that_leaves_gives_its_segments_back() -> None:
    state = apply(reading(r=[A, B]), CheckpointReader("any", "r", {A: 5, B: 6}))
    assert state.assigned == {"r": {A: 5, B: 6}}
    left = apply(state, RemoveReader("r", {A: 9}))
    assert (left.assigned, left.unassigned, left.distance) == ({}, {A: 9, B: 6}, {})
    assert apply(left, RemoveReader("r", {A: 1})) == left


def test_a_reader_that_leaves_is_not_waited_for() -> None:
    state = apply_all(reading(r=[A], q=[B]), [CreateCheckpoint("c"), CheckpointReader("c", "q", {B: 7})])
    assert outstanding(state) == ["c"] and pending(state, "q") is None
    left = apply(state, RemoveReader("r", {}))
    assert not left.checkpoints.waiting and left.checkpoints.last == {A: 0, B: 7} and not left.checkpoints.published
    assert apply(left, UpdateCheckpointPublished(True)).checkpoints.published


def test_a_released_segment_is_free_at_its_new_offset() -> None:
    state = apply(reading(r=[A, B]), ReleaseSegment("r", A, 5))
    assert (state.assigned, state.unassigned, state.last_read) == ({"r": {B: 0}}, {A: 5}, {A: 5, B: 0})


def test_a_distance_has_a_floor_and_moves_no_offset() -> None:
    state = apply(reading(r=[A]), UpdateDistanceToTail("r", 0, {A: 5, D: 6}))
    assert (state.distance, state.last_read, state.assigned) == ({"r": 30_000}, {A: 5}, {"r": {A: 0}})


def test_the_parts_of_a_segment_come_when_it_is_completed() -> None:
    state = apply(reading(r=[A]), SegmentCompleted("r", A, {AFTER: {0}, ALSO_AFTER: {0}}, {AFTER: (0.0, 0.5)}))
    assert (state.unassigned, state.future, state.assigned) == ({AFTER: 0, ALSO_AFTER: 0}, {}, {"r": {}})
    assert state.last_read == {AFTER: 0, ALSO_AFTER: 0} and state.ranges == {AFTER: (0.0, 0.5)}


def test_a_merged_segment_waits_for_the_last_of_those_it_follows() -> None:
    completed = {AFTER: {0, 1}}
    state = apply(reading(r=[A], q=[B]), SegmentCompleted("r", A, completed))
    assert (state.unassigned, state.future) == ({}, {AFTER: {1}})
    assert apply(state, SegmentCompleted("q", B, completed)).unassigned == {AFTER: 0}


def test_the_data_ends_when_the_last_segment_has_no_successor() -> None:
    state = reading(r=[A])
    assert not at_end_of_data(state) and at_end_of_data(apply(state, SegmentCompleted("r", A, {})))


def test_a_checkpoint_without_readers_is_complete_at_once_and_not_the_last_one() -> None:
    state = apply(group(A), CreateCheckpoint("c"))
    assert (state.checkpoints.positions, state.checkpoints.waiting, state.checkpoints.last) == ({"c": {A: 0}}, {}, {})
    assert apply(state, CreateCheckpoint("c")) == state


def test_a_silent_checkpoint_moves_nothing() -> None:
    before = reading(r=[A])
    state = apply_all(before, [CreateCheckpoint("x_SILENT_"), CheckpointReader("x_SILENT_", "r", {A: 5})])
    assert state.checkpoints.positions == {"x_SILENT_": {A: 5}} and not state.checkpoints.waiting
    assert (state.assigned, state.checkpoints.last) == (before.assigned, {})
    assert outstanding(apply(before, CreateCheckpoint("x_SILENT_"))) == []


def test_checkpoints_are_forgotten_before_a_later_one() -> None:
    state = apply_all(reading(r=[A]), [CreateCheckpoint(id) for id in "abc"])
    cleared = apply(state, ClearCheckpointsBefore("b")).checkpoints
    assert cleared.ids == ("b", "c") and set(cleared.waiting) == set(cleared.positions) == {"b", "c"}
    assert apply(state, ClearCheckpointsBefore("unknown")) == state


def test_checkpoints_that_are_given_up_leave_their_names() -> None:
    silent = "x_SILENT_"
    state = apply_all(reading(r=[A]), [CreateCheckpoint("c"), CreateCheckpoint(silent)])
    state = apply(state, RemoveOutstandingCheckpoints())
    assert set(state.checkpoints.waiting) == set(state.checkpoints.positions) == {silent}
    assert state.checkpoints.ids == ("c", silent)
    assert decisions.checkpoint(state, "r", "c", {A: 1}) == []


def test_a_new_state_takes_the_place_of_everything() -> None:
    assert apply(reading(r=[A]), group(B)) == group(B)
    assert apply(group(B), UpdatingConfig(True)).updating


@pytest.mark.parametrize(
    "update",
    [
        AddReader("r"),
        AcquireSegment("gone", C),
        AcquireSegment("r", A),
        ReleaseSegment("r", C, 0),
        ReleaseSegment("gone", A, 0),
        SegmentCompleted("r", C, {}),
        CheckpointReader("c", "r", {}),
        CheckpointReader("other", "gone", {}),
    ],
)
def test_an_update_that_needs_another_state_breaks_a_rule(update: Update) -> None:
    state = apply_all(reading(r=[A], q=[B]), [CreateCheckpoint("c"), CheckpointReader("c", "r", {})])
    with pytest.raises(RuleBroken):
        apply(state, update)


def test_a_name_is_taken_once() -> None:
    assert decisions.join(group(A), "r") == [AddReader("r")]
    with pytest.raises(ReaderExists):
        decisions.join(reading(r=[A]), "r")


@pytest.mark.parametrize(("free", "taken"), [([], 0), ([A], 1), ([A, B], 1), ([A, B, C, D], 2)])
def test_a_reader_acquires_its_share_of_what_is_free(free: list[str], taken: int) -> None:
    state = apply_all(group(*free), [AddReader("q"), AddReader("r")])
    updates = decisions.acquire(state, "q", LAG)
    assert updates == ([*(AcquireSegment("q", segment) for segment in free[:taken]), LAG] if taken else [])


def test_a_reader_with_more_than_its_share_acquires_one_all_the_same() -> None:
    state = apply(reading(q=[A, B, C], r=[D]), ReleaseSegment("r", D, 3))
    assert decisions.acquire(state, "q", LAG) == [AcquireSegment("q", D), LAG]


def test_a_reader_with_too_much_releases_one_segment() -> None:
    level = [UpdateDistanceToTail("q", 0, {}), UpdateDistanceToTail("r", 0, {})]
    assert decisions.release(apply_all(reading(q=[A, B], r=[C]), level), "q", {}, LAG) == []
    state = apply_all(reading(q=[A, B, C], r=[D]), level)
    assert decisions.release(state, "q", {C: 8}, LAG) == [ReleaseSegment("q", C, 8), LAG]
    assert decisions.release(state, "r", {}, LAG) == []
    near = apply_all(reading(q=[A, B, C], r=[D]), [level[0], UpdateDistanceToTail("r", 90_000, {})])
    assert decisions.release(near, "q", {}, LAG) == [], "it is less behind"


def test_nothing_moves_while_a_checkpoint_waits_for_the_reader() -> None:
    state = apply_all(reading(q=[A, B, C], r=[]), [CreateCheckpoint("c"), RemoveReader("x", {})])
    state = apply(state, ReleaseSegment("q", C, 0))
    assert decisions.acquire(state, "q", LAG) == decisions.release(state, "q", {}, LAG) == []
    assert decisions.complete(state, "q", A, {}, {}) == decisions.begin_automatic_checkpoint(state, "q", "d") == []
    assert decisions.checkpoint(state, "q", "c", {A: 1}) == [CheckpointReader("c", "q", {A: 1})]


def test_an_automatic_checkpoint_clears_those_before() -> None:
    begun = decisions.begin_automatic_checkpoint(reading(r=[A]), "r", "c")
    assert begun == [CreateCheckpoint("c"), ClearCheckpointsBefore("c")]


def test_who_has_most_releases_first_and_acquires_last() -> None:
    state = reading(q=[A, B], r=[C], s=[])
    assert [decisions.release_after_s(state, reader) for reader in "qrs"] == [1.0, 2.0, 3.0]
    assert [decisions.acquire_after_s(state, reader) for reader in "qrs"] == [3.0, 2.0, 1.0]
    assert decisions.lag_after_s(state) == 4.0


def test_a_lag_is_the_time_less_the_id_of_the_segment_last_read() -> None:
    ranges = {AFTER: (0.0, 0.5), A: (0.5, 1.0)}
    lag = decisions.lag_of("r", 2**40, AFTER, {AFTER: 1}, ranges)
    assert lag == UpdateDistanceToTail("r", 2**40 - 2**32 - 4, {AFTER: 1}, {AFTER: (0.0, 0.5)})
    assert decisions.lag_of("r", 2**40, None, {}, {}).distance_ms == 0


@pytest.mark.parametrize(
    "decide",
    [
        lambda state: decisions.acquire(state, "r", LAG),
        lambda state: decisions.release(state, "r", {}, LAG),
        lambda state: decisions.complete(state, "q", B, {}, {}),
        lambda state: decisions.checkpoint(state, "r", "c", {}),
        lambda state: decisions.begin_automatic_checkpoint(state, "r", "c"),
    ],
)
def test_a_reader_that_was_reported_offline_learns_it(decide: Callable[[GroupState], object]) -> None:
    with pytest.raises(ReaderOffline):
        decide(reading(q=[A]))
    assert decisions.leave(reading(q=[A]), "r", {}) == []
