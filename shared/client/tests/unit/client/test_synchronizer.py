"""State synchronizers side by side on one stream in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice.pravega import synchronizer_records as records
from sluice.pravega.memory import Fault
from sluice_client import (
    Contended,
    EntryMalformed,
    JsonCodec,
    NotSent,
    Patience,
    Revision,
    RevisionedStream,
    StateLost,
    StateSynchronizer,
    Unavailable,
    split_events,
)

SEGMENT = "s/t/0.#epoch.0"
Numbers = tuple[int, ...]
Synchronizer = StateSynchronizer[Numbers, int]
IMPATIENT = Patience(deadline_s=2.0)


def appended(numbers: Numbers, number: int) -> Numbers:
    if number < 0:
        raise ValueError("a negative number")
    return (*numbers, number)


def synchronizer(store: InMemorySegmentStore, patience: Patience = IMPATIENT) -> Synchronizer:
    numbers: JsonCodec[Numbers] = JsonCodec(tuple[int, ...])
    return StateSynchronizer(
        RevisionedStream(store, SEGMENT, patience),
        initial=tuple,
        apply=appended,
        state_codec=numbers,
        update_codec=JsonCodec(int),
    )


def at(moment: str, request_type: str, act: Callable[[], Awaitable[None]]) -> Fault:
    """Have this done before or after each request of a type."""
    return lambda when, operation, _: act() if (when, operation) == (moment, request_type) else None


@pytest.fixture
async def store() -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    await store.create_segment(SEGMENT, 0, 0)
    return store


@pytest.fixture
async def one(store: InMemorySegmentStore) -> Synchronizer:
    """Has written 1."""
    one = synchronizer(store)
    await one.update(lambda _: [1])
    return one


async def test_what_one_writes_the_other_fetches(store: InMemorySegmentStore) -> None:
    one, two = synchronizer(store), synchronizer(store)
    assert one.state == () and one.revision == Revision(SEGMENT, 0)
    assert await one.update(lambda _: [1, 2]) == (1, 2)
    assert len(two.state) == 0
    assert await two.fetch() == (1, 2)
    assert two.state == one.state
    assert one.revision == two.revision == Revision(SEGMENT, store.segments[SEGMENT].length)


async def test_a_stream_begins_with_the_first_state_that_is_written(store: InMemorySegmentStore) -> None:
    one, two = synchronizer(store), synchronizer(store)
    assert sorted(await asyncio.gather(one.begin((7,)), two.begin((8,)))) in ([(7,), (7,)], [(8,), (8,)])
    first = one.state
    assert await two.begin((9,)) == first and await two.update(lambda _: [1]) == (*first, 1)
    assert await synchronizer(store).begin((9,)) == (*first, 1)
    (begin, *_) = split_events(store.segments[SEGMENT].data, 0).events
    assert records.state_in(begin.data) is not None


async def test_every_decision_is_on_the_newest_state(store: InMemorySegmentStore, one: Synchronizer) -> None:
    two = synchronizer(store)
    seen: list[Numbers] = []

    def decide(state: Numbers) -> Sequence[int]:
        seen.append(state)
        return [] if 1 in state else [1]

    assert await two.update(decide) == (1,)
    assert seen == [(1,)]
    assert await one.fetch() == (1,)


async def test_updates_are_written_together(store: InMemorySegmentStore) -> None:
    one = synchronizer(store)
    await one.update(lambda _: [1, 2, 3])
    assert [entry async for _, entry in RevisionedStream(store, SEGMENT).read(Revision(SEGMENT, 0))] == [
        records.updates_record([b"1", b"2", b"3"])
    ]


async def test_what_raises_writes_nothing(store: InMemorySegmentStore, one: Synchronizer) -> None:
    with pytest.raises(ValueError, match="negative"):
        await one.update(lambda _: [2, -1])
    with pytest.raises(ZeroDivisionError):
        await one.update(lambda _: [1 // 0])
    assert await one.fetch() == (1,) == await synchronizer(store).fetch()


async def test_a_compaction_leaves_what_came_since_the_one_before(
    store: InMemorySegmentStore, one: Synchronizer
) -> None:
    behind, other = synchronizer(store), synchronizer(store)
    await behind.fetch()
    await one.compact()
    await other.update(lambda _: [2])
    await one.compact()
    stream = RevisionedStream(store, SEGMENT)
    assert [entry async for _, entry in stream.read(await stream.head())] == [
        records.state_record(b"[1]"),
        records.updates_record([b"2"]),
        records.state_record(b"[1,2]"),
    ]
    await other.update(lambda _: [3])
    assert [await each.fetch() for each in (one, behind, other, synchronizer(store))] == [(1, 2, 3)] * 4
    assert len({each.revision for each in (one, behind, other)}) == 1


async def test_to_compact_again_writes_nothing(store: InMemorySegmentStore, one: Synchronizer) -> None:
    other = synchronizer(store)
    await one.compact()
    length = store.segments[SEGMENT].length
    await one.compact()
    await other.compact()
    assert store.segments[SEGMENT].length == length
    assert store.segments[SEGMENT].data[8:] == records.state_record(b"[1]")


async def test_updates_are_appended_whatever_the_state_is(store: InMemorySegmentStore, one: Synchronizer) -> None:
    other = synchronizer(store)
    await other.update(lambda _: [2])
    await one.append([3, 4])
    assert one.state == (1,)
    assert await one.fetch() == (1, 2, 3, 4) == await other.fetch()


@pytest.mark.parametrize("request_type", ["ConditionalAppend", "UpdateSegmentAttribute", "TruncateSegment"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_compaction_that_was_cut_off_anywhere(
    store: InMemorySegmentStore, one: Synchronizer, request_type: str, moment: str
) -> None:
    reached = asyncio.Event()

    async def stand() -> None:
        reached.set()
        await asyncio.Event().wait()

    await synchronizer(store).compact()
    await one.update(lambda _: [2])
    store.fault = at(moment, request_type, stand)
    compaction = asyncio.create_task(one.compact())
    await reached.wait()
    compaction.cancel()
    store.fault = None
    await asyncio.wait([compaction])
    assert compaction.cancelled()
    assert await synchronizer(store).fetch() == (1, 2) == await one.fetch()
    await synchronizer(store).update(lambda _: [3])
    await one.compact()
    await one.compact()
    assert store.segments[SEGMENT].data[8:] == records.state_record(b"[1,2,3]")
    assert await synchronizer(store).fetch() == (1, 2, 3)


async def test_a_compaction_that_others_overtook_does_not_move_the_mark_back(store: InMemorySegmentStore) -> None:
    slow, fast = synchronizer(store), synchronizer(store)
    await slow.update(lambda _: [1])

    async def overtake() -> None:
        store.fault = None
        await fast.update(lambda _: [2])
        await fast.compact()

    store.fault = at("before", "GetSegmentAttribute", overtake)
    await slow.compact()
    assert store.segments[SEGMENT].data[8:] == records.state_record(b"[1,2]")
    assert await synchronizer(store).fetch() == (1, 2)


async def test_the_mark_moves_on_while_another_begins_there(store: InMemorySegmentStore, one: Synchronizer) -> None:
    behind = synchronizer(store)
    await one.compact()
    await one.compact()

    async def move_on() -> None:
        store.fault = None
        await one.update(lambda _: [2])
        await one.compact()
        await one.compact()

    store.fault = at("after", "GetSegmentAttribute", move_on)
    assert await behind.fetch() == (1, 2)


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_stream_that_was_not_used_for_long(
    store: InMemorySegmentStore, one: Synchronizer, sealed: bool
) -> None:
    await one.compact()
    await one.compact()
    await one.update(lambda _: [2])
    if sealed:
        await store.seal_segment(SEGMENT)
    store.evict(SEGMENT)
    assert await synchronizer(store).fetch() == (1, 2)
    if not sealed:
        store.evict(SEGMENT)
        await synchronizer(store).compact()
        store.evict(SEGMENT)
        assert await synchronizer(store).update(lambda _: [3]) == (1, 2, 3)


async def test_a_stream_truncated_by_hand_has_lost_its_state(store: InMemorySegmentStore, one: Synchronizer) -> None:
    await store.truncate_segment(SEGMENT, one.revision.offset)
    assert await one.fetch() == (1,)
    for _ in range(2):
        with pytest.raises(StateLost, match="mark None"):
            await synchronizer(store).fetch()
        await one.update(lambda _: [2])
    await one.compact()
    assert await synchronizer(store).fetch() == (1, 2, 2)
    await one.update(lambda _: [2])
    await store.truncate_segment(SEGMENT, one.revision.offset)
    with pytest.raises(StateLost, match="mark s/t"):
        await synchronizer(store).fetch()


async def test_a_mark_that_is_not_at_a_state(store: InMemorySegmentStore, one: Synchronizer) -> None:
    stream = RevisionedStream(store, SEGMENT)
    await stream.set_mark(one.revision, None)
    await stream.truncate(one.revision)
    with pytest.raises(StateLost, match="nothing at s/t"):
        await synchronizer(store).fetch()
    await one.update(lambda _: [2])
    with pytest.raises(EntryMalformed, match="no state at the mark"):
        await synchronizer(store).fetch()


async def test_an_entry_of_another_program(store: InMemorySegmentStore, one: Synchronizer) -> None:
    await RevisionedStream(store, SEGMENT).append(b"hello")
    with pytest.raises(EntryMalformed, match="begins with b'hell'"):
        await one.fetch()
    assert one.state == (1,)


async def test_a_state_that_cannot_be_read_leaves_the_copy_as_it_was(
    store: InMemorySegmentStore, one: Synchronizer
) -> None:
    other, stream = synchronizer(store), RevisionedStream(store, SEGMENT)
    await other.update(lambda _: [2])
    tail = await stream.tail()
    await stream.append(records.state_record(b"no numbers"))
    await stream.set_mark(tail, None)
    await stream.truncate(tail)
    before = (one.state, one.revision)
    with pytest.raises(ValueError, match="JSON"):
        await one.fetch()
    assert (one.state, one.revision) == before


async def test_others_are_always_first(store: InMemorySegmentStore) -> None:
    one, other = synchronizer(store, Patience(60.0)), RevisionedStream(store, SEGMENT)
    calls = 0

    async def push_in() -> None:
        nonlocal calls
        calls += 1
        fault, store.fault = store.fault, None
        await other.append(records.updates_record([b"0"]))
        store.fault = fault

    store.fault = at("before", "ConditionalAppend", push_in)
    with pytest.raises(Contended, match="attempts to update"):
        await one.update(lambda _: [1])
    assert calls == 100
    with pytest.raises(Contended, match="attempts to compact"):
        await one.compact()
    began = asyncio.get_running_loop().time()
    with pytest.raises(Contended, match="attempts to update"):
        await synchronizer(store).update(lambda _: [1])
    assert 2.0 <= asyncio.get_running_loop().time() - began < 2.5 and calls < 300
    total = calls
    store.fault = None
    assert await one.fetch() == (0,) * total


async def test_a_copy_far_behind_has_all_its_time_after_it_has_caught_up(store: InMemorySegmentStore) -> None:
    """The first look at the stream takes longer than the patience lasts, and another process is first once."""
    await synchronizer(store).update(lambda _: [1])
    one, other, slow = synchronizer(store), RevisionedStream(store, SEGMENT), True

    async def trouble(moment: str, operation: str) -> None:
        nonlocal slow
        if moment == "before" and operation == "ReadSegment" and slow:
            slow = False
            await asyncio.sleep(IMPATIENT.deadline_s - 0.1)
        elif moment == "before" and operation == "ConditionalAppend":
            store.fault = None
            await asyncio.sleep(0.2)
            await other.append(records.updates_record([b"2"]))

    store.fault = lambda moment, operation, _: trouble(moment, operation)
    assert await one.update(lambda _: [3]) == (1, 2, 3)
    assert not slow


async def test_a_turn_that_does_not_come_in_time(store: InMemorySegmentStore) -> None:
    """What waits behind a call that hangs ends when its own time is up, and is not written."""
    one, clock = synchronizer(store), asyncio.get_running_loop().time
    store.fault = lambda moment, *_: asyncio.sleep(0.9) if moment == "before" else None
    first = asyncio.create_task(one.update(lambda _: [1]))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(call) for call in (one.update(lambda _: [2]), one.fetch(), one.compact())]
    for call in waiting:
        with pytest.raises(NotSent, match=r"not free within 2.0 s"):
            await call
    assert clock() == 2.0
    assert await first == (1,)
    store.fault = None
    assert await one.fetch() == (1,)


async def test_an_update_of_which_nothing_is_known(store: InMemorySegmentStore) -> None:
    one = synchronizer(store)

    def lost(moment: str, operation: str, segment: str) -> None:
        if moment == "after" and operation == "ConditionalAppend":
            store.fault = away
            raise ConnectionFailure(Failure.LOST, segment)

    def away(moment: str, operation: str, segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED, segment)

    store.fault = lost
    with pytest.raises(Unavailable):
        await one.update(lambda _: [1])
    store.fault = None
    assert one.state == ()
    assert await one.update(lambda _: [2]) == (1, 2)
