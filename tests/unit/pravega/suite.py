"""What every segment store does, real or in memory: one suite for both.

Subclasses are named Test… and come with the fixtures `store` and `scope`, a scope that nothing was created in.
"""

import asyncio
from uuid import UUID, uuid5

import pytest
from support.segments import content

from sluice.domain.config import MAX_KEY_LENGTH, ScaleType
from sluice.domain.segment import kvt_segment_name, segment_id, segment_name, transaction_segment_name
from sluice.pravega import (
    NO_VERSION,
    NOT_EXISTS,
    IllegalRequest,
    KeyMissing,
    KeyVersionDiffers,
    LengthDiffers,
    SegmentMissing,
    SegmentSealed,
    SegmentStore,
    SegmentTruncated,
    TableEntry,
    TableKey,
    TableNotEmpty,
    TryLater,
)
from sluice.pravega.errors import ConnectionClosed
from sluice.pravega.event_frames import MAX_EVENT_BYTES, EventSplitter, frame_event
from sluice.pravega.store import CREATION_TIME_ATTRIBUTE

NAMESPACE = UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5")


def writer(text: str) -> UUID:
    return uuid5(NAMESPACE, text)


class SegmentStoreSuite:
    """Run over the twin and over the real store."""

    @pytest.fixture
    async def name(self, store: SegmentStore, scope: str) -> str:
        """Of a segment that was just created."""
        name = segment_name(scope, "st", 0)
        await store.create_segment(name, ScaleType.FIXED.code, 0)
        return name

    async def test_a_new_segment_is_empty_and_creating_it_again_is_done_already(
        self, store: SegmentStore, scope: str
    ) -> None:
        name = segment_name(scope, "st", segment_id(2, 1))
        for _ in range(2):
            await store.create_segment(name, ScaleType.EVENTS.code, 100, 4 << 20)
        info = await store.segment_info(name)
        assert (info.length, info.start_offset, info.sealed) == (0, 0, False)

    async def test_many_segments_are_created_side_by_side(self, store: SegmentStore, scope: str) -> None:
        names = [segment_name(scope, "st", number) for number in range(100)]
        await asyncio.gather(*(store.create_segment(name, ScaleType.FIXED.code, 0) for name in names))
        infos = await asyncio.gather(*(store.segment_info(name) for name in names))
        assert [info.length for info in infos] == [0] * 100

    async def test_updating_the_policy_again_is_done_already(self, store: SegmentStore, name: str) -> None:
        await store.update_policy(name, ScaleType.KBYTES.code, 10)
        await store.update_policy(name, ScaleType.KBYTES.code, 10)

    async def test_sealing_is_for_ever_and_sealing_again_is_done_already(self, store: SegmentStore, name: str) -> None:
        await store.seal_segment(name)
        await store.seal_segment(name)
        assert (await store.segment_info(name)).sealed
        with pytest.raises(SegmentSealed):
            await store.append(name, writer("a"), b"late")

    async def test_truncation_moves_the_start_only_forward(self, store: SegmentStore, name: str) -> None:
        await store.append(name, writer("a"), b"0123456789")
        for offset in (5, 5, 3, 18, 1000):
            await store.truncate_segment(name, offset)
        info = await store.segment_info(name)
        assert (info.start_offset, info.length) == (18, 18)

    async def test_deleting_is_done_already_when_there_is_none(self, store: SegmentStore, name: str) -> None:
        for _ in range(2):
            await store.delete_segment(name)
        with pytest.raises(SegmentMissing):
            await store.segment_info(name)

    async def test_what_needs_a_segment_says_that_it_is_missing(self, store: SegmentStore, scope: str) -> None:
        name = segment_name(scope, "nothing", 0)
        for call in (
            store.seal_segment(name),
            store.truncate_segment(name, 0),
            store.update_policy(name, ScaleType.FIXED.code, 0),
            store.segment_info(name),
            store.read_segment(name, 0, 10),
            store.append(name, writer("a"), b"x"),
            store.append(name, writer("a"), b"x", expected_offset=0),
            store.attribute(name, writer("a")),
            store.update_attribute(name, writer("a"), 1, None),
            store.table_info(name),
            store.read_table(name, [b"k"]),
        ):
            with pytest.raises(SegmentMissing):
                await call

    async def test_events_are_read_back_with_their_headers(self, store: SegmentStore, name: str) -> None:
        assert await store.append(name, writer("a"), b"one") == 11
        assert await store.append(name, writer("a"), b"two two", event_number=2) == 26
        whole = frame_event(b"one") + frame_event(b"two two")
        assert (await store.read_segment(name, 0, 1000)).data == whole
        assert (await store.read_segment(name, 3, 4)).data == whole[3:7]
        tail = await store.read_segment(name, 26, 1000)
        assert (tail.data, tail.end_of_segment) == (b"", False)
        await store.truncate_segment(name, 11)
        with pytest.raises(SegmentTruncated) as caught:
            await store.read_segment(name, 0, 1000)
        assert getattr(caught.value.reply, "start_offset", None) == 11
        await store.seal_segment(name)
        assert (await store.read_segment(name, 11, 1000)).end_of_segment
        assert not (await store.read_segment(name, 11, 10)).end_of_segment
        assert (await store.read_segment(name, 26, 1000)).end_of_segment

    async def test_a_read_at_the_end_waits_until_there_is_more(self, store: SegmentStore, name: str) -> None:
        first = asyncio.create_task(store.read_or_wait(name, 0, 100, 60.0))
        await asyncio.wait([first], timeout=0.2)
        assert not first.done()
        await store.append(name, writer("a"), b"one")
        assert (await first).data == frame_event(b"one")
        assert (await store.read_or_wait(name, 3, 100, 60.0)).data == frame_event(b"one")[3:]
        with pytest.raises(TryLater):
            await store.read_or_wait(name, 11, 100, 0.1)
        last = asyncio.create_task(store.read_or_wait(name, 11, 100, 60.0))
        await asyncio.wait([last], timeout=0.2)
        assert not last.done()
        await store.seal_segment(name)
        assert (await last).end_of_segment
        assert (await store.read_or_wait(name, 11, 100, 60.0)).end_of_segment
        await store.truncate_segment(name, 11)
        with pytest.raises(SegmentTruncated):
            await store.read_or_wait(name, 0, 100, 60.0)

    async def test_an_event_is_appended_once(self, store: SegmentStore, name: str) -> None:
        for number, event in ((1, b"a"), (1, b"a"), (5, b"b"), (5, b"b"), (2, b"never")):
            await store.append(name, writer("a"), event, event_number=number)
        assert (await store.read_segment(name, 0, 100)).data == frame_event(b"a") + frame_event(b"b")

    async def test_events_that_go_together_are_appended_once(self, store: SegmentStore, name: str) -> None:
        for events, last in (([b"a", b"bb"], 2), ([b"a", b"bb"], 2), ([b"ccc"], 3), ([b"never", b"never"], 3)):
            await store.append_events(name, writer("a"), events, last)
        whole = frame_event(b"a") + frame_event(b"bb") + frame_event(b"ccc")
        assert (await store.read_segment(name, 0, 100)).data == whole
        await store.seal_segment(name)
        with pytest.raises(SegmentSealed):
            await store.append_events(name, writer("a"), [b"late"], 4)

    async def test_a_conditional_event_is_appended_once_and_only_at_its_offset(
        self, store: SegmentStore, name: str
    ) -> None:
        for _ in range(2):
            assert await store.append(name, writer("a"), b"mark", expected_offset=0) == 12
        with pytest.raises(LengthDiffers):
            await store.append(name, writer("b"), b"lost", expected_offset=0)
        assert await store.append(name, writer("b"), b"won", expected_offset=12) == 23
        assert (await store.read_segment(name, 0, 100)).data == frame_event(b"mark") + frame_event(b"won")

    async def test_many_writers_append_side_by_side(self, store: SegmentStore, name: str) -> None:
        calls = (store.append(name, writer(str(n)), b"%03d" % n) for n in range(50))
        lengths = await asyncio.gather(*calls)
        assert sorted(lengths) == [11 * (n + 1) for n in range(50)]

    async def test_an_attribute_is_compared_and_set(self, store: SegmentStore, name: str) -> None:
        mark = writer("mark")
        assert await store.attribute(name, mark) is None
        assert await store.update_attribute(name, mark, 5, None)
        assert not await store.update_attribute(name, mark, 6, None)
        assert not await store.update_attribute(name, mark, 6, 4)
        assert await store.update_attribute(name, mark, 6, 5)
        assert await store.attribute(name, mark) == 6

    async def test_the_time_of_creation_may_be_set_anew(self, store: SegmentStore, name: str) -> None:
        created = await store.attribute(name, CREATION_TIME_ATTRIBUTE)
        assert created is not None
        assert await store.update_attribute(name, CREATION_TIME_ATTRIBUTE, created + 60_000, created)
        assert await store.attribute(name, CREATION_TIME_ATTRIBUTE) == created + 60_000

    async def test_transactions_are_merged_in_order_and_merging_again_is_done_already(
        self, store: SegmentStore, scope: str, name: str
    ) -> None:
        sources = [transaction_segment_name(scope, "st", 0, 0, low) for low in range(3)]
        for number, source in enumerate(sources):
            await store.create_segment(source, ScaleType.FIXED.code, 0)
            if number != 1:
                await store.append(source, writer("t"), b"t%d" % number)
        lengths = await store.merge_batch(name, sources)
        assert lengths[0] >= 10
        assert lengths[2] == 20
        assert all(length == 20 for length in await store.merge_batch(name, sources))
        assert await content(store, name) == frame_event(b"t0") + frame_event(b"t2")
        for source in sources:
            with pytest.raises(SegmentMissing):
                await store.segment_info(source)

    async def test_sealed_transactions_are_merged_in_order_like_others(
        self, store: SegmentStore, scope: str, name: str
    ) -> None:
        sources = [transaction_segment_name(scope, "st", 0, 0, low) for low in range(3)]
        for number, source in enumerate(sources):
            await store.create_segment(source, ScaleType.FIXED.code, 0)
            await store.append(source, writer("t"), b"t%d" % number)
        await asyncio.gather(*(store.seal_segment(source) for source in sources[:2]))
        infos = [await store.segment_info(source) for source in sources]
        assert [(info.sealed, info.length) for info in infos] == [(True, 10), (True, 10), (False, 10)]
        await store.merge_batch(name, sources)
        whole = b"".join(frame_event(b"t%d" % number) for number in range(3))
        assert await content(store, name) == whole

    async def test_what_is_sealed_and_empty_may_be_deleted_and_merged_in_any_order(
        self, store: SegmentStore, scope: str, name: str
    ) -> None:
        """An attempt that is late merges what another one has skipped."""
        first, second, both = (transaction_segment_name(scope, "st", 0, 0, low) for low in range(3))
        for source in (first, second, both):
            await store.create_segment(source, ScaleType.FIXED.code, 0)
            await store.seal_segment(source)
            info = await store.segment_info(source)
            assert info.sealed and info.length == 0
        await store.delete_segment(first)
        await store.merge_batch(name, [first])
        await store.merge_batch(name, [second])
        await store.delete_segment(second)
        await asyncio.gather(store.merge_batch(name, [both]), store.delete_segment(both))
        assert await store.append(name, writer("a"), b"goes on") == 15

    async def test_a_merge_needs_an_open_target(self, store: SegmentStore, scope: str, name: str) -> None:
        source = transaction_segment_name(scope, "st", 0, 0, 1)
        await store.create_segment(source, ScaleType.FIXED.code, 0)
        await store.append(source, writer("t"), b"x")
        await store.seal_segment(name)
        with pytest.raises(SegmentSealed):
            await store.merge_batch(name, [source])
        with pytest.raises(SegmentMissing):
            await store.merge_batch(segment_name(scope, "st", segment_id(1, 0)), [source])

    async def test_a_large_event_is_stored_once_between_blocks_of_its_writer(
        self, store: SegmentStore, name: str
    ) -> None:
        large = bytes(MAX_EVENT_BYTES) + b"the end"
        await store.append_events(name, writer("a"), [b"before"], 1)
        for _ in range(2):
            await store.append_large_event(name, writer("a"), large, 2)
        await store.append_events(name, writer("a"), [b"after"], 3)
        await store.append_large_event(name, writer("new"), large, 1)
        length = (await store.segment_info(name)).length
        splitter, events = EventSplitter(0), list[bytes]()
        while splitter.offset < length:
            data = await store.read_segment(name, splitter.offset + splitter.pending_bytes, length)
            events += [event.data for found in splitter.feed(data.data) for event in found.events]
        assert events == [b"before", large, b"after", large]

    async def test_a_large_event_needs_an_open_segment(self, store: SegmentStore, name: str) -> None:
        await store.seal_segment(name)
        with pytest.raises(SegmentSealed):
            await store.append_large_event(name, writer("a"), b"large", 1)
        with pytest.raises(SegmentMissing):
            await store.append_large_event(f"{name}1", writer("a"), b"large", 1)

    async def test_a_table_keeps_keys_and_versions(self, store: SegmentStore, scope: str) -> None:
        name = kvt_segment_name(scope, "t", 0)
        for _ in range(2):
            await store.create_table_segment(name, 0)
        assert (await store.table_info(name)).entry_count == 0
        [first] = await store.update_table_entries(name, [TableEntry(TableKey(b"k", NOT_EXISTS), b"v")])
        with pytest.raises(KeyVersionDiffers):
            await store.update_table_entries(name, [TableEntry(TableKey(b"k", NOT_EXISTS), b"w")])
        with pytest.raises(KeyMissing):
            await store.update_table_entries(name, [TableEntry(TableKey(b"other", 17), b"w")])
        [second] = await store.update_table_entries(name, [TableEntry(TableKey(b"k", first), b"w")])
        assert second > first
        present, absent = await store.read_table(name, [b"k", b"other"])
        assert (present.key, present.value) == (TableKey(b"k", second), b"w")
        assert (absent.key, absent.value) == (TableKey(b"other", NOT_EXISTS), b"")
        assert (await store.table_info(name)).length > 0

    async def test_a_table_segment_for_longer_keys_is_refused_by_closing_the_connection(
        self, store: SegmentStore, scope: str
    ) -> None:
        for length in (MAX_KEY_LENGTH + 1, 8193):
            with pytest.raises(ConnectionClosed):
                await store.create_table_segment(kvt_segment_name(scope, "kv", 0), length)
        await store.create_table_segment(kvt_segment_name(scope, "kv", 0), MAX_KEY_LENGTH)

    async def test_a_table_is_deleted_and_deleting_again_is_done_already(self, store: SegmentStore, scope: str) -> None:
        name = kvt_segment_name(scope, "t", 0)
        await store.create_table_segment(name, 0)
        await store.update_table_entries(name, [TableEntry(TableKey(b"k"), b"v")])
        with pytest.raises(TableNotEmpty):
            await store.delete_table_segment(name, must_be_empty=True)
        with pytest.raises(KeyVersionDiffers):
            await store.remove_table_keys(name, [TableKey(b"k", 999)])
        await store.remove_table_keys(name, [TableKey(b"k", NO_VERSION)])
        await store.remove_table_keys(name, [TableKey(b"never there", 3)])
        for _ in range(2):
            await store.delete_table_segment(name, must_be_empty=True)
        with pytest.raises(SegmentMissing):
            await store.table_info(name)

    async def test_a_table_of_fixed_key_length_says_so(self, store: SegmentStore, scope: str) -> None:
        name = kvt_segment_name(scope, "fixed", 0)
        await store.create_table_segment(name, 4)
        await store.update_table_entries(name, [TableEntry(TableKey(b"abcd"), b"v")])
        info = await store.table_info(name)
        assert (info.key_length, info.length) == (4, 22)
        await store.delete_table_segment(name)

    async def test_entries_of_a_table_are_read_in_the_order_of_their_keys(
        self, store: SegmentStore, scope: str
    ) -> None:
        name, free = kvt_segment_name(scope, "fixed", 1), kvt_segment_name(scope, "free", 0)
        await store.create_table_segment(name, 2)
        assert await store.read_table_entries(name, 10) == []
        keys = [bytes((high, low)) for high in (0, 1, 0x7F, 0x80, 0xFF) for low in (0xFF, 0, 0x61)]
        await store.update_table_entries(name, [TableEntry(TableKey(key), b"v" + key) for key in keys])
        await store.remove_table_keys(name, [TableKey(keys[4])])
        kept = sorted(set(keys) - {keys[4]})
        found = await store.read_table_entries(name, 100)
        assert [(entry.key.key, entry.value) for entry in found] == [(key, b"v" + key) for key in kept]
        assert [entry.key.version for entry in found] == [
            entry.key.version for entry in await store.read_table(name, kept)
        ]
        later = await store.read_table_entries(name, 100, b"\x7f\x61")
        assert [entry.key.key for entry in later] == [key for key in kept if key >= b"\x7f\x61"]
        assert await store.read_table_entries(name, 1), "some at least, until there are no more"
        assert await store.read_table_entries(name, 10, b"\xff\xff") == [found[-1]]
        await store.create_table_segment(free, 0)
        with pytest.raises(IllegalRequest):
            await store.read_table_entries(free, 10, b"k")

    async def test_all_entries_of_a_table_are_read_page_by_page(self, store: SegmentStore, scope: str) -> None:
        name = kvt_segment_name(scope, "free", 1)
        await store.create_table_segment(name, 0)
        values = {f"key {number}".encode(): b"v" * number for number in range(20)}
        await store.update_table_entries(name, [TableEntry(TableKey(key), value) for key, value in values.items()])
        found: list[TableEntry] = []
        page = await store.read_table_page(name, 3)
        while page.entries:
            found += page.entries
            page = await store.read_table_page(name, 3, page.continuation)
        assert {entry.key.key: entry.value for entry in found} == values
        assert len(found) == len(values)
        with pytest.raises(SegmentMissing):
            await store.read_table_page(kvt_segment_name(scope, "missing", 0), 3)
