"""The state that readers keep of their group, as far as it is read."""

from collections.abc import Callable, Mapping
from typing import TypeVar
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import group_state as written

from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.group_state import NO_MARK, GroupState, StateError, fold, read_group_state
from api_gateway.edge.worker import Worker
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.memory import InMemorySegmentStore
from sluice.pravega.store import MARK_ATTRIBUTE

T = TypeVar("T")

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
CONFIG = written.config(["sc/a", "sc/b"], ID, 7)
A0, A1, B0 = "sc/a/0.#epoch.0", "sc/a/1.#epoch.0", "sc/b/0.#epoch.0"
A2 = "sc/a/2.#epoch.1"
SEGMENT = "sc/_RGrg/0.#epoch.0"


def folded(*entries: bytes, state: GroupState | None = None) -> GroupState:
    for entry in entries:
        state = fold(state, entry)
    assert state is not None
    return state


def assignment(state: GroupState) -> tuple[Mapping[str, set[str]], set[str]]:
    return {reader: set(held) for reader, held in state.assigned.items()}, set(state.unassigned)


def test_segments_go_from_hand_to_hand() -> None:
    state = folded(
        written.initial(CONFIG, [A0, A1]),
        written.updates(written.add_reader("r1"), written.add_reader("r2"), written.acquire("r1", A0)),
        written.updates(written.acquire("r2", A1), written.create_checkpoint("cp")),
    )
    assert assignment(state) == ({"r1": {A0}, "r2": {A1}}, set())
    later = folded(written.updates(written.release("r1", A0), written.remove_reader("r2")), state=state)
    assert assignment(later) == ({"r1": set()}, {A0, A1})


def test_a_segment_comes_when_all_it_waits_for_is_read() -> None:
    state = folded(
        written.initial(CONFIG, [A0, A1]),
        written.updates(written.add_reader("r"), written.acquire("r", A0), written.acquire("r", A1)),
        written.updates(written.complete("r", A0, {A2: (0, 1)})),
    )
    assert assignment(state) == ({"r": {A1}}, set())
    later = folded(written.updates(written.complete("r", A1, {A2: (0, 1)})), state=state)
    assert assignment(later) == ({"r": set()}, {A2})
    assert later.future == {}


class Untouched(set[int]):
    """What a segment waits for, while no completion may cost it anything."""

    def discard(self, _element: object) -> None:
        raise AssertionError


def test_a_completion_costs_only_what_waits_for_it() -> None:
    state = folded(written.compacted(CONFIG, {"r": [A0]}, [], {A2: (0,), B0: (7,)}))
    state.future[B0] = Untouched({7})
    fold(state, written.updates(written.complete("r", A0, {})))
    assert (state.unassigned, state.future) == ({A2: 0}, {B0: {7}})


def test_a_compacted_state_replaces_everything() -> None:
    state = folded(
        written.initial(CONFIG, [B0]),
        written.compacted(CONFIG, {"r": [A0]}, [A1], {A2: (0, 1)}),
        written.updates(written.complete("r", A0, {A2: (0, 1)})),
    )
    assert assignment(state) == ({"r": set()}, {A1})
    assert state.future == {A2: {1}}


def test_an_initial_state_among_updates_replaces_everything() -> None:
    reset = written.initial(CONFIG, [B0])[4:]
    state = folded(
        written.initial(CONFIG, [A0]),
        written.updates(written.add_reader("r1"), written.acquire("r1", A0), reset, written.add_reader("r2")),
    )
    assert assignment(state) == ({"r2": set()}, {B0})


