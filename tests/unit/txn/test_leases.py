"""Leases that run out: what a timer asks, how the question is judged, when it becomes an abort."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from support import virtual_time
from support.memory_journal import Instance, JournalWorld, settle

from sluice.domain import events as ev
from sluice.domain.commands import AbortReason, AbortTransaction, CheckLease
from sluice.domain.names import transaction_aggregate
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.state import LONGEST_CREATION_MS, Transaction
from sluice.messaging.producer import ProduceError
from sluice.messaging.topics import ABORT, COMMIT, REQUESTS_TRANSACTIONS
from txn_manager import leases as module
from txn_manager.hearing import RETURN_MS, Hearing
from txn_manager.leases import GRACE_SHARE, Leases
from txn_manager.wheel.errors import WheelUnavailableError

SCOPE, STREAM, KEY = "sc", "st", "sc/st"
ID = transaction_id(0, "a")
TIMER = f"{SCOPE}/{STREAM}/{ID}"
LEASE_MS, GRACE_MS = 10_000, 2_000
OPENED = 1_000_000
DUE = OPENED + LEASE_MS + GRACE_MS + LEASE_MS // GRACE_SHARE
QUESTION = CheckLease(scope=SCOPE, stream=STREAM, transaction=ID)

Scenario = Callable[["Scene"], Coroutine[Any, Any, None]]


class FakeWheel:
    """Says how long nobody has listened."""

    def __init__(self) -> None:
        self.silent_ms: int | None = 0
        self.away = False

    async def silent_for(self, _partition: int) -> int | None:
        if self.away:
            raise WheelUnavailableError("away")
        return self.silent_ms


class FakeTimers:
    """What is told to the timers: leases with what is left of them, and ends."""

    def __init__(self) -> None:
        self.owned: list[int] = []
        self.disowned: list[int] = []
        self.told: list[tuple[str, int | None]] = []

    def own(self, partition: int) -> None:
        self.owned.append(partition)

    def disown(self, partition: int) -> None:
        self.disowned.append(partition)

    def lease(self, _partition: int, timer: str, delay_ms: int) -> None:
        self.told.append((timer, delay_ms))

    def end(self, _partition: int, timer: str) -> None:
        self.told.append((timer, None))


class Scene:
    """One instance that looks after the leases of all partitions; `now` is its clock, in ms."""

    def __init__(self, world: JournalWorld) -> None:
        self.world = world
        self.now = OPENED
        self.instance: Instance = world.first
        self.hearing = Hearing()
        self.wheel = FakeWheel()
        runtime: Any = self.instance
        self.leases = Leases(runtime, cast(Any, self.wheel), self.hearing, 0.5, GRACE_MS)
        self.timers = FakeTimers()
        self.leases.timers = cast(Any, self.timers)

    @property
    def partition(self) -> int:
        return self.instance.journal.partition_of(KEY)

    async def own(self) -> None:
        await self.leases.own(self.partition)

    def seed(self, *events: ev.Event) -> None:
        self.world.seed(KEY, *events)

    def open(self, ready: bool = True) -> None:
        self.seed(ev.TransactionOpened(scope=SCOPE, stream=STREAM, transaction=ID, lease_ms=LEASE_MS, at=OPENED))
        if ready:
            self.seed(ev.TransactionReady(scope=SCOPE, stream=STREAM, transaction=ID, at=OPENED))

    def ping(self, at: int, lease_ms: int = LEASE_MS) -> None:
        self.seed(ev.TransactionPinged(scope=SCOPE, stream=STREAM, transaction=ID, lease_ms=lease_ms, at=at))

    def end(self, event: type[Any], **more: Any) -> None:
        self.seed(event(scope=SCOPE, stream=STREAM, transaction=ID, at=self.now, **more))

    def sent(self) -> list[tuple[str, Any]]:
        """What was sent since this was last asked."""
        sent = [(topic, request.command) for topic, request in self.instance.sent]
        del self.instance.sent[:]
        return sent

    def told(self) -> list[tuple[str, int | None]]:
        """What the timers were told since this was last asked."""
        told, self.timers.told = self.timers.told, []
        return told


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], None]:
    """Runs a scenario with a clock of its own."""

    def run(scenario: Scenario) -> None:
        async def scene() -> None:
            made = Scene(JournalWorld())
            monkeypatch.setattr(module, "now_ms", lambda: made.now)
            await scenario(made)

        virtual_time.run(scene())

    return run


Run = Callable[[Scenario], None]


# Timers follow the journal.


def test_timers_are_told_what_becomes_of_leases(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        scene.open(ready=False)
        assert scene.told() == [(TIMER, DUE - OPENED + LONGEST_CREATION_MS)]
        scene.now += 500
        scene.end(ev.TransactionReady)
        assert scene.told() == [(TIMER, DUE - OPENED)]
        scene.now += 1000
        scene.ping(scene.now, 20_000)
        assert scene.told() == [(TIMER, 20_000 + GRACE_MS + 20_000 // GRACE_SHARE)]
        scene.end(ev.TransactionCommitting)
        assert scene.told() == [(TIMER, None)]

    run(scenario)


def test_an_abort_ends_the_timer(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        scene.open()
        scene.told()
        scene.end(ev.TransactionAborting, reason=AbortReason.USER)
        assert scene.told() == [(TIMER, None)]

    run(scenario)


def test_a_lease_that_has_run_out_already_is_due_at_once(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        scene.now = DUE + 5
        scene.open()
        assert scene.told()[-1] == (TIMER, 0)
        scene.ping(OPENED + 1, -(2**63))
        assert scene.told() == [(TIMER, 0)]

    run(scenario)


def test_leases_of_partitions_of_others_are_none_of_its_business(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        assert scene.told() == []
        await scene.own()
        assert scene.timers.owned == [scene.partition]
        scene.leases.disown(scene.partition)
        assert scene.timers.disowned == [scene.partition]
        scene.ping(OPENED + 1)
        assert scene.told() == []

    run(scenario)


def test_all_open_leases_can_be_read_from_the_journal(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        other = transaction_id(0, "b")
        scene.seed(ev.TransactionOpened(scope=SCOPE, stream=STREAM, transaction=other, lease_ms=20_000, at=OPENED))
        done = transaction_id(0, "c")
        scene.seed(
            ev.TransactionOpened(scope=SCOPE, stream=STREAM, transaction=done, lease_ms=1, at=1),
            ev.TransactionCommitting(scope=SCOPE, stream=STREAM, transaction=done, at=1),
        )
        scene.now = DUE + 1
        left = dict(scene.leases.open_leases(scene.partition))
        assert left == {
            TIMER: 0,
            f"{SCOPE}/{STREAM}/{other}": OPENED + 20_000 + LONGEST_CREATION_MS + GRACE_MS + 1000 - scene.now,
        }
        assert scene.leases.open_leases((scene.partition + 1) % 4) == {}

    run(scenario)


# A timer fires.


def test_a_lease_that_has_run_out_is_asked_about(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        scene.open()
        scene.now = DUE
        await scene.leases.ask(scene.partition, [TIMER])
        assert scene.sent() == [(REQUESTS_TRANSACTIONS.name, QUESTION)]
        assert QUESTION.key == KEY

    run(scenario)


def test_a_timer_that_fires_too_early_is_set_again(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        scene.now = DUE - 1
        await scene.leases.ask(scene.partition, [TIMER])
        assert (scene.sent(), scene.told()) == ([], [(TIMER, 1)])

    run(scenario)


def test_a_timer_of_nothing_is_taken_away(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.leases.ask(scene.partition, [TIMER])
        assert (scene.sent(), scene.told()) == ([], [(TIMER, None)])

    run(scenario)


def test_a_question_that_cannot_be_sent_is_an_error_so_that_it_is_asked_again(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        scene.now, scene.instance.refusing = DUE, True
        with pytest.raises(ProduceError):
            await scene.leases.ask(scene.partition, [TIMER])

    run(scenario)


# The question is judged.


def test_a_question_becomes_an_abort_only_behind_pings_and_commits(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        await scene.leases.passed_pings("q", QUESTION, DUE)
        assert scene.sent() == [(COMMIT.name, QUESTION)]
        await scene.leases.passed_commits("q", QUESTION, DUE)
        version = scene.world.view(KEY).version(transaction_aggregate(SCOPE, STREAM, ID))
        abort = AbortTransaction(scope=SCOPE, stream=STREAM, transaction=ID, reason=AbortReason.LEASE, version=version)
        assert version == 2 and scene.sent() == [(ABORT.name, abort)]

    run(scenario)


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
def test_what_counts_is_when_the_question_was_appended(run: Run, passed: str) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        scene.open()
        scene.told()
        scene.now = DUE + 100_000
        await getattr(scene.leases, passed)("q", QUESTION, DUE - 1)
        assert (scene.sent(), scene.told()) == ([], [(TIMER, 1)]), "set again for what is left"
        scene.now = OPENED
        await getattr(scene.leases, passed)("q", QUESTION, DUE)
        assert len(scene.sent()) == 1

    run(scenario)


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
def test_a_ping_that_was_decided_before_the_question_saves_it(run: Run, passed: str) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        scene.ping(DUE - 10)
        await getattr(scene.leases, passed)("q", QUESTION, DUE)
        assert scene.sent() == []
        assert scene.told() == [(TIMER, DUE - 10 - OPENED)]

    run(scenario)


@pytest.mark.parametrize("passed", ["passed_pings", "passed_commits"])
@pytest.mark.parametrize("ended", ["unknown", "committing", "aborting"])
def test_a_question_about_what_has_ended_does_nothing(run: Run, passed: str, ended: str) -> None:
    async def scenario(scene: Scene) -> None:
        if ended != "unknown":
            scene.open()
        if ended == "committing":
            scene.end(ev.TransactionCommitting)
        if ended == "aborting":
            scene.end(ev.TransactionAborting, reason=AbortReason.SEAL)
        scene.told()
        await getattr(scene.leases, passed)("q", QUESTION, DUE)
        assert (scene.sent(), scene.told()) == ([], [])

    run(scenario)


def test_time_in_which_nobody_listened_extends_the_lease(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        scene.now = OPENED + 8_000
        scene.wheel.silent_ms = 6_000
        await scene.own()
        scene.told()
        deaf = 6_000 + RETURN_MS
        await scene.leases.passed_pings("q", QUESTION, DUE)
        assert (scene.sent(), scene.told()) == ([], [(TIMER, deaf)])
        await scene.leases.passed_pings("q", QUESTION, DUE + deaf)
        assert scene.sent() == [(COMMIT.name, QUESTION)]

    run(scenario)


def test_if_redis_cannot_say_who_listened_no_time_before_counts(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        scene.now = DUE - 100
        scene.wheel.away = True
        await scene.own()
        await scene.leases.passed_pings("q", QUESTION, DUE)
        assert scene.sent() == []

    run(scenario)


def test_an_outage_of_kafka_extends_the_lease(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        for at in (OPENED, OPENED + 5_000):
            scene.hearing.acknowledged(at)
        scene.hearing.acknowledged(OPENED + 9_000)
        extension = 9_000 + RETURN_MS
        asked_at = OPENED + 11_000
        assert scene.hearing.extension(scene.partition, OPENED, asked_at) == extension
        await scene.leases.passed_commits("q", QUESTION, asked_at)
        assert scene.sent() == []

    run(scenario)


def test_a_partition_is_said_to_be_listened_to_only_while_kafka_is_there(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.own()
        assert list(scene.leases._listening()) == []
        scene.hearing.acknowledged(scene.now)
        assert list(scene.leases._listening()) == [scene.partition]
        scene.now += 60_000
        assert list(scene.leases._listening()) == []

    run(scenario)


def test_the_version_of_the_abort_is_of_what_was_judged(run: Run) -> None:
    async def scenario(scene: Scene) -> None:
        scene.open()
        asking = asyncio.ensure_future(scene.leases.passed_commits("q", QUESTION, DUE))
        await settle()
        await asking
        ((_, abort),) = scene.sent()
        scene.ping(DUE)
        found = scene.world.view(KEY).get(transaction_aggregate(SCOPE, STREAM, ID))
        assert isinstance(found, Transaction)
        assert abort.version == scene.world.view(KEY).version(transaction_aggregate(SCOPE, STREAM, ID)) - 1

    run(scenario)
