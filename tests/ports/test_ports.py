"""What the engine counts on, of any log and any source of requests: one suite over all adapters."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest
from ports.conftest import PlayAll
from ports.worlds import DEADLINE_S, KEYS, MAX_BYTES, PARTITIONS, Member, Play, keys_of
from support.counters import Added, add
from support.wait import eventually_async

from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.journal import JournalUnavailableError
from sluice.engine.ports import Message, RequestSource
from sluice.engine.record import RequestPosition

KEY = KEYS[0]
NOTHING: Mapping[int, RequestPosition] = MappingProxyType({})


class Reads:
    """A source's listener that keeps where each message stands, by its value."""

    def __init__(self, committable: Mapping[int, RequestPosition]) -> None:
        self.committable = committable
        self.at: dict[bytes, tuple[int, int, int]] = {}

    def assigned(self, partitions: list[int]) -> None:
        pass

    def revoked(self, partitions: list[int]) -> None:
        pass

    def lost(self, partitions: list[int]) -> None:
        pass

    def received(self, batch: Sequence[Message]) -> None:
        for message in batch:
            self.at[message.value()] = message.partition(), message.offset(), message.leader_epoch()

    def positions(self) -> Mapping[int, RequestPosition]:
        return self.committable


async def read_all(
    play: Play, count: int, committable: Mapping[int, RequestPosition] = NOTHING
) -> dict[bytes, tuple[int, int, int]]:
    """So many requests, with partition, offset and leader epoch; what is `committable` is committed behind them."""
    reads, source = Reads(committable), play.world.source()
    source.start(reads)
    await eventually_async(lambda: len(reads.at) == count, DEADLINE_S, "all is read")
    await source.stop()
    return reads.at