def test_positions_are_the_latest_that_readers_have_reported() -> None:
    state = folded(
        written.initial(CONFIG, [A0, A1]),
        written.updates(written.add_reader("r"), written.acquire("r", A0), written.acquire("r", A1)),
        written.updates(written.checkpoint("cp", "r", {A0: 50, A1: 60, B0: 9})),
    )
    assert state.positions() == {A0: 50, A1: 60}
    fold(state, written.updates(written.checkpoint("x_SILENT_y", "r", {A0: 70}), written.last_read("r", {A1: 65})))
    assert state.positions() == {A0: 50, A1: 65}
    fold(state, written.updates(written.release("r", A0, 55), written.remove_reader("r", {A1: 80})))
    assert (state.assigned, state.positions()) == ({}, {A0: 55, A1: 80})
    fold(
        state, written.updates(written.add_reader("q"), written.acquire("q", A0), written.complete("q", A0, {A2: (0,)}))
    )
    assert state.positions() == {A1: 80, A2: 0}
    fold(state, written.updates(written.add_reader("q"), written.acquire("q", A1), written.remove_reader("q")))
    assert state.positions()[A1] == 80, "where none is reported it is where it was acquired"


@pytest.mark.parametrize(
    "entries",
    [
        (written.updates(written.add_reader("r")),),
        (written.initial(CONFIG, []),),
        (b"\0\0\0\3",),
        (b"\0\0",),
        (written.initial(CONFIG, [A0])[:-20],),
        (written.initial(CONFIG, [A0]), written.updates(written.complete("r", "nonsense", {}))),
    ],
)
def test_what_cannot_be_decoded_is_malformed(entries: tuple[bytes, ...]) -> None:
    with pytest.raises(MalformedPayload):
        folded(*entries)


@given(st.binary(max_size=200))
def test_no_bytes_are_worse_than_malformed(data: bytes) -> None:
    try:
        fold(fold(None, written.initial(CONFIG, [A0])), data)
    except MalformedPayload:
        return


async def store_with(*entries: bytes) -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    await store.create_segment(SEGMENT, 0, 0)
    for entry in entries:
        await store.append(SEGMENT, uuid4(), entry)
    return store


async def state_in(store: InMemorySegmentStore) -> GroupState:
    state = await read_group_state(store, Worker(), SEGMENT)
    assert state is not None
    return state


async def test_an_empty_segment_has_no_state() -> None:
    assert await read_group_state(await store_with(), Worker(), SEGMENT) is None


async def test_everything_is_read() -> None:
    many = [written.updates(written.add_reader(f"r{i}")) for i in range(300)]
    store = await store_with(written.initial(CONFIG, [A0]), *many)
    assert len((await state_in(store)).assigned) == 300


@pytest.mark.parametrize("mark", [None, NO_MARK])
async def test_without_a_mark_it_is_read_from_where_the_segment_begins(mark: int | None) -> None:
    store = await store_with(written.initial(CONFIG, [A0]))
    begin = (await store.segment_info(SEGMENT)).length
    await store.append(SEGMENT, uuid4(), written.initial(CONFIG, [B0]))
    await store.truncate_segment(SEGMENT, begin)
    if mark is not None:
        await store.update_attribute(SEGMENT, MARK_ATTRIBUTE, mark, None)
    assert (await state_in(store)).unassigned == {B0: 0}


async def test_a_state_that_is_compacted_while_it_is_read_is_read_again() -> None:
    store = await store_with(written.updates(written.add_reader("r")))
    begin = (await store.segment_info(SEGMENT)).length
    await store.append(SEGMENT, uuid4(), written.initial(CONFIG, [B0]))
    read = store.read_segment
    compacted = False

    async def read_late(name: str, offset: int, length: int) -> object:
        nonlocal compacted
        if not compacted:
            compacted = True
            await store.update_attribute(SEGMENT, MARK_ATTRIBUTE, begin, None)
            await store.truncate_segment(SEGMENT, begin)
        return await read(name, offset, length)

    store.read_segment = read_late  # type: ignore[method-assign,assignment]
    assert (await state_in(store)).unassigned == {B0: 0}


class Busy(Worker):
    async def run(self, work: Callable[[], T]) -> T:
        raise OverloadedError


async def test_the_worker_folds_what_clients_wrote() -> None:
    with pytest.raises(OverloadedError):
        await read_group_state(await store_with(written.initial(CONFIG, [A0])), Busy(), SEGMENT)


async def test_nonsense_is_named() -> None:
    with pytest.raises(StateError):
        await read_group_state(await store_with(b"\0\0\0\3"), Worker(), SEGMENT)
