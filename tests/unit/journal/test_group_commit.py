"""Many requests in one record: which come together, in which order, and what happens when the record does not count."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support import virtual_time
from support.memory_journal import JournalWorld, settle

from sluice.domain import events as ev
from sluice.domain.commands import AbortReason, AbortTransaction, CommitTransaction, PingTransaction
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.names import transaction_aggregate
from sluice.domain.transaction import decide
from sluice.domain.transaction.decide import Limits
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import Transaction, TransactionState, find_transaction
from sluice.journal import group_commit
from sluice.journal.group_commit import RETRY_S, GroupCommit
from sluice.journal.journal import JournalError

SCOPE, STREAM, KEY = "sc", "st", "sc/st"
LIMITS = Limits(open=100, waiting_commits=100)
IDS = [transaction_id(0, f"r{i}") for i in range(10)]

Scenario = Callable[["Group"], Coroutine[Any, Any, None]]


class Group:
    """A group over a journal that has ten open transactions."""

    def __init__(self, world: JournalWorld, most: int = 256) -> None:
        self.world = world
        self.group = GroupCommit(world.first.journal, most)
        for id in IDS:
            opened = ev.TransactionOpened(scope=SCOPE, stream=STREAM, transaction=id, lease_ms=10_000, at=1000)
            world.seed(KEY, opened)
        self.seeded = len(world.records(KEY))

    def records(self) -> list[list[str]]:
        """Of each record the requests that it answers."""
        return [list(record.answers) for record in self.world.records(KEY)[self.seeded :]]

    def transaction(self, number: int) -> Transaction:
        found = find_transaction(self.world.view(KEY), SCOPE, STREAM, IDS[number])
        assert isinstance(found, Transaction)
        return found

    def ping(self, number: int, request: str) -> asyncio.Future[Decision]:
        command = PingTransaction(scope=SCOPE, stream=STREAM, transaction=IDS[number], lease_ms=20_000)
        return self.group.submit(KEY, request, 0, lambda r, c: decide.decide_ping(r, command, c))

    def commit(self, number: int, request: str) -> asyncio.Future[Decision]:
        command = CommitTransaction(scope=SCOPE, stream=STREAM, transaction=IDS[number])
        return self.group.submit(KEY, request, 0, lambda r, c: decide.decide_commit(r, command, c, LIMITS))

    def commit_as(self, number: int, request: str, writer: str) -> asyncio.Future[Decision]:
        """Begins no batch, so that such commits can come together."""
        id = IDS[number]
        committing = ev.TransactionCommitting(scope=SCOPE, stream=STREAM, transaction=id, at=1, writer=writer)
        return self.group.submit(KEY, request, 0, lambda _r, _c: Decision((committing,), Reply("SUCCESS")))

    def abort(self, number: int, request: str, version: int | None = None) -> asyncio.Future[Decision]:
        command = AbortTransaction(
            scope=SCOPE, stream=STREAM, transaction=IDS[number], reason=AbortReason.LEASE, version=version
        )
        return self.group.submit(KEY, request, 0, lambda r, c: decide.decide_abort(r, command, c))


def run(scenario: Scenario, most: int = 256, instances: int = 1) -> None:
    async def scene() -> None:
        await scenario(Group(JournalWorld(instances), most))

    virtual_time.run(scene())


def test_a_single_request_has_a_record_of_its_own_and_its_answer_is_told() -> None:
    async def scenario(group: Group) -> None:
        told = group.world.first.journal.expect_reply("a", [KEY])
        decision = await group.ping(0, "a")
        assert decision.reply == await told == Reply("OK")
        assert group.records() == [["a"]]
        assert group.group.waiting == 0

    run(scenario)


def test_requests_that_come_while_a_record_is_on_its_way_share_the_next_one_in_their_order() -> None:
    async def scenario(group: Group) -> None:
        first = group.ping(0, "a")
        await asyncio.sleep(0)
        others = [group.ping(number, f"b{number}") for number in range(1, 6)]
        assert group.group.waiting == 5
        await asyncio.gather(first, *others)
        assert group.records() == [["a"], ["b1", "b2", "b3", "b4", "b5"]]
        pinged = [event.aggregate for event in group.world.records(KEY)[-1].events]
        assert pinged == [transaction_aggregate(SCOPE, STREAM, IDS[number]) for number in range(1, 6)]

    run(scenario)


def test_a_record_holds_no_more_than_the_most() -> None:
    async def scenario(group: Group) -> None:
        await asyncio.gather(*(group.ping(number, f"{number}") for number in range(5)))
        assert group.records() == [["0", "1"], ["2", "3"], ["4"]]

    run(scenario, most=2)


def test_answers_are_told_but_not_remembered() -> None:
    async def scenario(group: Group) -> None:
        await group.ping(0, "a")
        assert group.world.view(KEY).answer("a") is None
        assert (await group.ping(0, "a")).events, "the same request again is decided again"

    run(scenario)


def test_a_request_that_reads_what_one_before_it_changes_waits_for_the_next_record() -> None:
    async def scenario(group: Group) -> None:
        decided = await asyncio.gather(
            group.ping(0, "a"), group.ping(1, "b"), group.abort(0, "c"), group.ping(2, "d"), group.commit(0, "e")
        )
        assert group.records() == [["a", "b"], ["c", "d"], ["e"]]
        assert [d.reply.status for d in decided if d.reply] == ["OK", "OK", "SUCCESS", "OK", "FAILURE"]
        assert group.transaction(0).state is TransactionState.ABORTING

    run(scenario)


def test_refusals_ride_with_the_others() -> None:
    async def scenario(group: Group) -> None:
        command = PingTransaction(scope=SCOPE, stream=STREAM, transaction=transaction_id(0, "none"), lease_ms=1)
        unknown = group.group.submit(KEY, "x", 0, lambda r, c: decide.decide_ping(r, command, c))
        await asyncio.gather(unknown, group.ping(1, "a"))
        assert group.records() == [["x", "a"]]

    run(scenario)


def test_what_needs_no_record_makes_none() -> None:
    async def scenario(group: Group) -> None:
        assert await group.abort(0, "a", version=99) == Decision()
        assert group.world.attempts == 0

    run(scenario)


def test_a_record_that_does_not_count_is_decided_again_on_the_newer_state() -> None:
    async def scenario(group: Group) -> None:
        world = group.world
        version = world.view(KEY).version(transaction_aggregate(SCOPE, STREAM, IDS[0]))

        def another_is_faster() -> None:
            pinged = ev.TransactionPinged(scope=SCOPE, stream=STREAM, transaction=IDS[0], lease_ms=30_000, at=2000)
            world.seed(KEY, pinged)

        world.before_append.append(another_is_faster)
        aborted, pinged = await asyncio.gather(group.abort(0, "a", version), group.ping(1, "b"))
        assert aborted == Decision(), "something was heard of it meanwhile"
        assert pinged.reply == Reply("OK")
        assert group.transaction(0).state is TransactionState.OPEN
        assert group.records() == [[], ["a", "b"], ["b"]], "the other's, the void one, and the one that counts"
        assert group.transaction(1).lease_ms == 20_000

    run(scenario)


def test_two_instances_that_decide_at_once_lose_nothing() -> None:
    async def scenario(group: Group) -> None:
        other = GroupCommit(group.world.instances[1].journal)
        command = CommitTransaction(scope=SCOPE, stream=STREAM, transaction=IDS[0])
        theirs = other.submit(KEY, "theirs", 0, lambda r, c: decide.decide_commit(r, command, c, LIMITS))
        mine = group.abort(0, "mine")
        decided = await asyncio.gather(theirs, mine)
        statuses = sorted(d.reply.status for d in decided if d.reply)
        assert statuses == ["FAILURE", "SUCCESS"]

    run(scenario, instances=2)


def test_what_one_decision_raises_only_its_caller_learns() -> None:
    async def scenario(group: Group) -> None:
        def broken(_reader: Reader, _context: Context) -> Decision:
            raise ZeroDivisionError("a defect")

        before, failing, after = (
            group.ping(0, "a"),
            group.group.submit(KEY, "b", 0, broken),
            group.ping(1, "c"),
        )
        assert (await before).reply == (await after).reply == Reply("OK")
        with pytest.raises(ZeroDivisionError, match="a defect"):
            await failing
        assert group.records() == [["a", "c"]]

    run(scenario)


def test_while_the_journal_is_away_requests_wait_and_keep_their_order() -> None:
    async def scenario(group: Group) -> None:
        group.world.refusals = 3
        waiting = [group.ping(number, f"{number}") for number in range(3)]
        await settle()
        assert group.world.attempts == 1 and not any(w.done() for w in waiting)
        waiting.append(group.ping(3, "later"))
        await asyncio.gather(*waiting)
        assert group.records() == [["0", "1", "2", "later"]]
        assert asyncio.get_running_loop().time() == pytest.approx(3 * RETRY_S)

    run(scenario)


def test_a_record_whose_acknowledgement_was_lost_is_decided_again() -> None:
    async def scenario(group: Group) -> None:
        group.world.losses = 1
        pinged = group.ping(0, "a")
        await settle()
        assert len(group.records()) == 1 and not pinged.done()
        # The journal gives up after a while; by then the instance has learned of its own record.
        asyncio.get_running_loop().call_later(5, group.world.first.thaw)
        command = AbortTransaction(scope=SCOPE, stream=STREAM, transaction=IDS[1])
        abort = group.group.submit(KEY, "b", 0, lambda r, c: decide.decide_abort(r, command, c))
        assert (await pinged).reply == Reply("OK")
        assert (await abort).reply == Reply("SUCCESS")

    run(scenario)


def test_a_record_that_cannot_be_told_from_a_lost_one_ends_in_the_same_state() -> None:
    async def scenario(group: Group) -> None:
        group.world.losses = 1
        committed = group.commit(0, "a")
        await asyncio.sleep(11)
        group.world.first.thaw()
        assert (await committed).reply == Reply("SUCCESS")
        assert group.transaction(0).state is TransactionState.COMMITTING
        assert list(transactions_of(group.world.view(KEY), SCOPE, STREAM).committing) == [IDS[0]]

    run(scenario)


def test_requests_that_are_too_much_for_one_record_come_in_several() -> None:
    async def scenario(group: Group) -> None:
        group.world.most_bytes = 3000
        decided = await asyncio.gather(*(group.commit_as(number, f"{number}", "w" * 1000) for number in range(7)))
        assert all(d.reply == Reply("SUCCESS") for d in decided)
        assert [request for requests in group.records() for request in requests] == [f"{n}" for n in range(7)]

    run(scenario)


def test_a_request_that_no_record_can_hold_fails_alone() -> None:
    async def scenario(group: Group) -> None:
        group.world.most_bytes = 3000
        before, failing = group.ping(0, "a"), group.commit_as(1, "b", "w" * 4000)
        after = [group.ping(number, f"c{number}") for number in range(2, 6)]
        with pytest.raises(JournalError, match="bytes"):
            await failing
        for decided in (before, *after):
            assert (await decided).reply == Reply("OK")
        assert group.transaction(1).state is TransactionState.OPEN

    run(scenario)


def test_a_request_whose_events_no_record_can_say_fails_alone() -> None:
    async def scenario(group: Group) -> None:
        before, failing = group.ping(0, "a"), group.commit_as(1, "b", "\ud800")
        after = [group.ping(number, f"c{number}") for number in range(2, 6)]
        with pytest.raises(UnicodeEncodeError):
            await failing
        for decided in (before, *after):
            assert (await decided).reply == Reply("OK")
        assert group.transaction(1).state is TransactionState.OPEN
        assert (await group.ping(1, "d")).reply == Reply("OK"), "the partition goes on"

    run(scenario)


def test_everything_before_is_done_when_all_that_came_before_is_decided() -> None:
    async def scenario(group: Group) -> None:
        group.world.refusals = 2
        pinged = [group.ping(number, f"{number}") for number in range(3)]
        passed = group.group.everything_before(KEY)
        later = group.ping(5, "later")
        await passed
        assert all(p.done() for p in pinged)
        await later
        assert group.world.first.journal.reader(KEY).next_offset == group.seeded + 1, "it takes no record of its own"

    run(scenario)


def test_everything_before_waits_for_what_is_in_a_later_record() -> None:
    async def scenario(group: Group) -> None:
        first, second = group.ping(0, "a"), group.ping(0, "b")
        await group.group.everything_before(KEY)
        assert first.done() and second.done()
        assert group.records() == [["a"], ["b"]]

    run(scenario)


def test_everything_before_nothing_is_done_at_once() -> None:
    async def scenario(group: Group) -> None:
        assert await group.group.everything_before(KEY) == Decision()
        assert group.world.attempts == 0

    run(scenario)


def test_partitions_do_not_wait_for_each_other() -> None:
    async def scenario(group: Group) -> None:
        journal = group.world.first.journal
        other = next(
            k for k in (f"sc/other{i}" for i in range(99)) if journal.partition_of(k) != journal.partition_of(KEY)
        )
        group.world.losses = 1
        stuck = group.ping(0, "a")
        await settle()
        stream = other.partition("/")[2]
        command = PingTransaction(scope=SCOPE, stream=stream, transaction=IDS[0], lease_ms=1)
        decision = await group.group.submit(other, "b", 0, lambda r, c: decide.decide_ping(r, command, c))
        assert decision.reply == Reply("UNKNOWN", "no such transaction")
        assert not stuck.done()
        await group.group.stop()

    run(scenario)


def test_a_caller_that_goes_away_holds_up_nobody() -> None:
    async def scenario(group: Group) -> None:
        gone, stays = group.ping(0, "a"), group.ping(1, "b")
        gone.cancel()
        assert (await stays).reply == Reply("OK")
        assert group.records() == [["a", "b"]]

    run(scenario)


def test_what_is_decided_is_never_before_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "now_ms", lambda: 5000)

    async def scenario(group: Group) -> None:
        seen: list[Context] = []

        def decided(_reader: Reader, context: Context) -> Decision:
            seen.append(context)
            return Decision()

        for asked_at in (4000, 7000):
            await group.group.submit(KEY, "a", asked_at, decided)
        assert seen == [Context(5000, "a", 4000), Context(7000, "a", 7000)]

    run(scenario)


def test_after_it_was_stopped_nothing_more_is_appended() -> None:
    async def scenario(group: Group) -> None:
        group.world.refusals = 1000
        waiting = group.ping(0, "a")
        await settle()
        await group.group.stop()
        attempts = group.world.attempts
        await asyncio.sleep(10)
        assert group.world.attempts == attempts and not waiting.done()

    run(scenario)


def test_a_request_is_never_lost_without_a_word() -> None:
    async def scenario(group: Group) -> None:
        group.world.refusals = 10**9
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await group.ping(0, "a")
        group.world.refusals = 0
        assert (await group.ping(1, "b")).reply == Reply("OK")

    run(scenario)
