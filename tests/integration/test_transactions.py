"""Transactions on the whole system while nothing breaks: through the package `pravega` and through plain gRPC."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from support.controller import Controller, config, controller, outcome, unique
from support.scaling import scale_to
from support.stream_history import Change, history
from support.transactions import Transactions
from support.txn_events import wanted_of
from support.txn_traffic import TxnTraffic

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0
COMMITTERS = 4
SCALES = 5
UPDATES, IN_FLIGHT = 24, 4


@pytest.fixture(scope="module")
def gateway(system: System) -> Iterator[Controller]:
    with controller(system.grpc_address, DEADLINE_S) as client:
        yield client


@pytest.fixture
def transactions(gateway: Controller) -> Transactions:
    """Those of a new stream with two segments."""
    scope = unique("txns")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_stream(scope, "st", 2) == "SUCCESS"
    return Transactions(gateway, scope)


async def test_what_four_writers_commit_is_read_exactly_once_through_scales(
    system: System, gateway: Controller
) -> None:
    with TxnTraffic(gateway, system.grpc_address, writers=4) as traffic:
        for _ in range(3):
            traffic.goes_on()
            traffic.scale()
        traffic.goes_on()
        await traffic.ends_exactly_once()
        assert all(attempt.wanted == wanted_of(attempt.number) for attempt in traffic.attempts), "commits were given up"
    assert history(system, traffic.scope, "st").rolls


# --- ends


def test_a_stream_that_is_sealed_has_no_open_transactions(transactions: Transactions) -> None:
    left_open = [transactions.open() for _ in range(5)]
    committing = [transactions.open() for _ in range(5)]
    calls = [transactions.begin_commit(id) for id in committing]
    assert {outcome(call) for call in calls} == {"SUCCESS"}
    assert transactions.gateway.seal(transactions.scope, "st") == "SUCCESS"
    assert {transactions.state(id) for id in left_open} == {"ABORTED"}
    assert {transactions.state(id) for id in committing} == {"COMMITTED"}
    assert transactions.ping(left_open[0]) == "ABORTED"
    assert "sealed" in transactions.commit_refused_because(left_open[0])
    assert transactions.gateway.delete(transactions.scope, "st") == "SUCCESS"
    assert {transactions.state(id) for id in committing} == {"COMMITTED"}


def test_a_scope_is_deleted_with_open_transactions_in_it(transactions: Transactions) -> None:
    gateway, scope = transactions.gateway, transactions.scope
    assert gateway.create_stream(scope, "other", 1) == "SUCCESS"
    others = Transactions(gateway, scope, "other")
    left_open, other = transactions.open(), others.open()
    assert gateway.status("deleteScopeRecursive", pb.ScopeInfo(scope=scope)) == "SUCCESS"
    assert scope not in gateway.scopes()
    assert transactions.state(left_open) == others.state(other) == "ABORTED"
    assert transactions.commit(left_open) == "FAILURE"


def test_a_commit_that_comes_too_late_is_told_why(transactions: Transactions) -> None:
    by_user, by_lease = transactions.open(), transactions.open()
    assert transactions.abort(by_user) == "SUCCESS"
    assert transactions.ping(by_lease, lease_ms=0) == "OK"
    transactions.await_state(by_user, "ABORTED")
    transactions.await_state(by_lease, "ABORTED")
    assert "its client asked for that" in transactions.commit_refused_because(by_user)
    assert "its lease ran out" in transactions.commit_refused_because(by_lease)
    assert transactions.completed() == {by_user: "ABORTED", by_lease: "ABORTED"}


# --- turns


@contextmanager
def over_and_over(*works: Callable[[], None]) -> Iterator[None]:
    """Do each of these all the time, side by side, until the end of the context; one that fails fails the test."""
    done = threading.Event()
    failures: list[BaseException] = []

    def repeat(work: Callable[[], None]) -> None:
        try:
            while not done.is_set():
                work()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert not failures and not any(thread.is_alive() for thread in threads), failures


class Committing:
    """Opens and commits one transaction after the other; `done` counts them."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self.done = 0

    def commit_one(self) -> None:
        assert self._transactions.commit(self._transactions.open()) == "SUCCESS"
        self.done += 1

    def goes_on(self) -> None:
        before = self.done
        eventually(lambda: self.done > before + COMMITTERS, DEADLINE_S, "commits go on")


def test_a_scale_waits_for_two_batches_at_most(system: System, transactions: Transactions) -> None:
    gateway, scope = transactions.gateway, transactions.scope
    committing = Committing(transactions)
    with over_and_over(*[committing.commit_one] * COMMITTERS):
        for number in range(SCALES):
            committing.goes_on()
            scale_to(gateway, scope, "st", 2 + (number + 1) % 2)
    past = history(system, scope, "st")
    waits = past.batches_before_scales()
    print(f"\nbatches that began before each scale: {waits}; {past.summary()}")
    assert len(waits) == SCALES and max(waits) <= 2
    assert past.of_kind(Change.WAITING), "no scale met a batch"


def test_a_commit_waits_for_two_workflows_at_most(system: System, transactions: Transactions) -> None:
    """Updates that change the number of segments are sent without waiting for the one before."""
    gateway, scope = transactions.gateway, transactions.scope
    with over_and_over(Committing(transactions).commit_one):
        calls = [begin_update(gateway, scope, number) for number in range(IN_FLIGHT)]
        for number in range(IN_FLIGHT, UPDATES):
            assert outcome(calls[number - IN_FLIGHT]) == "SUCCESS"
            calls.append(begin_update(gateway, scope, number))
        assert {outcome(call) for call in calls} == {"SUCCESS"}
    past = history(system, scope, "st")
    waits = past.workflows_before_commits()
    print(f"\nworkflows that began before each commit: {waits}; {past.summary()}")
    assert len(waits) >= UPDATES / 4, "hardly any commits met the updates"
    assert max(waits) <= 2


def begin_update(gateway: Controller, scope: str, number: int) -> object:
    return gateway.begin("updateStream", config(scope, "st", 2 + number % 2))
