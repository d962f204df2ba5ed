"""Leases that run out: what a timer asks, how the question is judged, when it becomes an abort."""

import asyncio
import math
from random import Random
from typing import Any, cast

import pytest
from support.memory_world import ManualClock, MemoryWorld, settle, until

from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, CheckLease, PingTransaction
from sluice.domain.transaction.events import (
    TransactionAborting,
    TransactionCommitting,
    TransactionOpened,
    TransactionPinged,
    TransactionReady,
)
from sluice.domain.transaction.state import LONGEST_CREATION_MS
from sluice.domain.transaction_ids import transaction_id
from sluice.engine.ports import SendError
from sluice.kafka.topics import ABORT, COMMIT, JOURNAL, REQUESTS_TRANSACTIONS
from txn_manager.leases import CHECK_AGAIN_MS, GRACE_SHARE, MAX_ANEW_MS, Leases
from txn_manager.outage_tracker import SILENCE_MS, OutageTracker
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings
from txn_manager.wheel.memory_redis import MemoryRedis, MemoryRedisAccess

STREAM = StreamId("sc", "st")
KEY = STREAM.key
ID = transaction_id(0, "a")
TIMER = STREAM.transaction(ID).aggregate
LEASE_MS, GRACE_MS = 10_000, 2_000
OPENED = 1_000_000
DUE = OPENED + LEASE_MS + GRACE_MS + LEASE_MS // GRACE_SHARE
QUESTION = CheckLease(*STREAM, ID)


