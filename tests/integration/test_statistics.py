"""Statistics on the whole system: what happened to a stream is in its windows soon, and their age is shown."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.controller import Controller, controller, unique
from support.health import await_ready
from support.transactions import Transactions

from harness import System, eventually

pytestmark = pytest.mark.integration

COMES_S = 90.0
LONG_MS = 120_000
"""A lease that does not end while others are waited for."""


@pytest.fixture
def gateway(system: System) -> Iterator[Controller]:
    with controller(system.grpc_address) as client:
        yield client


@pytest.fixture
def client(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=system.rest_url, timeout=60, trust_env=False) as client:
        yield client


class Statistics:
    """The figures of a stream over all windows of a kind."""

    def __init__(self, client: httpx.Client, scope: str, window: str) -> None:
        answer = client.get(f"/sluice/v1/scopes/{scope}/streams/st/statistics", params={"window": window, "count": 120})
        assert answer.status_code == 200, answer.text
        self.body: dict[str, Any] = answer.json()

    def total(self, name: str) -> int:
        return sum(item[name] for item in self.body["items"])

    def counts(self, name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for item in self.body["items"]:
            for what, count in item[name].items():
                found[what] = found.get(what, 0) + count
        return found

    @property
    def figures(self) -> tuple[object, ...]:
        sums = (self.total(name) for name in ("opened", "committed", "timed"))
        return (*sums, self.counts("aborted"), self.counts("operations"))


def test_transactions_and_operations_are_counted_by_minute_hour_and_day(
    system: System, gateway: Controller, client: httpx.Client
) -> None:
    scope = unique("statistics")
    assert gateway.create_scope(scope) == gateway.create_stream(scope, "st") == "SUCCESS"
    transactions = Transactions(gateway, scope)
    committed, aborted, abandoned = (transactions.open() for _ in range(3))
    sealed = transactions.open(LONG_MS)
    assert transactions.commit(committed) == transactions.abort(aborted) == "SUCCESS"
    transactions.await_state(committed, "COMMITTED")
    assert transactions.ping(abandoned, lease_ms=0) == "OK"
    transactions.await_state(abandoned, "ABORTED")
    assert transactions.ping(sealed, LONG_MS) == "OK"
    assert gateway.seal(scope, "st") == "SUCCESS"
    ended = time.time_ns() // 1_000_000

    wanted = (4, 1, 4, {"user": 1, "lease": 1, "seal": 1}, {"create": 1, "seal": 1})
    for window in ("minute", "hour", "day"):
        eventually(lambda w=window: Statistics(client, scope, w).figures == wanted, COMES_S, f"all is in a {window}")  # type: ignore[misc]
    assert Statistics(client, scope, "day").body["items"][0]["longestMs"] > 0
    eventually(lambda: Statistics(client, scope, "day").body["asOf"] >= ended, COMES_S, "all that happened is in them")


def faust_of(system: System) -> int:
    """The process of the Faust app of the only txn-manager; 0 while there is none."""
    parent = system.pid("txn-manager-0")
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"txn_manager.statistics" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return 0


def test_when_faust_is_killed_only_the_age_shows_it(system: System, gateway: Controller, client: httpx.Client) -> None:
    scope = unique("statistics")
    assert gateway.create_scope(scope) == gateway.create_stream(scope, "st") == "SUCCESS"
    eventually(lambda: Statistics(client, scope, "day").counts("operations") == {"create": 1}, COMES_S, "it is counted")
    killed = eventually(lambda: faust_of(system), COMES_S, "Faust runs")
    os.kill(killed, signal.SIGKILL)
    before = Statistics(client, scope, "day").body["asOf"]
    transactions = Transactions(gateway, scope)
    assert transactions.commit(transactions.open()) == "SUCCESS"
    await_ready(system, "txn-manager-0")
    wanted: tuple[object, ...] = (1, 1, 1, {}, {"create": 1})
    eventually(
        lambda: Statistics(client, scope, "day").figures == wanted, COMES_S, "the next life counts on, nothing twice"
    )
    # The progress of a partition follows its windows.
    eventually(lambda: Statistics(client, scope, "day").body["asOf"] > before, COMES_S, "the figures are younger")
    eventually(lambda: faust_of(system) not in (0, killed), COMES_S, "it is another process")
