"""What snapshots count on, of any store and any log: lists that are trimmed at their begin, and read from anywhere."""

import asyncio
from collections.abc import Sequence

from ports.conftest import PlayAll
from ports.worlds import DEADLINE_S, PARTITIONS, Play, keys_of
from support.counters import CounterModel, add
from support.wait import eventually_async

from sluice.engine.journal import Journal
from sluice.engine.ports import Chance, Clock, Log, Message, RecordFacts, SystemChance, SystemClock
from sluice.engine.snapshotting import Snapshotter

FACTS = RecordFacts("Test", "1", "test/0", 0)
(KEY,) = keys_of(1, 1)


class Follower:
    """Follows a log; `offsets` are those of the records that it was given, by partition."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.offsets: dict[int, list[int]] = {}

    def follow(self, begin: dict[int, int]) -> None:
        self.offsets = {partition: [] for partition in begin}
        offsets = self.offsets

        def take(batch: Sequence[Message]) -> None:
            for message in batch:
                if message.error() is None:
                    offsets[message.partition()].append(message.offset())

        self.log.start(take, begin)

    async def until(self, expected: dict[int, list[int]]) -> None:
        await eventually_async(lambda: self.offsets == expected, DEADLINE_S, f"{expected}")


async def fill(play: Play, records: int) -> None:
    """So many records in partition 1 of the journal."""
    member = await play.member(joins=False)
    for _ in range(records):
        await asyncio.wait_for(member.journal.propose(KEY, add(KEY)), DEADLINE_S)


def test_what_is_stored_comes_back_in_order(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        store = play.world.snapshots()
        assert await store.notes(range(PARTITIONS)) == {p: [] for p in range(PARTITIONS)}
        offsets = [await store.append_chunk(1, f"c{n}".encode(), FACTS) for n in range(5)]
        assert offsets == sorted(offsets)
        for n in range(3):
            await store.append_note(1, f"n{n}".encode(), FACTS)
        await store.append_note(2, b"other", FACTS)
        found = await play.world.snapshots().notes([1, 2])
        assert [value for _, value in found[1]] == [b"n0", b"n1", b"n2"] and [v for _, v in found[2]] == [b"other"]
        assert await store.chunks(1, offsets[1], offsets[3]) == [b"c1", b"c2", b"c3"]

    play(scenario)


def test_what_is_trimmed_of_the_store_is_gone(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        store = play.world.snapshots()
        offsets = [await store.append_chunk(1, f"c{n}".encode(), FACTS) for n in range(5)]
        for n in range(3):
            await store.append_note(1, f"n{n}".encode(), FACTS)
        notes = (await store.notes([1]))[1]
        await store.trim(1, notes[2][0], offsets[2])
        assert await store.notes([1]) == {1: notes[2:]}
        assert await store.chunks(1, offsets[0], offsets[3]) == [b"c2", b"c3"]
        assert await store.chunks(1, offsets[0], offsets[1]) == []

    play(scenario)


def test_a_log_is_followed_from_any_offset_and_anew_from_another(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        await fill(play, 6)
        follower = Follower(play.world.log())
        follower.follow({1: 4})
        await follower.until({1: [4, 5]})
        follower.follow({0: 0, 1: 2})
        await follower.until({0: [], 1: [2, 3, 4, 5]})
        await follower.log.stop()

    play(scenario)


def test_a_trimmed_log_is_followed_from_what_is_left(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        await fill(play, 6)
        follower = Follower(play.world.log())
        assert await follower.log.trim({1: 4}, SystemClock().now_ms() + 3_600_000) == {1: 4}
        follower.follow({1: 1})
        await follower.until({1: [4, 5]})
        assert (await follower.log.ends())[1] == 6
        await follower.log.stop()

    play(scenario)


def test_what_is_too_young_is_not_trimmed(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        await fill(play, 3)
        follower = Follower(play.world.log())
        follower.follow({1: 0})
        await follower.until({1: [0, 1, 2]})
        assert await follower.log.trim({1: 2}, 0) == {1: 0}
        await follower.log.stop()

    play(scenario)


def test_a_journal_is_loaded_from_its_snapshot_behind_what_was_trimmed(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        clock: Clock = SystemClock()
        chance: Chance = SystemChance()
        member = await play.member(joins=False)
        for _ in range(5):
            await asyncio.wait_for(member.journal.propose(KEY, add(KEY)), DEADLINE_S)
        offset = await asyncio.wait_for(member.journal.append_marker(1), DEADLINE_S)
        for by in ("helper/0", "helper/1"):
            log = play.world.log()
            snapshotter = Snapshotter(log, play.world.snapshots(), CounterModel(), by, clock, chance)
            made = await snapshotter.run(1, offset)
            assert (made.manifest is not None) is (by == "helper/0")
            await log.stop()
        await asyncio.wait_for(member.journal.propose(KEY, add(KEY)), DEADLINE_S)
        assert (await member.journal.trim({1: offset}, clock.now_ms() + 3_600_000)) == {1: offset}
        late = Journal(play.world.log(), CounterModel(), "test/late", snapshots=play.world.snapshots())
        late.start()
        await asyncio.wait_for(late.loaded.wait(), DEADLINE_S)
        assert [list(view.capture()) for view in late.views()] == [
            list(view.capture()) for view in member.journal.views()
        ]
        assert late.failure is None and late.reader(KEY).version(KEY) == 6
        await late.stop()

    play(scenario)
