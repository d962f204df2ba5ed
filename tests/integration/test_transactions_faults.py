"""Processes die while clients commit and abort: what is committed is read exactly once, what is not is never read.

The stream is scaled meanwhile, so that transactions are committed which began before a scale. What happened is printed
(`pytest -s`).
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from integration.test_java_client import JavaClient, build
from redis import Redis
from support.controller import Controller, controller, outcome, unique
from support.effort import effort
from support.kafka import fold
from support.scaling import scale_request
from support.stream_history import history
from support.transactions import Transactions
from support.txn_traffic import TxnTraffic

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.registry import evolve
from sluice.domain.workflow import WorkflowKind, running
from sluice_local.settings import LocalSettings
from stream_workflows.workflows import WORKFLOWS
from txn_manager.commit_steps import workflows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

WRITERS, BETWEEN_FAULTS = 8, effort(150, 48)
DEADLINE_S = 90.0
SCENARIO_S = 240.0
DIES_S = 60.0
TXN_MANAGER, STREAM_WORKFLOWS = "txn-manager-0", "stream-workflows-0"

OPENING = tuple(f"open-transaction/{moment}" for moment in ("decided", "after-segments"))
ENDING = tuple(
    f"{kind.value}/{moment}-{step.name}"
    for kind, steps in workflows(1).items()
    for step in steps
    for moment in ("before", "after", "recorded")
)


@pytest.fixture(scope="module")
def single(runs_folder: Path) -> Iterator[System]:
    """One of each service and two segment stores: whatever dies is missed."""
    with System(runs_folder / "transactions", segment_stores=2) as system:
        yield system
        for name in ("segment-store-0", "segment-store-1"):
            assert not given_up(system, name), f"containers of {name} had to give up"


def given_up(system: System, name: str) -> list[str]:
    """What a segment store has said about data that it cannot bring to long-term storage, ever, and why.

    A container that went to another store while this one stood still ends with a critical error, too, and no loss.
    """
    lines = pairwise(system.log(name).read_text(errors="replace").splitlines())
    return [f"{line} {why}" for line, why in lines if "CriticalError" in line and "NotPrimaryException" not in why]


@pytest.fixture(scope="module")
def gateway(single: System) -> Iterator[Controller]:
    with controller(single.grpc_address, DEADLINE_S) as client:
        yield client


def places(gateway: Controller) -> set[str]:
    """The segment stores that a hundred names are on."""
    return {gateway.store_of("sc", f"st{number}") for number in range(100)}


async def test_what_is_committed_is_read_exactly_once_whatever_dies(single: System, gateway: Controller) -> None:
    began = time.monotonic()

    def done_with(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s, {len(traffic.attempts)} transactions: {what}")

    first, second = single.segment_store_addresses
    with TxnTraffic(gateway, single.grpc_address, WRITERS) as traffic:
        traffic.goes_on(BETWEEN_FAULTS)
        traffic.scale()
        done_with("a scale")
        for name in (TXN_MANAGER, STREAM_WORKFLOWS):
            traffic.goes_on(BETWEEN_FAULTS)
            single.kill(name)
            single.start(name, deadline_s=DEADLINE_S)
            traffic.scale()
            done_with(f"{name} was killed, a scale")
        traffic.goes_on(BETWEEN_FAULTS)
        assert Redis.from_url(single.redis_url).flushall()
        traffic.scale()
        done_with("Redis was emptied, a scale")
        traffic.goes_on(BETWEEN_FAULTS)
        single.kill("segment-store-1")
        eventually(lambda: places(gateway) == {first}, DEADLINE_S, "all names are on the store that lives")
        done_with("a segment store was killed, its containers have moved")
        single.start("segment-store-1", deadline_s=DEADLINE_S)
        eventually(lambda: places(gateway) == {first, second}, DEADLINE_S, "names are on both stores")
        traffic.goes_on(BETWEEN_FAULTS)
        traffic.scale()
        done_with("it is back, a scale")
        single.kill(TXN_MANAGER)
        single.start(TXN_MANAGER, deadline_s=DEADLINE_S)
        traffic.goes_on(BETWEEN_FAULTS)
        traffic.scale()
        done_with(f"{TXN_MANAGER} was killed again, a scale")
        ended = await traffic.ends_exactly_once(DEADLINE_S)
    done_with(f"the end, all is read: {dict(ended)}")
    past = history(single, traffic.scope, traffic.stream)
    print(f"        {past.rolls} batches rolled; {past.summary()}")
    assert past.rolls


async def test_all_ends_exactly_once_wherever_txn_manager_is_killed(single: System, gateway: Controller) -> None:
    """The traffic passes every point by itself, those of rolling batches while the stream is scaled again and again."""
    with TxnTraffic(gateway, single.grpc_address, writers=3) as traffic:
        traffic.goes_on()
        single.stop(TXN_MANAGER)
        for point in (*OPENING, *ENDING):
            rolls = point.startswith(WorkflowKind.ROLL_TRANSACTIONS.value)
            began = time.monotonic()
            single.start(TXN_MANAGER, environment={"SLUICE_CRASH_AT": point}, wait=False)
            while rolls and single.is_running(TXN_MANAGER):
                assert time.monotonic() - began < DIES_S, f"{point} was not passed"
                ask_for_scale(gateway, traffic)
            assert single.wait_ended(TXN_MANAGER, DIES_S), f"{point} was not passed"
            assert single.exit_code(TXN_MANAGER) == -9
            print(f"{point}: killed after {time.monotonic() - began:.1f} s, {len(traffic.attempts)} transactions")
        single.start(TXN_MANAGER, deadline_s=DEADLINE_S)
        traffic.goes_on()
        ended = await traffic.ends_exactly_once(DEADLINE_S)
    print(f"read exactly once: {dict(ended)}")
    eventually(lambda: not unfinished(single, traffic.scope), DEADLINE_S, "nothing is left half done")


def ask_for_scale(gateway: Controller, traffic: TxnTraffic) -> None:
    """Whether it is answered or not."""
    present = [segment for segment, _, _ in gateway.segments(traffic.scope, traffic.stream)]
    count = 4 + len(present) % 2
    gateway.status("scale", scale_request(traffic.scope, traffic.stream, present, count), 2.0)


def unfinished(system: System, scope: str) -> list[str]:
    """The aggregates of a scope whose workflow has begun and not ended, by folding the journal anew."""
    states: dict[str, object] = {}
    for folded in fold(system.kafka_bootstrap):
        if folded.outcome.value == "counted":
            for event in folded.entry.events:
                if f":{scope}" in event.aggregate:
                    states[event.aggregate] = evolve(states.get(event.aggregate), event)
    return [aggregate for aggregate, state in states.items() if running(state) is not None]


def test_the_java_client_commits_exactly_once_though_txn_manager_is_killed(
    single: System, gateway: Controller, runs_folder: Path
) -> None:
    classpath = build(LocalSettings().home / "java-client")
    before = set(gateway.scopes())
    log = runs_folder / "java-client-faults.log"
    with JavaClient(classpath, single.grpc_address, log) as client, ThreadPoolExecutor(1) as pool:
        problem = pool.submit(client.problem, "TransactionsExactlyOnce")
        (scope,) = eventually(lambda: set(gateway.scopes()) - before, DEADLINE_S, "the scenario has begun")
        transactions = Transactions(gateway, scope)
        eventually(lambda: len(transactions.completed()) > 20, DEADLINE_S, "transactions are committed")
        single.kill(TXN_MANAGER)
        single.start(TXN_MANAGER, deadline_s=DEADLINE_S)
        assert not problem.done(), "the scenario was over before txn-manager was back"
        assert problem.result(SCENARIO_S) is None


# --- bounds

MOST_OPEN, MOST_WAITING = 5, 3


@pytest.fixture
def bounded(single: System) -> Iterator[System]:
    """With small limits; the usual ones are back after."""
    limits = {"SLUICE_MAX_OPEN_TRANSACTIONS": str(MOST_OPEN), "SLUICE_MAX_WAITING_COMMITS": str(MOST_WAITING)}
    single.stop(TXN_MANAGER)
    single.start(TXN_MANAGER, environment=limits, deadline_s=DEADLINE_S)
    yield single
    single.restart(TXN_MANAGER, deadline_s=DEADLINE_S)


@pytest.fixture
def transactions(gateway: Controller) -> Transactions:
    scope = unique("bounds")
    assert gateway.create_scope(scope) == "SUCCESS"
    assert gateway.create_stream(scope, "st", 1) == gateway.create_stream(scope, "other", 1) == "SUCCESS"
    return Transactions(gateway, scope)


@pytest.mark.usefixtures("bounded")
def test_no_more_transactions_are_opened_than_may_be_open(transactions: Transactions) -> None:
    ids = [transactions.open() for _ in range(MOST_OPEN)]
    with pytest.raises(grpc.RpcError) as refused:
        transactions.open()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"{MOST_OPEN} transactions of this stream are open" in str(refused.value.details())
    Transactions(transactions.gateway, transactions.scope, "other").open()
    assert transactions.commit(ids[0]) == transactions.abort(ids[1]) == "SUCCESS"
    transactions.open()


def test_no_more_commits_are_accepted_than_may_wait(bounded: System, transactions: Transactions) -> None:
    """A scale whose service has died holds them up."""
    gateway, scope = transactions.gateway, transactions.scope
    ids = [transactions.open() for _ in range(MOST_WAITING + 1)]
    first_step = WORKFLOWS[WorkflowKind.SCALE_STREAM][0].name
    point = f"{WorkflowKind.SCALE_STREAM.value}/before-{first_step}"
    bounded.stop(STREAM_WORKFLOWS)
    bounded.start(STREAM_WORKFLOWS, environment={"SLUICE_CRASH_AT": point}, deadline_s=DEADLINE_S)
    scale = gateway.call("scale", scale_request(scope, "st", [0], 2))
    assert scale.status == pb.ScaleResponse.STARTED
    assert bounded.wait_ended(STREAM_WORKFLOWS, DIES_S)
    try:
        assert [transactions.commit(id) for id in ids[:-1]] == ["SUCCESS"] * MOST_WAITING
        late = transactions.begin_commit(ids[-1])
        assert outcome(late) == "RESOURCE_EXHAUSTED"
        assert f"{MOST_WAITING} transactions of this stream wait" in late.details()
        assert {transactions.state(id) for id in ids[:-1]} == {"COMMITTING"}
        assert transactions.commit(ids[0]) == "SUCCESS", "it is accepted already"
    finally:
        bounded.start(STREAM_WORKFLOWS, deadline_s=DEADLINE_S)
    for id in ids[:-1]:
        transactions.await_state(id, "COMMITTED", DEADLINE_S)
    assert transactions.ping(ids[-1]) == "OK"
    assert transactions.commit(ids[-1]) == "SUCCESS"
    transactions.await_state(ids[-1], "COMMITTED", DEADLINE_S)
