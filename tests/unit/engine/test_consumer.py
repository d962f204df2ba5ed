"""The consumer of requests: when it pauses, how it takes partitions over, and what it does once they are gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.counters import add
from support.engine_world import JOURNAL, REQUESTS, EngineWorld, engine_world, settle
from support.hand_source import HandConsumer

from sluice.engine.consumer import COMMIT_AFTER_S, RETRY_TAKE_OVER_S, Delivery, WrongPartitionError
from sluice.engine.flow_control import BEHIND_PER_OPEN
from sluice.engine.record import Source
from sluice.memory.broker import MemoryMessage

MAX_OPEN = 10
MAX_BEHIND = MAX_OPEN * BEHIND_PER_OPEN


def positions(made: HandConsumer) -> dict[int, int]:
    """By partition the first offset that is not acknowledged."""
    return {partition: offset for partition, (_, offset) in made.consumer.positions().items()}


@pytest.fixture
async def made(world: EngineWorld) -> AsyncIterator[HandConsumer]:
    made = HandConsumer(world, MAX_OPEN)
    yield made
    await made.consumer.stop()


async def test_requests_of_a_key_are_handled_in_order_and_those_of_others_beside(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "stuck", 0, 1)
    await made.take(0, "a", 2)
    assert made.begun == [0, 2] and made.handled == [2]
    made.go.set()
    await settle()
    assert made.handled == [2, 0, 1] and positions(made) == {0: 3} and made.consumer.is_idle


async def test_of_a_topic_that_is_not_keyed_one_partition_is_taken_over(world: EngineWorld) -> None:
    made = HandConsumer(world, is_keyed=False)
    await made.assign(0, 1)
    assert made.consumer.partitions == {0} and made.owned == [("owned", 0)]
    await made.consumer.stop()


async def test_a_delivery_says_where_its_request_stands(made: HandConsumer) -> None:
    await made.assign(1)
    await made.take(1, "a", 7, epoch=3)
    await made.take(1, "a", 8, is_control=True)
    first, control = made.deliveries
    assert first.origin is not None and first.origin.source == Source(f"{REQUESTS}@1", 3, 7)
    assert (first.partition, first.offset, first.key) == (1, 7, made.key("a", 1))
    assert control.origin is None, "a control command may be handled twice"


async def test_control_commands_pass_the_queue_of_their_key_by(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "stuck", 0, 1)
    made.go.clear()

    async def handle(delivery: Delivery) -> None:
        made.handled.append(delivery.offset)

    made.handler = handle
    await made.take(0, "stuck", 2, 3, is_control=True)
    assert made.handled == [2, 3]


async def test_kinds_that_wait_for_nothing_pass_the_queue_of_their_key_by_in_their_order(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "stuck", 0, 1)

    async def handle(delivery: Delivery) -> None:
        made.begun.append(delivery.offset)
        await made.go.wait()
        made.handled.append(delivery.offset)

    made.handler = handle
    await made.take(0, "stuck", 2, 3, kind="Report")
    assert made.begun == [0, 2], "one of each queue"
    assert made.deliveries[0].origin is not None
    made.go.set()
    await settle()
    assert sorted(made.handled) == [0, 1, 2, 3] and positions(made) == {0: 4}
    assert made.handled.index(2) < made.handled.index(3)


async def test_a_request_in_a_partition_that_is_not_its_keys_is_a_dead_letter(made: HandConsumer) -> None:
    await made.assign(0, 1)
    made.consumer.received([MemoryMessage(REQUESTS, 1, 5, made.key("a", 0), b"")])
    await settle()
    assert [type(error) for error in made.kept] == [WrongPartitionError]
    assert made.handled == [] and positions(made) == {1: 6}


async def test_a_request_in_another_partition_goes_on_when_its_keys_partition_is_revoked(made: HandConsumer) -> None:
    await made.assign(0, 1)
    await made.take(0, "stuck", 0)
    made.consumer.received([MemoryMessage(REQUESTS, 1, 5, made.key("stuck", 0), b"")])
    await made.revoke(0)
    assert [type(error) for error in made.kept] == [WrongPartitionError] and positions(made) == {1: 6}


async def test_what_stands_in_partitions_that_the_topic_was_given_since_is_a_dead_letter(
    made: HandConsumer, world: EngineWorld
) -> None:
    added = world.journal.partitions
    await made.assign(0, added)
    made.consumer.received([MemoryMessage(REQUESTS, added, 0, made.key("a", 0), b"")])
    await settle()
    assert [type(error) for error in made.kept] == [WrongPartitionError] and positions(made) == {added: 1}
    assert made.consumer.problem() is None and made.consumer.partitions == {0}
    await made.revoke(added)
    assert made.owned == [("owned", 0)], "no key has such a partition, so no one's work does"


async def test_a_request_that_cannot_be_handled_is_kept_and_its_key_goes_on(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "bad", 0, 1)
    assert [str(error) for error in made.kept] == ["cannot be handled"] * 2
    assert positions(made) == {0: 2} and made.consumer.failure is None


async def test_a_request_that_can_neither_be_handled_nor_kept_stays_and_shows(made: HandConsumer) -> None:
    made.keeps = False
    await made.assign(0)
    await made.take(0, "bad", 0, 1)
    await made.take(0, "a", 2)
    assert made.handled == [2] and positions(made) == {0: 0} and made.consumer.open_requests == 2
    assert made.consumer.is_idle and "cannot be kept" in repr(made.consumer.failure)
    await made.revoke(0)
    assert made.consumer.failure is None, "its next owner gets the request"


async def test_what_was_not_kept_of_an_earlier_assignment_does_not_show_in_the_next(made: HandConsumer) -> None:
    async def fail_late() -> None:
        await made.go.wait()
        raise ValueError("cannot be done")

    made.keeps, made.continuation = False, fail_late
    await made.assign(0)
    await made.take(0, "a", 0)
    await made.revoke(0)
    await made.assign(0)
    made.go.set()
    await settle()
    assert made.consumer.failure is None


async def test_a_request_is_acknowledged_when_its_continuation_has_ended(made: HandConsumer) -> None:
    async def go_on() -> None:
        await made.go.wait()

    made.continuation = go_on
    await made.assign(0)
    await made.take(0, "a", 0, 1)
    assert made.handled == [0, 1] and made.consumer.open_requests == 2
    made.go.set()
    await settle()
    assert made.consumer.open_requests == 0 and positions(made) == {0: 2}


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_continuation_may_fail_like_a_handler(made: HandConsumer, keeps: bool) -> None:
    async def fail() -> None:
        raise ValueError("cannot be done")

    made.keeps, made.continuation = keeps, fail
    await made.assign(0)
    await made.take(0, "a", 0)
    assert positions(made) == {0: 1 if keeps else 0}
    assert (made.consumer.failure is None) is keeps and len(made.kept) == int(keeps)


async def test_a_request_whose_partition_of_the_journal_has_stopped_stays_open(
    made: HandConsumer, world: EngineWorld
) -> None:
    async def go_on() -> None:
        await world.journal.propose(made.key("a", 0), add("counted"))

    made.continuation = go_on
    await made.assign(0)
    world.broker.land(JOURNAL, made.key("a", 0), b"no record")
    await settle()
    await made.take(0, "a", 0)
    assert made.kept == [] and positions(made) == {0: 0} and made.consumer.open_requests == 1


# Taking over.


async def test_requests_wait_until_their_partition_is_taken_over(made: HandConsumer) -> None:
    made.own.clear()
    await made.assign(0)
    await made.take(0, "a", 0, 1)
    assert made.begun == [] and not made.consumer.is_idle and made.consumer.open_requests == 2
    made.own.set()
    await settle()
    assert made.begun == [0, 1] and made.owned == [("owned", 0)]


async def test_a_partition_is_taken_over_behind_the_end_of_the_journal() -> None:
    async with engine_world(processes=2) as world:
        made = HandConsumer(world)
        world.first.log.freeze()
        key = world.key_at(0)
        await world.processes[1].journal.propose(key, add(key))
        await made.assign(0, 1)
        assert made.owned == [("owned", 1)], "its view has all there is"
        world.first.log.thaw()
        await settle()
        assert made.owned == [("owned", 1), ("owned", 0)]
        await made.consumer.stop()


async def test_a_take_over_is_tried_until_it_succeeds(made: HandConsumer) -> None:
    made.source.away = True
    await made.assign(0)
    await made.take(0, "a", 0)
    await asyncio.sleep(2.5 * RETRY_TAKE_OVER_S)
    assert made.owned == [] and made.begun == [] and made.consumer.failure is not None, "it shows"
    made.source.away = False
    await asyncio.sleep(RETRY_TAKE_OVER_S)
    assert made.owned == [("owned", 0)] and made.begun == [0] and made.consumer.failure is None


async def test_a_take_over_ends_with_its_assignment(made: HandConsumer) -> None:
    made.own.clear()
    await made.assign(0)
    await made.take(0, "a", 0)
    await made.revoke(0)
    made.own.set()
    await settle()
    assert made.owned == [("revoked", 0)] and made.begun == [], "there would be a second owner"
    await made.assign(0)
    await made.take(0, "a", 0)
    assert made.owned == [("revoked", 0), ("owned", 0)] and made.begun == [0]


async def test_a_take_over_whose_end_and_revocation_come_together_does_nothing(made: HandConsumer) -> None:
    made.own.clear()
    await made.assign(0)
    await made.take(0, "a", 0)
    made.own.set()
    made.consumer.revoked([0])
    made.consumer.assigned([0])
    await settle()
    assert made.owned == [("revoked", 0), ("owned", 0)] and made.begun == []


async def test_the_identity_of_the_topic_is_read_at_each_assignment(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "a", 0)
    await made.revoke(0)
    made.source.creation = 2
    await made.assign(0)
    await made.take(0, "a", 0)
    origins = [d.origin for d in made.deliveries]
    assert [o.source.topic for o in origins if o is not None] == [f"{REQUESTS}@1", f"{REQUESTS}@2"]


# Losing partitions.


async def test_what_runs_ends_with_its_partition_and_leaves_no_offsets_behind(made: HandConsumer) -> None:
    await made.assign(0, 1)
    await made.take(0, "stuck", 0, 1)
    await made.take(1, "stuck", 0)
    await made.revoke(0)
    assert positions(made) == {1: 0} and made.consumer.open_requests == 1
    assert made.consumer.partitions == {1}
    made.go.set()
    await settle()
    assert made.handled == [0] and positions(made) == {1: 1}
    await made.take(0, "a", 2)
    assert made.handled == [0], "what was on its way is another owner's"


async def test_an_acknowledgement_counts_for_the_assignment_that_delivered_the_request(made: HandConsumer) -> None:
    async def go_on() -> None:
        await made.go.wait()

    made.continuation = go_on
    await made.assign(0)
    await made.take(0, "a", 0, 1, 2)
    await made.revoke(0)
    await made.assign(0)
    made.continuation = None
    await made.take(0, "stuckb", 1, 2, 3)
    early, late = made.deliveries[1], made.deliveries[3]
    assert early.offset == late.offset == 1
    early.acknowledge()
    await settle()
    assert positions(made) == {0: 1} and made.consumer.open_requests == 3
    made.go.set()
    await settle()
    assert positions(made) == {0: 4} and made.consumer.open_requests == 0


async def test_offsets_that_run_backwards_begin_anew_with_the_topic_as_it_is(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "stuck", 5, 6, 7)
    made.source.creation = 2
    await made.take(0, "stuck", 2, 3, epoch=1)
    assert made.consumer.open_requests == 2 and made.owned == [("owned", 0), ("revoked", 0), ("owned", 0)]
    made.go.set()
    await settle()
    assert made.handled == [2, 3] and positions(made) == {0: 4}
    last = made.deliveries[-1].origin
    assert last is not None and last.source == Source(f"{REQUESTS}@2", 1, 3) and last.offsets.floor == (1, 4)


async def test_a_member_whom_the_group_lost_has_to_join_anew(made: HandConsumer) -> None:
    def membership() -> tuple[bool, set[int]]:
        return made.consumer.joined, made.consumer.partitions

    assert membership() == (False, set())
    await made.assign(0)
    assert membership() == (True, {0})
    made.consumer.lost([0])
    assert membership() == (False, set())
    await made.assign()
    assert membership() == (True, set()), "a member without partitions is a standby"


# Flow control.


async def test_a_stuck_request_holds_up_its_own_partition_at_most(made: HandConsumer) -> None:
    await made.assign(0, 1)
    await made.take(0, "stuck", 0)
    for offset in range(1, MAX_BEHIND):
        await made.take(0, "a", offset)
    assert made.consumer.open_requests == 1 and made.source.paused == frozenset()
    await made.take(0, "a", MAX_BEHIND)
    assert made.source.paused == {0}
    await made.take(1, "b", *range(1000, 1000 + MAX_OPEN))
    assert made.handled[-1] == 999 + MAX_OPEN, "the other partition goes on"
    made.go.set()
    await settle()
    assert made.source.paused == set() and positions(made)[0] == MAX_BEHIND + 1


async def test_open_requests_that_went_with_their_partition_make_room(made: HandConsumer) -> None:
    await made.assign(0, 1)
    await made.take(0, "stuck", *range(MAX_OPEN + 1))
    await made.revoke(0)
    assert made.source.paused == set() and made.consumer.open_requests == 0


# The end.


async def test_offsets_are_committed_a_moment_after_requests_are_acknowledged(made: HandConsumer) -> None:
    await made.assign(0)
    await asyncio.sleep(4.5 * COMMIT_AFTER_S)
    assert made.source.commits == 0, "there is nothing to commit"
    await made.take(0, "a", 0, 1)
    await asyncio.sleep(4.5 * COMMIT_AFTER_S)
    assert made.source.commits == 1


async def test_offsets_whose_commit_fails_are_committed_again(made: HandConsumer) -> None:
    await made.assign(0)
    made.source.uncommitted = True
    await made.take(0, "a", 0)
    await asyncio.sleep(3.5 * COMMIT_AFTER_S)
    assert made.source.commits == 3
    made.source.uncommitted = False
    await asyncio.sleep(4.5 * COMMIT_AFTER_S)
    assert made.source.commits == 4


async def test_after_the_stop_nothing_runs_even_of_what_came_on_the_way(made: HandConsumer) -> None:
    await made.assign(0)
    await made.take(0, "stuck", 0)
    made.source.at_stop = [made.message(0, "stuckb", 1)]
    await made.consumer.stop()
    made.go.set()
    await asyncio.sleep(10)
    assert made.source.is_stopped and made.handled == [] and made.consumer.is_idle
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if "consumer" in repr(task.get_coro())]


async def test_a_source_that_fails_is_a_failure_of_the_consumer(made: HandConsumer) -> None:
    assert made.consumer.failure is None
    made.source.failure = ValueError("its thread has ended")
    assert made.consumer.failure is made.source.failure