def test_requests_of_a_key_are_decided_in_the_order_in_which_they_were_sent(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        member = await play.member()
        await play.send(KEYS, 20)
        await play.until_handled(member)
        assert all(member.total(key) == 20 for key in KEYS)
        assert {o.reply for o in member.outcomes if o.request.startswith(f"{KEY}/")} == {str(n) for n in range(20)}

    play(scenario)


def test_what_is_delivered_anew_after_a_lost_commit_is_a_duplicate(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        first = await play.member()
        await play.send(KEYS, 3)
        await play.until_decided(first)
        await play.leave(first)
        await play.world.lose_commits()
        second = await play.member()
        await eventually_async(lambda: len(second.outcomes) == play.sent, DEADLINE_S, "all is delivered anew")
        assert all(outcome.reply is None for outcome in second.outcomes)
        await play.send(KEYS)
        await play.until_decided(second)

    play(scenario)


def test_what_is_committed_is_not_delivered_to_the_next_member(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        first = await play.member()
        await play.send(KEYS, 3)
        await eventually_async(lambda: len(first.outcomes) == play.sent, DEADLINE_S, "all is handled")
        await eventually_async(lambda: first.consumer.open_requests == 0, DEADLINE_S, "all is acknowledged")
        await play.leave(first)
        second = await play.member()
        await play.send(KEYS)
        await play.until_handled(second)
        assert len(second.outcomes) == len(KEYS)

    play(scenario)


def test_through_rebalances_each_request_is_decided_once_and_in_order(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        observer = await play.member(joins=False)
        first = await play.member()
        await play.send(KEYS, 10)
        second = await play.member()
        await eventually_async(lambda: second.consumer.joined, DEADLINE_S, "the second is a member")
        await play.send(KEYS, 10)
        owned = first.consumer.partitions, second.consumer.partitions
        await eventually_async(lambda: len(owned[0] | owned[1]) == PARTITIONS, DEADLINE_S, "all have an owner")
        await play.leave(first)
        await play.send(KEYS, 10)
        await eventually_async(lambda: len(second.consumer.partitions) == PARTITIONS, DEADLINE_S, "it has all")
        await play.until_decided(observer)

    play(scenario)


def test_a_member_with_too_much_open_is_paused_and_goes_on(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        member = await play.member(max_open=5)
        member.go.clear()
        await play.send(KEYS)
        await eventually_async(lambda: member.consumer.open_requests > 5, DEADLINE_S, "too much is open")

        async def no_more_is_taken() -> bool:
            """What was on its way when it was paused is taken still, so this may hold only for a later round."""
            open_before = member.consumer.open_requests
            await play.send(KEYS)
            for _ in range(100):
                await member.journal.propose(KEY, add("meanwhile"))
            return member.consumer.open_requests == open_before

        await eventually_async(no_more_is_taken, DEADLINE_S, "no more is taken")
        member.go.set()
        await play.until_decided(member)

    play(scenario)


def test_through_an_outage_each_request_is_decided_once_and_in_order(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        observer, member = await play.member(joins=False), await play.member()
        await play.send(KEYS, 3)
        await play.until_decided(observer)
        async with play.world.outage():
            decided = asyncio.ensure_future(member.journal.propose(KEY, add(KEY)))
            with pytest.raises(JournalUnavailableError):
                await member.journal.barrier(range(PARTITIONS))
            assert not decided.done()
        await asyncio.wait_for(decided, DEADLINE_S)
        await play.send(KEYS, 3)
        await play.until_decided(observer)
        await observer.journal.barrier(range(PARTITIONS))
        # Of a proposal without origin only one thing is certain: once it is decided, it counts.
        assert observer.total(KEY) >= 7 and all(observer.total(key) == 6 for key in KEYS[1:])

    play(scenario)


def test_a_record_that_is_too_large_fails_alone(play: PlayAll) -> None:
    def long(reader: Reader, _context: Context) -> Decision:
        reader.get("long")
        # Packed it is no smaller.
        return Decision((Added("long"),), "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(MAX_BYTES)))

    async def scenario(play: Play) -> None:
        member = await play.member(joins=False)
        before = member.journal.propose(KEY, add(KEY))
        failing = member.journal.propose(KEY, long)
        behind = [member.journal.propose(KEY, add(f"{n}")) for n in range(5)]
        with pytest.raises(JournalUnavailableError):
            await asyncio.wait_for(failing, DEADLINE_S)
        await asyncio.wait_for(asyncio.gather(before, *behind), DEADLINE_S)
        await asyncio.wait_for(member.journal.propose(KEY, add(KEY)), DEADLINE_S)
        assert member.total(KEY) == 2

    play(scenario)


def test_a_read_behind_the_barrier_sees_what_was_acknowledged_before(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        writer, reader = await play.member(joins=False), await play.member(joins=False)
        for number in range(1, 30):
            key = KEYS[number % len(KEYS)]
            await writer.journal.propose(key, add(key))
            await reader.journal.barrier([reader.journal.partition_of(key)])
            assert reader.total(key) == writer.total(key)

    play(scenario)


def test_the_ends_are_where_the_next_records_will_stand(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        member = await play.member(joins=False)
        assert await member.journal.ends() == dict.fromkeys(range(PARTITIONS), 0)
        for partition in range(PARTITIONS):
            (key,) = keys_of(partition, 1)
            for _ in range(partition):
                await member.journal.propose(key, add(key))
        assert await member.journal.ends() == {p: p for p in range(PARTITIONS)}

    play(scenario)


def test_one_who_comes_later_loads_all_there_is(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        first = await play.member(joins=False)
        for key in KEYS:
            await first.journal.propose(key, add(key))
        second = await play.member(joins=False)
        assert [second.total(key) for key in KEYS] == [1] * len(KEYS)

    play(scenario)


def test_a_topic_that_is_made_anew_has_another_identity(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        async def identity(source: RequestSource, *, but: str = "") -> str:
            """A broker shows what is created, and no longer what is deleted, a moment later."""

            async def shown() -> str:
                found = await source.identity()
                return found if found != but else ""

            return await eventually_async(shown, DEADLINE_S, "the topic is known")

        first, other = play.world.source(), play.world.source()
        before = await identity(first)
        assert before.startswith(f"{play.world.topic}@") and await identity(other) == before
        await play.world.recreate()
        after = await identity(first, but=before)
        assert after.startswith(f"{play.world.topic}@") and await identity(other) == after

    play(scenario)


def test_requests_of_a_topic_made_anew_are_new(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        first = await play.member()
        await play.send(KEYS, 2)
        await play.until_decided(first)
        await play.leave(first)
        await play.world.recreate()
        second = await play.member()
        await play.send(KEYS, 2)
        await play.until_decided(second)

    play(scenario)


def test_the_leader_epoch_of_a_request_stays_and_grows_with_each_leader(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        await play.send(KEYS)
        first = await read_all(play, play.sent)
        assert all(isinstance(epoch, int) and epoch >= 0 for _, _, epoch in first.values())
        assert await read_all(play, play.sent) == first
        await play.world.change_leader()
        await play.send(KEYS)
        second = await read_all(play, play.sent)
        assert {value: second[value] for value in first} == first
        before = {partition: epoch for partition, _, epoch in first.values()}
        assert all(e > before[p] for value, (p, _, e) in second.items() if value not in first)

    play(scenario)


def test_a_position_in_an_end_that_was_lost_is_not_where_the_next_owner_begins(play: PlayAll) -> None:
    """To the brokers it is the same whether the owner has read what was lost, or says so."""

    async def scenario(play: Play) -> None:
        await play.send(KEYS, 2)
        first = await read_all(play, play.sent)
        await play.world.change_leader()
        await play.send(KEYS, 2)
        behind = {p: (epoch, 9) for p, offset, epoch in first.values() if offset == 5}
        assert len(behind) == PARTITIONS
        all_there_is = await read_all(play, play.sent, behind)
        found = await read_all(play, play.sent - len(first))
        assert found == {request: at for request, at in all_there_is.items() if request not in first}

    play(scenario)


def test_a_member_goes_on_under_another_leader(play: PlayAll) -> None:
    async def scenario(play: Play) -> None:
        member: Member = await play.member()
        await play.send(KEYS, 2)
        await play.until_decided(member)
        await play.world.change_leader()
        await play.send(KEYS, 2)
        await play.until_decided(member)

    play(scenario)
