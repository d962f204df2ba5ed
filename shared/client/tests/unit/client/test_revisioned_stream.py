"""A revisioned stream over the twin of the segment stores: what each call does, and what becomes of lost answers."""

import asyncio

import pytest

from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice.pravega.store import MARK_ATTRIBUTE
from sluice_client import (
    EntryMalformed,
    NotSent,
    Patience,
    Revision,
    RevisionAhead,
    RevisionedStream,
    RevisionTruncated,
    StreamMissing,
    StreamSealed,
    Unavailable,
)
from sluice_client.call_lock import MAX_WAITING

SEGMENT = "s/t/0.#epoch.0"
START = Revision(SEGMENT, 0)
IMPATIENT = Patience(deadline_s=2.0)


class Faults:
    """Loses the connection at chosen requests: `at` are (moment, type of request), each strikes once."""

    def __init__(self, *at: tuple[str, str]) -> None:
        self.at = list(at)

    def __call__(self, moment: str, operation: str, segment: str) -> None:
        if (moment, operation) in self.at:
            self.at.remove((moment, operation))
            raise ConnectionFailure(Failure.LOST, segment)


@pytest.fixture
async def store() -> InMemorySegmentStore:
    store = InMemorySegmentStore()
    await store.create_segment(SEGMENT, 0, 0)
    return store


@pytest.fixture
def stream(store: InMemorySegmentStore) -> RevisionedStream:
    return RevisionedStream(store, SEGMENT, IMPATIENT)


async def entries(stream: RevisionedStream, start: Revision = START) -> list[bytes]:
    return [entry async for _, entry in stream.read(start)]


async def test_what_is_appended_is_read_from_any_revision(stream: RevisionedStream) -> None:
    revisions = [START, *[await stream.append(entry) for entry in (b"a", b"", b"ccc")]]
    assert [revision.offset for revision in revisions] == [0, 9, 17, 28]
    assert await stream.head() == START and await stream.tail() == revisions[-1]
    read = [pair async for pair in stream.read(START)]
    assert read == list(zip(revisions[1:], (b"a", b"", b"ccc"), strict=True))
    assert await entries(stream, revisions[2]) == [b"ccc"]
    assert await entries(stream, revisions[3]) == []


