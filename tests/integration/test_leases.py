"""Leases: no transaction of a client that pings is aborted, whatever is away meanwhile; others are, in time.

Lengths of waits are measured and printed (`pytest -s`).
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
import pytest
from support.controller import Controller, controller, unique
from support.effort import effort
from support.instances import have_instances
from support.kafka import Groups, read
from support.pace import Pace
from support.transactions import LEASE_MS, Pinging, Transactions

from harness import System, eventually
from sluice.domain.ids import StreamId
from sluice.domain.model import decode_record
from sluice.domain.transaction import events as ev
from sluice.engine.partition import partition_of
from sluice.kafka.topics import COMMIT, JOURNAL, REQUESTS_TRANSACTIONS
from txn_manager.leases import GRACE_SHARE
from txn_manager.outage_tracker import SILENCE_MS
from txn_manager.settings import TxnSettings

pytestmark = pytest.mark.integration

CLIENTS = 6
OUTAGE_S = effort(30.0, 15.0)
DEADLINE_S = 60.0
TAKE_OVER_MS = 4_000
"""How long the partitions of an instance that was killed may be without an owner."""

VICTIM, OTHER = "txn-manager-0", "txn-manager-1"
_SETTINGS = TxnSettings(instance="unused")
GRACE_MS = int(_SETTINGS.grace_s * 1000) + LEASE_MS // GRACE_SHARE
TICK_MS = int(_SETTINGS.tick_s * 1000)
QUICK_MS = 500
"""Within which every request is answered, unless the machine stands still."""


@pytest.fixture(scope="module")
def pair(disturbed: System) -> System:
    """One of each service; a test starts the other instance of txn-manager, if it needs it."""
    return have_instances(disturbed, 1, DEADLINE_S)


@pytest.fixture(scope="module")
def gateway(pair: System) -> Iterator[Controller]:
    with controller(pair.grpc_address, DEADLINE_S) as client:
        yield client


@pytest.fixture
def streams(gateway: Controller) -> list[Transactions]:
    """Those of three new streams."""
    scope = unique("leases")
    assert gateway.create_scope(scope) == "SUCCESS"
    names = [f"st{number}" for number in range(3)]
    assert {gateway.create_stream(scope, name, 1) for name in names} == {"SUCCESS"}
    return [Transactions(gateway, scope, name) for name in names]


@pytest.fixture
def alone(pair: System) -> None:
    """With one instance of txn-manager."""
    if pair.is_running(OTHER):
        pair.stop(OTHER)
    settled(pair)


@pytest.fixture
def both(pair: System) -> None:
    """With two instances of txn-manager."""
    if not pair.is_running(OTHER):
        pair.start(OTHER, deadline_s=DEADLINE_S)
    settled(pair)


def settled(system: System) -> dict[str, dict[str, set[int]]]:
    """The partitions of every running instance in every topic, once all are given out."""
    groups = Groups(system.kafka_bootstrap)
    running = {name for name in (VICTIM, OTHER) if system.is_running(name)}

    def given_out() -> dict[str, dict[str, set[int]]] | None:
        topics = (REQUESTS_TRANSACTIONS, COMMIT)
        owners = {topic.name: groups.owners(topic.group) for topic in topics}
        each = [sorted(p for of in given.values() for p in of) for given in owners.values()]
        complete = all(given == list(range(system.settings.partitions)) for given in each)
        return owners if complete and all(given.keys() == running for given in owners.values()) else None

    return eventually(given_out, DEADLINE_S, f"the partitions are given out to {sorted(running)}") or {}


# --- in time


class Life(msgspec.Struct):
    """When a transaction was last pinged, when its end was decided, and why; times of the broker, epoch ms."""

    last_activity_at: int = 0
    aborting_at: int = 0
    reason: str = ""


def lives(system: System, transactions: Transactions) -> dict[str, Life]:
    partition = partition_of(StreamId(transactions.scope, transactions.stream).key, system.settings.partitions)
    found: dict[str, Life] = {}
    for message in read(system.kafka_bootstrap, JOURNAL.name, [partition]):
        entries = decode_record(message.value() or b"").entries
        for event in (event for entry in entries for event in entry.events):
            if isinstance(event, ev.TransactionEvent):
                life = found.setdefault(event.transaction, Life())
                if isinstance(event, ev.TransactionOpened | ev.TransactionReady | ev.TransactionPinged):
                    life.last_activity_at = event.at
                elif isinstance(event, ev.TransactionAborting):
                    life.aborting_at, life.reason = message.timestamp()[1], event.reason.value
    return found


def late_ms(system: System, transactions: Transactions, ids: list[str]) -> list[int]:
    """How long after its lease, grace included, each was aborted; it must have been the lease that did it."""
    of_all = lives(system, transactions)
    assert {of_all[id].reason for id in ids} == {"lease"}
    return [of_all[id].aborting_at - of_all[id].last_activity_at - LEASE_MS - GRACE_MS for id in ids]


def opened_and_aborted(transactions: Transactions) -> None:
    """The command of a lease that has run out, sent by a client."""
    assert transactions.abort(transactions.open()) == "SUCCESS"


def limit_ms(pace: Pace) -> int:
    """How late an abort may be: two looks at the timers, and twice what a request of a client took at the time.

    If that was long, an instance may have taken itself for deaf: then leases begin anew.
    """
    deaf_ms = SILENCE_MS + LEASE_MS + GRACE_MS if pace.longest_ms > QUICK_MS else 0
    return 2 * TICK_MS + 2 * pace.longest_ms + deaf_ms


def of(owner: str, system: System, sibling: Transactions) -> Transactions:
    """Those of another new stream, whose leases this instance looks after."""
    gateway, scope = sibling.gateway, sibling.scope
    owned = settled(system)[REQUESTS_TRANSACTIONS.name][owner]
    names = (f"of-{owner}-{number}" for number in range(1000))
    name = next(n for n in names if partition_of(StreamId(scope, n).key, system.settings.partitions) in owned)
    assert gateway.create_stream(scope, name, 1) == "SUCCESS"
    return Transactions(gateway, scope, name)


@pytest.mark.usefixtures("both")
def test_an_instance_that_takes_over_aborts_what_has_stopped(pair: System, streams: list[Transactions]) -> None:
    """Their leases begin anew with the take-over."""
    transactions, others = of(VICTIM, pair, streams[0]), of(OTHER, pair, streams[0])
    began_s = time.monotonic()
    ids, kept = [transactions.open() for _ in range(3)], others.open()
    pair.kill(VICTIM)
    open_ms = int(1000 * (time.monotonic() - began_s))
    try:
        # Where there is nothing to take over.
        with Pace(partial(others.ping, kept)) as pace:
            for id in ids:
                transactions.await_state(id, "ABORTED", DEADLINE_S)
    finally:
        pair.start(VICTIM, deadline_s=DEADLINE_S)
    late = late_ms(pair, transactions, ids)
    print(f"\naborted so many ms after lease and grace, with a take-over: {late}; pings took {pace.longest_ms} ms")
    assert min(late) >= 0
    assert max(late) <= open_ms + TAKE_OVER_MS + limit_ms(pace)


@pytest.mark.usefixtures("alone")
def test_transactions_of_clients_that_stop_are_aborted_in_time(pair: System, streams: list[Transactions]) -> None:
    transactions = streams[0]
    never_pinged = [transactions.open() for _ in range(3)]
    pinged = [transactions.open() for _ in range(3)]
    assert {transactions.ping(id) for id in pinged} == {"OK"}
    with Pace(partial(opened_and_aborted, transactions)) as pace:
        for id in never_pinged + pinged:
            transactions.await_state(id, "ABORTED", DEADLINE_S)
    late = late_ms(pair, transactions, never_pinged + pinged)
    print(f"\naborted so many ms after lease and grace: {late}; by a client within {pace.longest_ms} ms")
    assert min(late) >= 0
    assert max(late) <= limit_ms(pace)


# --- not too early


@contextmanager
def clients(streams: list[Transactions]) -> Iterator[list[Pinging]]:
    """Clients that ping; each commits its transaction in the end."""
    with ExitStack() as stack:
        pinging = [stack.enter_context(Pinging(streams[n % len(streams)])) for n in range(CLIENTS)]
        yield pinging
        answered_more(pinging)
    longest = sorted(round(client.longest_s, 1) for client in pinging)
    print(f"\nlongest between two pings with a reply: {longest} s")
    assert {answer for client in pinging for answer in client.answers} == {"OK"}
    for client in pinging:
        assert client.transactions.commit(client.id) == "SUCCESS"
    for client in pinging:
        client.transactions.await_state(client.id, "COMMITTED")


def answered_more(pinging: list[Pinging], times: int = 1) -> None:
    """All pings get so many replies more."""
    goals = [client.answered + times for client in pinging]
    eventually(
        lambda: all(client.answered >= goal for client, goal in zip(pinging, goals, strict=True)),
        DEADLINE_S,
        "all clients get replies",
    )


def forget_all(system: System) -> None:
    """Remove what a Redis that does not run has kept."""
    folder = system.settings.data_dir / "redis"
    kept = [path for path in folder.iterdir() if path.name.startswith("appendonly")]
    assert kept
    for path in kept:
        path.unlink()


def outlast(seconds: float) -> None:
    """Let an outage last."""
    ends = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= ends, 2 * seconds, "the outage is over")


@pytest.mark.usefixtures("alone")
def test_nothing_is_aborted_because_txn_manager_was_away(pair: System, streams: list[Transactions]) -> None:
    with clients(streams):
        pair.kill(VICTIM)
        outlast(OUTAGE_S)
        pair.start(VICTIM, deadline_s=DEADLINE_S)


@pytest.mark.usefixtures("alone")
def test_nothing_is_aborted_because_kafka_was_away(pair: System, streams: list[Transactions]) -> None:
    with clients(streams):
        pair.kill("kafka")
        outlast(OUTAGE_S)
        pair.start("kafka", deadline_s=DEADLINE_S)


@pytest.mark.usefixtures("alone")
def test_nothing_is_aborted_because_redis_was_emptied(pair: System, streams: list[Transactions]) -> None:
    """It comes back without what it knew; meanwhile every lease had to be renewed once at least."""
    with clients(streams) as pinging:
        pair.kill("redis")
        answered_more(pinging, times=2)
        forget_all(pair)
        pair.start("redis", deadline_s=DEADLINE_S)
        answered_more(pinging)
        left = streams[0].open()
    with Pace(partial(opened_and_aborted, streams[0])) as pace:
        streams[0].await_state(left, "ABORTED", DEADLINE_S)
    (late,) = late_ms(pair, streams[0], [left])
    print(f"\none that stopped after that was aborted {late} ms after lease and grace; others in {pace.longest_ms} ms")
    # Leases begin anew when Redis is found again, which may be after that one was opened.
    assert 0 <= late <= LEASE_MS + GRACE_MS + limit_ms(pace)
