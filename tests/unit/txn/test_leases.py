"""Leases that run out: what a timer asks, how the question is judged, when it becomes an abort."""

from typing import Any, cast

import pytest
from support.memory_world import ManualClock, MemoryWorld, settle

from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, CheckLease
from sluice.domain.transaction.events import (
    TransactionAborting,
    TransactionCommitting,
    TransactionOpened,
    TransactionPinged,
    TransactionReady,
)
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.state import LONGEST_CREATION_MS
from sluice.engine.ports import SendError
from sluice.kafka.topics import ABORT, COMMIT, JOURNAL, REQUESTS_TRANSACTIONS
from txn_manager.leases import GRACE_SHARE, Leases
from txn_manager.outage_tracker import RETURN_MS, SILENCE_MS, OutageTracker
from txn_manager.wheel.errors import WheelUnavailableError

STREAM = StreamId("sc", "st")
KEY = STREAM.key
ID = transaction_id(0, "a")
TIMER = f"{STREAM}/{ID}"
LEASE_MS, GRACE_MS = 10_000, 2_000
OPENED = 1_000_000
DUE = OPENED + LEASE_MS + GRACE_MS + LEASE_MS // GRACE_SHARE
QUESTION = CheckLease(*STREAM, ID)


class FakeWheel:
    """Says how long no instance has listened."""

    def __init__(self) -> None:
        self.silent_ms: int | None = 0
        self.away = False

    async def silent_for(self, _partition: int) -> int | None:
        if self.away:
            raise WheelUnavailableError("away")
        return self.silent_ms


class FakeTimers:
    """What the timers were notified of: leases with what is left of them, and ends."""

    def __init__(self) -> None:
        self.owned: list[int] = []
        self.disowned: list[int] = []
        self.notified: list[tuple[str, int | None]] = []

    def own(self, partition: int) -> None:
        self.owned.append(partition)

    def disown(self, partition: int) -> None:
        self.disowned.append(partition)

    def lease(self, _partition: int, timer: str, delay_ms: int) -> None:
        self.notified.append((timer, delay_ms))

    def end(self, _partition: int, timer: str) -> None:
        self.notified.append((timer, None))


class Scene:
    """One instance that looks after the leases of all partitions; `clock` is its own."""

    def __init__(self) -> None:
        self.world = MemoryWorld("txn-manager")
        self.clock = ManualClock(OPENED)
        self.process = self.world.process(self.clock)
        self.outages = OutageTracker()
        self.wheel = FakeWheel()
        self.leases = Leases(self.process.runtime, cast(Any, self.wheel), self.outages, 0.5, GRACE_MS)
        self.timers = FakeTimers()
        self.leases.timers = cast(Any, self.timers)
        self._seen = 0

    @property
    def partition(self) -> int:
        return self.process.journal.partition_of(KEY)

    async def own(self) -> None:
        await self.leases.own(self.partition)

    async def seed(self, *events: Event) -> None:
        await self.world.seed(KEY, *events)

    async def open(self, ready: bool = True) -> None:
        await self.seed(TransactionOpened(*STREAM, ID, lease_ms=LEASE_MS, at=OPENED))
        if ready:
            await self.seed(TransactionReady(*STREAM, ID, at=OPENED))

    async def ping(self, at: int, lease_ms: int = LEASE_MS) -> None:
        await self.seed(TransactionPinged(*STREAM, ID, lease_ms=lease_ms, at=at))

    async def end(self, event: type[Any], **more: Any) -> None:
        await self.seed(event(*STREAM, ID, at=self.clock.now, **more))

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
    await scene.own()
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
    await scene.own()
    scene.clock.now = DUE + 5
    await scene.open()
    assert scene.notified()[-1] == (TIMER, 0)
    await scene.ping(OPENED + 1, -(2**63))
    assert scene.notified() == [(TIMER, 0)]


async def test_leases_of_partitions_of_others_are_left_alone(scene: Scene) -> None:
    await scene.open()
    assert scene.notified() == []
    await scene.own()
    assert scene.timers.owned == [scene.partition]
    scene.leases.disown(scene.partition)
    assert scene.timers.disowned == [scene.partition]
    await scene.ping(OPENED + 1)
    assert scene.notified() == []


async def test_pings_are_awaited_while_a_lease_may_run_out(scene: Scene) -> None:
    await scene.own()
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
    await scene.own()
    scene.leases.open_leases(scene.partition)
    assert scene.leases.awaits_pings()


async def test_all_open_leases_can_be_read_from_the_journal(scene: Scene) -> None:
    await scene.open()
    other = transaction_id(0, "b")
    await scene.seed(TransactionOpened(*STREAM, other, lease_ms=20_000, at=OPENED))
    done = transaction_id(0, "c")
    await scene.seed(TransactionOpened(*STREAM, done, lease_ms=1, at=1), TransactionCommitting(*STREAM, done, at=1))
    scene.clock.now = DUE + 1
    left = dict(scene.leases.open_leases(scene.partition))
    assert left == {
        TIMER: 0,
        f"{STREAM}/{other}": OPENED + 20_000 + LONGEST_CREATION_MS + GRACE_MS + 1000 - scene.clock.now,
    }
    assert scene.leases.open_leases((scene.partition + 1) % 4) == {}


# A timer fires.


async def test_a_lease_that_has_run_out_is_checked_or_else_that_is_an_error(scene: Scene) -> None:
    await scene.own()
    await scene.open()
    scene.clock.now = DUE
    scene.world.refuse(REQUESTS_TRANSACTIONS, 1)
    with pytest.raises(SendError):
        await scene.leases.submit_checks(scene.partition, [TIMER])
    await scene.leases.submit_checks(scene.partition, [TIMER])
    assert scene.sent() == [(REQUESTS_TRANSACTIONS.name, QUESTION)]
    assert QUESTION.key == KEY