async def test_the_bytes_are_those_of_the_java_client(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    await stream.append_if(b"hi", await stream.append(b"abc"))
    assert store.segments[SEGMENT].data == b"\0\0\0\0\0\0\0\3abc\0\0\0\0\0\0\0\2hi"


async def test_an_append_on_condition_is_refused_to_all_but_the_first(store: InMemorySegmentStore) -> None:
    streams = [RevisionedStream(store, SEGMENT, IMPATIENT) for _ in range(5)]
    said = await asyncio.gather(*(stream.append_if(b"%d" % n, START) for n, stream in enumerate(streams)))
    (first,) = [n for n, revision in enumerate(said) if revision is not None]
    assert await entries(streams[0]) == [b"%d" % first]
    assert said[first] == await streams[0].tail()


async def test_entries_larger_than_what_is_read_at_once(stream: RevisionedStream) -> None:
    large = [b"a" * 3_000_000, b"b", b"c" * 8 * 1024 * 1024]
    for entry in large:
        await stream.append(entry)
    assert await entries(stream) == large


async def test_reading_ends_at_the_tail_as_of_its_first_step(stream: RevisionedStream) -> None:
    await stream.append(b"old")
    read = stream.read(START)
    assert (await anext(read))[1] == b"old"
    await stream.append(b"new")
    with pytest.raises(StopAsyncIteration):
        await anext(read)


async def test_truncation(stream: RevisionedStream) -> None:
    first, second = await stream.append(b"a"), await stream.append(b"b")
    await stream.truncate(first)
    await stream.truncate(START)
    assert await stream.head() == first
    assert await entries(stream, first) == [b"b"]
    with pytest.raises(RevisionTruncated, match="truncated away") as raised:
        await entries(stream)
    assert raised.value.head_offset == first.offset
    with pytest.raises(RevisionAhead):
        await stream.truncate(Revision(SEGMENT, second.offset + 1))


async def test_what_is_truncated_while_it_is_read(stream: RevisionedStream) -> None:
    for _ in range(3):
        await stream.append(b"x" * 1_000_000)
    read = stream.read(START)
    await anext(read)
    tail = await stream.tail()
    await stream.truncate(tail)
    with pytest.raises(RevisionTruncated) as raised:
        await anext(read)
    assert raised.value.head_offset == tail.offset


async def test_a_revision_that_is_not_of_this_stream(stream: RevisionedStream) -> None:
    other = Revision("s/u/0.#epoch.0", 0)
    with pytest.raises(ValueError, match="not a revision of"):
        await stream.append_if(b"", other)
    with pytest.raises(RevisionAhead):
        await entries(stream, Revision(SEGMENT, 1))


async def test_what_other_programs_wrote_is_not_taken_for_entries(
    stream: RevisionedStream, store: InMemorySegmentStore
) -> None:
    store.segments[SEGMENT].data = b"raw bytes of a byte stream"
    with pytest.raises(EntryMalformed):
        await entries(stream)


async def test_the_mark(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    first, second = await stream.append(b"a"), await stream.append(b"b")
    assert await stream.mark() is None
    assert not await stream.set_mark(first, second)
    assert await stream.set_mark(first, None)
    assert not await stream.set_mark(second, None)
    assert await stream.mark() == first and store.segments[SEGMENT].attributes[MARK_ATTRIBUTE] == first.offset
    assert await stream.set_mark(second, first)
    assert await stream.set_mark(None, second) and await stream.mark() is None


async def test_a_mark_that_the_segment_store_has_forgotten(
    stream: RevisionedStream, store: InMemorySegmentStore
) -> None:
    first = await stream.append(b"a")
    await stream.set_mark(first, None)
    store.evict(SEGMENT)
    assert await store.attribute(SEGMENT, MARK_ATTRIBUTE) is None
    assert await stream.mark() == first == await stream.mark()
    store.evict(SEGMENT)
    store.fault = Faults(("after", "UpdateSegmentAttribute"))
    assert await stream.mark() == first
    await store.seal_segment(SEGMENT)
    assert await stream.mark() == first
    store.evict(SEGMENT)
    assert await stream.mark() is None


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("request_type", ["SetupAppend", "AppendBlockEnd", "ConditionalAppend"])
async def test_an_append_whose_answer_was_lost_is_there_once(
    stream: RevisionedStream, store: InMemorySegmentStore, moment: str, request_type: str
) -> None:
    begin = await stream.append(b"first")
    store.fault = faults = Faults((moment, request_type), (moment, request_type))
    if request_type == "AppendBlockEnd":
        await stream.append(b"second")
    else:
        assert await stream.append_if(b"second", begin) == await stream.tail()
    # What was stored although its answer was lost is not sent again.
    assert len(faults.at) == (1 if moment == "after" and request_type != "SetupAppend" else 0)
    store.fault = None
    assert await entries(stream) == [b"first", b"second"]
    await stream.append(b"third")
    assert (await entries(stream))[2:] == [b"third"]


async def test_that_another_was_first_is_certain_after_a_lost_answer(
    stream: RevisionedStream, store: InMemorySegmentStore
) -> None:
    begin = await stream.append(b"first")
    store.fault = faults = Faults(("after", "ConditionalAppend"))
    await RevisionedStream(store, SEGMENT).append(b"another")
    assert await stream.append_if(b"second", begin) is None and faults.at == []
    assert await entries(stream) == [b"first", b"another"]


async def test_an_append_that_was_stored_counts_although_others_followed(
    stream: RevisionedStream, store: InMemorySegmentStore
) -> None:
    other = RevisionedStream(store, SEGMENT)

    async def follow() -> None:
        store.fault = None
        await other.append(b"other")
        raise ConnectionFailure(Failure.LOST)

    store.fault = lambda moment, operation, _: (
        follow() if (moment, operation) == ("after", "ConditionalAppend") else None
    )
    after = await stream.append_if(b"mine", START)
    assert after is not None and [entry async for _, entry in stream.read(after)] == [b"other"]


async def test_a_mark_whose_answer_was_lost_is_set(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    first = await stream.append(b"a")
    store.fault = Faults(("after", "UpdateSegmentAttribute"))
    assert await stream.set_mark(first, None)
    store.fault = Faults(("before", "UpdateSegmentAttribute"))
    assert not await stream.set_mark(START, None)
    assert await stream.mark() == first


async def test_an_answer_that_never_comes(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    def lost(moment: str, operation: str, segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED, segment)

    store.fault = lost
    began = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable, match=r"2.0 s; last answer: .* does not accept connections"):
        await stream.append(b"")
    assert asyncio.get_running_loop().time() == began + 2.0
    store.fault = None
    await stream.append(b"next")
    assert await entries(stream) == [b"next"]


async def test_appends_that_wait_for_their_turn_have_no_more_time_than_others(
    stream: RevisionedStream, store: InMemorySegmentStore
) -> None:
    store.fault = lambda moment, *_: asyncio.sleep(0.9) if moment == "before" else None
    calls = [asyncio.create_task(stream.append(entry)) for entry in (b"one", b"two", b"three")]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert asyncio.get_running_loop().time() == 2.0
    # An append is two requests. The second one began when the first had ended, the third one never.
    assert [type(outcome) for outcome in outcomes] == [Revision, Unavailable, NotSent]
    store.fault = None
    await stream.append(b"four")
    assert await entries(stream) == [b"one", b"four"]


async def test_an_append_too_many_is_refused_at_once(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    gate = asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    store.fault = lambda moment, *_: wait() if moment == "before" else None
    calls = [asyncio.create_task(stream.append(b"x")) for _ in range(MAX_WAITING + 1)]
    await asyncio.sleep(0)
    with pytest.raises(NotSent, match="1000 calls wait already"):
        await stream.append(b"y")
    gate.set()
    await asyncio.gather(*calls)
    assert await entries(stream) == [b"x"] * (MAX_WAITING + 1)


async def test_a_stream_that_is_sealed_or_gone(stream: RevisionedStream, store: InMemorySegmentStore) -> None:
    end = await stream.append(b"a")
    await store.seal_segment(SEGMENT)
    with pytest.raises(StreamSealed):
        await stream.append(b"b")
    with pytest.raises(StreamSealed):
        await stream.append_if(b"b", end)
    assert await entries(stream) == [b"a"]
    await store.delete_segment(SEGMENT)
    for call in (stream.tail(), stream.append(b"b"), stream.mark(), entries(stream)):
        with pytest.raises(StreamMissing, match=SEGMENT):
            await call