class FakeTimers:
    """What the timers were notified of: leases with what is left of them, and ends."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.owned: list[int] = []
        self.disowned: list[int] = []
        self.notified: list[tuple[str, int | None]] = []

    def own(self, partition: int) -> None:
        self.owned.append(partition)

    def disown(self, partition: int) -> None:
        self.disowned.append(partition)

    def lease(self, _partition: int, timer: str, due_ms: int) -> None:
        self.notified.append((timer, due_ms - self.clock.now))

    def end(self, _partition: int, timer: str) -> None:
        self.notified.append((timer, None))


class Scene:
    """One instance that looks after the leases of all partitions; `clock` is its own."""

    def __init__(self) -> None:
        self.world = MemoryWorld("txn-manager")
        self.clock = ManualClock(OPENED)
        self.process = self.world.process(self.clock)
        self.outages = OutageTracker()
        self.leases = Leases(self.process.runtime, cast(Any, None), self.outages, "test", 0.5, GRACE_MS)
        self.timers = FakeTimers(self.clock)
        self.leases.timers = cast(Any, self.timers)
        self._seen = 0

    @property
    def partition(self) -> int:
        return self.process.journal.partition_of(KEY)

    def own(self) -> None:
        self.leases.own(self.partition)

    async def seed(self, *events: Event) -> None:
        await self.world.seed(KEY, *events)

    async def open(self, ready: bool = True) -> None:
        await self.seed(TransactionOpened(*STREAM, ID, lease_ms=LEASE_MS, at=OPENED, dies_at=10**15))
        if ready:
            await self.seed(TransactionReady(*STREAM, ID, at=OPENED))

    async def ping(self, at: int, lease_ms: int = LEASE_MS) -> None:
        await self.seed(TransactionPinged(*STREAM, ID, lease_ms=lease_ms, at=at))

    async def end(self, event: type[Any], **more: Any) -> None:
        await self.seed(event(*STREAM, ID, at=self.clock.now, **more))

    async def lose_check(self) -> None:
        """The lease is due, and Kafka does not take the check of it."""
        self.clock.now = DUE
        self.world.refuse(REQUESTS_TRANSACTIONS, 1)
        with pytest.raises(SendError):
            await self.fire()

    async def fire(self) -> dict[str, int | None]:
        """The timer is due. When it is looked at next, in ms from now."""
        looks = await self.leases.submit_checks(self.partition, [TIMER])
        return {timer: None if look is None else look - self.clock.now for timer, look in looks.items()}

    def open_leases(self) -> dict[str, int]:
        """All timers, in ms from now."""
        return {t: due - self.clock.now for t, due in self.leases.open_leases(self.partition).items()}

    def sent(self) -> list[tuple[str, Any]]:
        """What was sent since the last call."""
        topics = (REQUESTS_TRANSACTIONS, COMMIT, ABORT)
        sent = [(topic.name, request.command) for topic in topics for request in self.world.requests(topic)]
        new, self._seen = sent[self._seen :], len(sent)
        return new

    def notified(self) -> list[tuple[str, int | None]]:
        """What the timers were notified of since this was last called."""
        notified, self.timers.notified = self.timers.notified, []
        return notified


@pytest.fixture
async def scene(virtual_time: None) -> Scene:
    return Scene()


# Timers follow the journal.


async def test_timers_follow_what_becomes_of_leases(scene: Scene) -> None:
    scene.own()
    await scene.open(ready=False)
    assert scene.notified() == [(TIMER, DUE - OPENED + LONGEST_CREATION_MS)]
    scene.clock.now += 500
    await scene.end(TransactionReady)
    assert scene.notified() == [(TIMER, DUE - OPENED)]
    scene.clock.now += 1000
    await scene.ping(scene.clock.now, 20_000)
    assert scene.notified() == [(TIMER, 20_000 + GRACE_MS + 20_000 // GRACE_SHARE)]
    await scene.end(TransactionCommitting)
    assert scene.notified() == [(TIMER, None)]


async def test_a_lease_that_has_run_out_already_is_due_at_once(scene: Scene) -> None:
    scene.own()
    scene.clock.now = DUE + 5
    await scene.open()
    assert scene.notified()[-1] == (TIMER, -5)
    await scene.ping(OPENED + 1, -1)
    assert scene.notified() == [(TIMER, OPENED + GRACE_MS - DUE - 5)]


async def test_leases_of_partitions_of_others_are_left_alone(scene: Scene) -> None:
    await scene.open()
    assert scene.notified() == []
    scene.own()
    assert scene.timers.owned == [scene.partition]
    scene.leases.disown(scene.partition)
    assert scene.timers.disowned == [scene.partition]
    await scene.ping(OPENED + 1)
    assert scene.notified() == []


async def test_pings_are_awaited_while_a_lease_may_run_out(scene: Scene) -> None:
    scene.own()
    assert not scene.leases.awaits_pings()
    await scene.open()
    scene.clock.now = DUE + LONGEST_CREATION_MS
    assert scene.leases.awaits_pings()
    scene.clock.now += 1
    assert not scene.leases.awaits_pings()
    await scene.ping(scene.clock.now)
    assert scene.leases.awaits_pings()


async def test_pings_of_leases_that_were_open_before_are_awaited(scene: Scene) -> None:
    await scene.open()
    scene.own()
    scene.leases.open_leases(scene.partition)
    assert scene.leases.awaits_pings()


async def test_all_open_leases_can_be_read_from_the_journal(scene: Scene) -> None:
    await scene.open()
    other = transaction_id(0, "b")
    await scene.seed(TransactionOpened(*STREAM, other, lease_ms=20_000, at=OPENED, dies_at=10**15))
    done = transaction_id(0, "c")
    await scene.seed(
        TransactionOpened(*STREAM, done, lease_ms=1, at=1, dies_at=10**15), TransactionCommitting(*STREAM, done, at=1)
    )
    scene.clock.now = DUE + 1
    assert scene.open_leases() == {
        TIMER: -1,
        STREAM.transaction(other).aggregate: OPENED + 20_000 + LONGEST_CREATION_MS + GRACE_MS + 1000 - scene.clock.now,
    }
    assert scene.leases.open_leases((scene.partition + 1) % 4) == {}


# A timer fires.


async def test_a_lease_that_has_run_out_is_checked_or_else_that_is_an_error(scene: Scene) -> None:
    scene.own()
    await scene.open()
    await scene.lose_check()
    assert await scene.fire() == {TIMER: CHECK_AGAIN_MS}
    assert scene.sent() == [(REQUESTS_TRANSACTIONS.name, QUESTION)]
    assert QUESTION.key == KEY


async def test_a_timer_that_fires_too_early_is_set_anew(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE - 1
    assert await scene.fire() == {TIMER: 1}
    assert scene.sent() == []


async def test_a_lease_that_gets_shorter_while_checks_are_sent_is_looked_at_at_its_new_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.open()
    long = transaction_id(0, "b")
    await scene.seed(
        TransactionOpened(*STREAM, long, lease_ms=50 * LEASE_MS, at=OPENED, dies_at=10**15),
        TransactionReady(*STREAM, long, at=OPENED),
    )
    sender, acknowledged = scene.process.runtime.sender, asyncio.Event()
    send = sender.send

    async def send_slowly(*words: Any, **more: Any) -> Any:
        await acknowledged.wait()
        return await send(*words, **more)

    monkeypatch.setattr(sender, "send", send_slowly)
    scene.clock.now = DUE
    timers = [TIMER, STREAM.transaction(long).aggregate]
    sending = asyncio.create_task(scene.leases.submit_checks(scene.partition, timers))
    await settle()
    await scene.seed(TransactionPinged(*STREAM, long, lease_ms=LEASE_MS, at=DUE))
    acknowledged.set()
    assert await sending == {timers[0]: DUE + CHECK_AGAIN_MS, timers[1]: 2 * DUE - OPENED}


async def test_where_the_journal_has_stopped_no_lease_is_checked(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE
    scene.world.broker.land(JOURNAL.name, KEY, b"no record")
    await settle()
    assert await scene.fire() == {TIMER: CHECK_AGAIN_MS}
    assert scene.sent() == []


async def test_a_timer_of_nothing_is_taken_away(scene: Scene) -> None:
    assert await scene.fire() == {TIMER: None}
    assert scene.sent() == []


# The question is judged.


async def test_a_question_becomes_an_abort_only_behind_pings_and_commits(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE
    await scene.leases.passed_pings("q", QUESTION, DUE)
    assert scene.sent() == [(COMMIT.name, QUESTION)]
    await scene.leases.passed_commits("q", QUESTION, DUE)
    version = scene.world.view(KEY).version(STREAM.transaction(ID).aggregate)
    abort = AbortTransaction(*STREAM, ID, reason=AbortReason.LEASE, version=version)
    assert version == 2 and scene.sent() == [(ABORT.name, abort)]


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
async def test_what_counts_is_when_the_question_was_appended(scene: Scene, passed: str) -> None:
    scene.own()
    await scene.open()
    scene.notified()
    scene.clock.now = DUE + 100_000
    await getattr(scene.leases, passed)("q", QUESTION, DUE - 1)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, 1)]), "set anew for what is left"
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert len(scene.sent()) == 1


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
async def test_a_lease_has_run_out_by_our_clock_too_which_may_be_behind(scene: Scene, passed: str) -> None:
    await scene.open()
    behind_ms = 8_000
    scene.clock.now = OPENED + 5_000 - behind_ms
    scene.own()
    due = DUE - OPENED
    scene.clock.now += due - 1
    await getattr(scene.leases, passed)("q", QUESTION, scene.clock.now + behind_ms)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, DUE - scene.clock.now)]), "open for too short a time"
    scene.clock.now = DUE
    await getattr(scene.leases, passed)("q", QUESTION, scene.clock.now + behind_ms)
    assert len(scene.sent()) == 1


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
async def test_a_ping_that_was_decided_before_the_question_saves_it(scene: Scene, passed: str) -> None:
    await scene.open()
    await scene.ping(DUE - 10)
    scene.clock.now = DUE
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert scene.sent() == []
    assert scene.notified() == [(TIMER, DUE - 10 - OPENED)]


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
@pytest.mark.parametrize("ended", ["unknown", "committing", "aborting"])
async def test_what_has_ended_has_no_timer_and_a_question_about_it_does_nothing(
    scene: Scene, passed: str, ended: str
) -> None:
    scene.own()
    if ended != "unknown":
        await scene.open()
    if ended == "committing":
        await scene.end(TransactionCommitting)
    if ended == "aborting":
        await scene.end(TransactionAborting, reason=AbortReason.SEAL)
    assert scene.notified()[2:] == ([] if ended == "unknown" else [(TIMER, None)])
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert (scene.sent(), scene.notified()) == ([], [])


async def test_a_take_over_begins_leases_anew(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = taken_over = DUE - 100
    scene.own()
    due = taken_over + DUE - OPENED
    assert scene.open_leases() == {TIMER: DUE - OPENED}
    scene.clock.now = due - 1
    await scene.leases.passed_pings("q", QUESTION, DUE)
    await scene.leases.passed_pings("q", QUESTION, due - 1)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, due - DUE), (TIMER, 1)])
    scene.clock.now = due
    await scene.leases.passed_pings("q", QUESTION, due)
    assert scene.sent() == [(COMMIT.name, QUESTION)]


async def test_a_long_lease_begins_anew_for_no_more_than_ten_minutes(scene: Scene) -> None:
    long_ms, anew_ms = 30 * 24 * 3600 * 1000, MAX_ANEW_MS + GRACE_MS + MAX_ANEW_MS // GRACE_SHARE
    await scene.open()
    await scene.ping(OPENED, long_ms)
    end = OPENED + long_ms + GRACE_MS + MAX_ANEW_MS // GRACE_SHARE
    scene.own()
    assert scene.open_leases() == {TIMER: end - OPENED - anew_ms}, "looked at before its end"
    assert not scene.leases.awaits_pings(), "no outage matters to it yet"
    scene.clock.now = end - anew_ms
    assert await scene.fire() == {TIMER: anew_ms}
    assert scene.sent() == []
    assert scene.leases.awaits_pings()
    scene.notified()
    scene.clock.now = end - 1
    scene.leases.listen(scene.partition)
    scene.clock.now = end
    await scene.leases.passed_pings("q", QUESTION, end)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, anew_ms - 1)])


async def test_a_ping_behind_a_take_over_counts_from_itself(scene: Scene) -> None:
    await scene.open()
    scene.own()
    scene.clock.now += 5_000
    await scene.ping(scene.clock.now)
    assert scene.notified()[-1] == (TIMER, DUE - OPENED)


async def test_an_outage_of_kafka_begins_leases_anew(scene: Scene) -> None:
    await scene.open()
    for at in (OPENED, back := OPENED + 9_000):
        scene.outages.acknowledged(at)
    scene.clock.now = DUE + 1_000
    await scene.leases.passed_commits("q", QUESTION, DUE)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, back - OPENED)])


async def test_while_kafka_is_silent_no_lease_ends(scene: Scene) -> None:
    await scene.open()
    scene.outages.acknowledged(OPENED)
    scene.clock.now = DUE
    await scene.leases.passed_commits("q", QUESTION, DUE)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, SILENCE_MS)]), "looked at again"


async def test_no_lease_ends_in_a_partition_that_took_no_checks_until_it_has_run_anew(scene: Scene) -> None:
    scene.own()
    await scene.open()
    scene.notified()
    await scene.lose_check()
    scene.clock.now = again = DUE + SILENCE_MS + 1
    await scene.leases.passed_pings("q", QUESTION, again)
    assert scene.notified() == [(TIMER, SILENCE_MS)], "a check got in of which there is no acknowledgement yet"
    await scene.seed(TransactionPinged(*STREAM, ID, lease_ms=LEASE_MS, at=OPENED))
    scene.notified()
    await scene.leases.passed_pings("q", QUESTION, again)
    assert scene.notified() == [(TIMER, SILENCE_MS)], "a ping that was appended before is no sign of now"
    await scene.fire()
    scene.sent()
    await scene.leases.passed_pings("q", QUESTION, again)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, DUE - OPENED)])
    scene.clock.now = again + DUE - OPENED
    await scene.leases.passed_pings("q", QUESTION, scene.clock.now)
    assert scene.sent() == [(COMMIT.name, QUESTION)]


async def test_a_check_that_got_lost_says_nothing_once_the_partition_is_another_instances(scene: Scene) -> None:
    scene.own()
    await scene.open()
    await scene.lose_check()
    scene.leases.disown(scene.partition)
    scene.clock.now = later = DUE + SILENCE_MS + 1
    await scene.leases.passed_commits("q", QUESTION, later)
    assert [topic for topic, _ in scene.sent()] == [ABORT.name]


async def test_a_check_behind_a_ping_that_cannot_be_decided_aborts_nothing(virtual_time: None) -> None:
    redis = MemoryRedis(Random(1))
    redis.away_until_s = math.inf
    world = MemoryWorld("txn-manager")
    service = TxnService(world.first.runtime, TxnSettings(), world.store, MemoryRedisAccess(redis))
    consumers = (service.requests, service.commits, service.aborts)
    for consumer in consumers:
        consumer.start()
    await until(lambda: all(len(consumer.partitions) == world.broker.partitions for consumer in consumers))
    opened = TransactionOpened(*STREAM, ID, lease_ms=LEASE_MS, at=world.now_ms, dies_at=10**15)
    await world.seed(KEY, opened, TransactionReady(*STREAM, ID, at=world.now_ms))
    await asyncio.sleep(2 * (DUE - OPENED) / 1000)
    world.broker.land(JOURNAL.name, KEY, b"no record")
    await settle()
    world.request("ping", PingTransaction(*STREAM, ID, lease_ms=LEASE_MS))
    world.request("check", QUESTION)
    await asyncio.sleep(1)
    assert (world.requests(COMMIT), world.requests(ABORT)) == ([], [])