async def test_a_timer_that_fires_too_early_is_set_anew(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE - 1
    await scene.leases.submit_checks(scene.partition, [TIMER])
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, 1)])


async def test_where_the_journal_has_stopped_no_lease_is_checked(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE
    scene.world.broker.land(JOURNAL.name, KEY, b"no record")
    await settle()
    await scene.leases.submit_checks(scene.partition, [TIMER])
    assert (scene.sent(), scene.notified()) == ([], [])


async def test_a_timer_of_nothing_is_taken_away(scene: Scene) -> None:
    await scene.leases.submit_checks(scene.partition, [TIMER])
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, None)])


# The question is judged.


async def test_a_question_becomes_an_abort_only_behind_pings_and_commits(scene: Scene) -> None:
    await scene.open()
    await scene.leases.passed_pings("q", QUESTION, DUE)
    assert scene.sent() == [(COMMIT.name, QUESTION)]
    await scene.leases.passed_commits("q", QUESTION, DUE)
    version = scene.world.view(KEY).version(STREAM.transaction(ID).aggregate)
    abort = AbortTransaction(*STREAM, ID, reason=AbortReason.LEASE, version=version)
    assert version == 2 and scene.sent() == [(ABORT.name, abort)]


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
async def test_what_counts_is_when_the_question_was_appended(scene: Scene, passed: str) -> None:
    await scene.own()
    await scene.open()
    scene.notified()
    scene.clock.now = DUE + 100_000
    await getattr(scene.leases, passed)("q", QUESTION, DUE - 1)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, 1)]), "set anew for what is left"
    scene.clock.now = OPENED
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert len(scene.sent()) == 1


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
async def test_a_ping_that_was_decided_before_the_question_saves_it(scene: Scene, passed: str) -> None:
    await scene.open()
    await scene.ping(DUE - 10)
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert scene.sent() == []
    assert scene.notified() == [(TIMER, DUE - 10 - OPENED)]


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
@pytest.mark.parametrize("ended", ["unknown", "committing", "aborting"])
async def test_what_has_ended_has_no_timer_and_a_question_about_it_does_nothing(
    scene: Scene, passed: str, ended: str
) -> None:
    await scene.own()
    if ended != "unknown":
        await scene.open()
    if ended == "committing":
        await scene.end(TransactionCommitting)
    if ended == "aborting":
        await scene.end(TransactionAborting, reason=AbortReason.SEAL)
    assert scene.notified()[2:] == ([] if ended == "unknown" else [(TIMER, None)])
    await getattr(scene.leases, passed)("q", QUESTION, DUE)
    assert (scene.sent(), scene.notified()) == ([], [])


async def test_time_without_a_listener_extends_the_lease(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = OPENED + 8_000
    scene.wheel.silent_ms = 6_000
    await scene.own()
    scene.notified()
    deaf = 6_000 + RETURN_MS
    await scene.leases.passed_pings("q", QUESTION, DUE)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, deaf)])
    await scene.leases.passed_pings("q", QUESTION, DUE + deaf)
    assert scene.sent() == [(COMMIT.name, QUESTION)]


async def test_if_redis_cannot_say_who_listened_no_time_before_counts(scene: Scene) -> None:
    await scene.open()
    scene.clock.now = DUE - 100
    scene.wheel.away = True
    await scene.own()
    await scene.leases.passed_pings("q", QUESTION, DUE)
    assert scene.sent() == []


async def test_an_outage_of_kafka_extends_the_lease(scene: Scene) -> None:
    await scene.open()
    for at in (OPENED, OPENED + 5_000, OPENED + 9_000):
        scene.outages.acknowledged(at)
    checked_at = OPENED + 11_000
    assert scene.outages.extension(scene.partition, OPENED, checked_at) == 9_000 + RETURN_MS
    await scene.leases.passed_commits("q", QUESTION, checked_at)
    assert scene.sent() == []


async def test_no_lease_ends_before_clients_can_return_to_a_partition_that_took_no_checks(scene: Scene) -> None:
    await scene.own()
    await scene.open()
    scene.notified()
    scene.clock.now = DUE
    scene.world.refuse(REQUESTS_TRANSACTIONS, 1)
    with pytest.raises(SendError):
        await scene.leases.submit_checks(scene.partition, [TIMER])
    scene.clock.now = again = DUE + SILENCE_MS + 1
    await scene.leases.passed_pings("q", QUESTION, again)
    assert scene.notified() == [(TIMER, RETURN_MS)], "a check got in of which there is no acknowledgement yet"
    await scene.leases.submit_checks(scene.partition, [TIMER])
    scene.sent()
    await scene.leases.passed_pings("q", QUESTION, again)
    assert (scene.sent(), scene.notified()) == ([], [(TIMER, RETURN_MS)])
    await scene.leases.passed_pings("q", QUESTION, again + RETURN_MS)
    assert scene.sent() == [(COMMIT.name, QUESTION)]


async def test_a_partition_is_said_to_be_listened_to_only_while_kafka_is_there(scene: Scene) -> None:
    await scene.own()
    assert list(scene.leases.listening()) == []
    scene.outages.acknowledged(scene.clock.now)
    assert list(scene.leases.listening()) == [scene.partition]
    scene.clock.now += 60_000
    assert list(scene.leases.listening()) == []
