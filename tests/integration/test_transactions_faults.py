"""Processes die while clients commit and abort: what is committed is read exactly once, what is not is never read.

The stream is scaled meanwhile, so that transactions are committed which began before a scale. What happened is printed
(`pytest -s`).
"""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from integration.test_java_client import WITH_FAULTS, JavaClient, build
from redis import Redis
from support.controller import Controller, controller
from support.effort import by_hand, effort
from support.instances import have_instances
from support.kafka import events, fold
from support.scaling import scale_request
from support.segments import on_store
from support.transactions import Transactions
from support.txn_traffic import TxnTraffic
from support.workflows import running_workflows, states_of

from harness import System, eventually
from sluice.domain.ids import StreamId
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.state import segment_names
from sluice.domain.workflow import WorkflowKind
from sluice.pravega import SegmentMissing, SegmentStoreClient
from sluice_local.settings import LocalSettings
from txn_manager.commit_steps import workflows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

WRITERS, BETWEEN_FAULTS = 8, effort(150, 32)
DEADLINE_S = 90.0
SCENARIO_S = 240.0
DIES_S = 60.0
TXN_MANAGER, STREAM_WORKFLOWS = "txn-manager-0", "stream-workflows-0"

OPENING = tuple(f"open-transaction/{moment}" for moment in ("decided", "after-segments"))
PREPARING = tuple(f"prepare-transactions/{moment}" for moment in ("reserved", "after-segments"))
DISCARDING = tuple(f"discard-transactions/{moment}-delete-segments" for moment in ("before", "after", "recorded"))
ENDING = tuple(f"{kind.value}/after-{step.name}" for kind, steps in workflows(1).items() for step in steps)
"""Done, and not recorded. Simulations kill it at all other points, too."""


@pytest.fixture(scope="module")
def single(disturbed: System) -> Iterator[System]:
    """One of each service and two segment stores: whatever dies is missed."""
    stores = [name for name in disturbed.names if name.startswith("segment-store-")]
    before = {name: disturbed.log(name).stat().st_size for name in stores}
    yield have_instances(disturbed, 1, DEADLINE_S)
    for name in stores:
        assert not given_up(disturbed, name, before[name]), f"containers of {name} had to give up"


def given_up(system: System, name: str, after: int) -> list[str]:
    """What a segment store has said about data that it cannot bring to long-term storage, ever, and why.

    `after` is how much of its log is older. A container that went to another store while this one stood still ends with
    a critical error, too, and no loss.
    """
    lines = pairwise(system.log(name).read_bytes()[after:].decode(errors="replace").splitlines())
    return [f"{line} {why}" for line, why in lines if "CriticalError" in line and "NotPrimaryException" not in why]


@pytest.fixture(scope="module")
def gateway(single: System) -> Iterator[Controller]:
    with controller(single.grpc_address, DEADLINE_S) as client:
        yield client


def stores_in_use(gateway: Controller) -> set[str]:
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
        single.freeze("segment-store-1")
        eventually(lambda: stores_in_use(gateway) == {first}, DEADLINE_S, "all names are on the store that lives")
        done_with("a segment store stands still, its containers have moved")
        single.thaw("segment-store-1")
        traffic.goes_on()
        single.kill("segment-store-1")
        done_with("it has gone on, and was killed")
        single.start("segment-store-1", deadline_s=DEADLINE_S)
        eventually(lambda: stores_in_use(gateway) == {first, second}, DEADLINE_S, "names are on both stores")
        traffic.goes_on(BETWEEN_FAULTS)
        traffic.scale()
        done_with("it is back, a scale")
        ended = await traffic.ends_exactly_once(DEADLINE_S)
    done_with(f"the end, all is read: {dict(ended)}")
    batches = events(fold(single.kafka_bootstrap), lambda e: isinstance(e, ev.CommitBatchStarted))
    assert any(batch.rolls for batch in batches if batch.scope == traffic.scope), "no batch rolled"


async def test_all_ends_exactly_once_wherever_txn_manager_is_killed(single: System, gateway: Controller) -> None:
    """The traffic passes every point by itself, some while the stream is scaled again and again."""
    with TxnTraffic(gateway, single.grpc_address, writers=3) as traffic:
        traffic.goes_on()
        single.stop(TXN_MANAGER)
        for point in (*PREPARING, *DISCARDING, *OPENING, *ENDING):
            scales = point in DISCARDING or point.startswith(WorkflowKind.ROLL_TRANSACTIONS.value)
            began = time.monotonic()
            # Where transactions are prepared none is opened in any other way.
            prepared = {"SLUICE_MAX_PREPARED_TRANSACTIONS": "0"} if point in OPENING else {}
            single.start(TXN_MANAGER, environment={"SLUICE_CRASH_AT": point, **prepared}, wait=False)
            while scales and single.is_running(TXN_MANAGER):
                assert time.monotonic() - began < DIES_S, f"{point} was not passed"
                ask_for_scale(gateway, traffic)
            assert single.wait_ended(TXN_MANAGER, DIES_S), f"{point} was not passed"
            assert single.exit_code(TXN_MANAGER) == -9
            print(f"{point}: killed after {time.monotonic() - began:.1f} s, {len(traffic.attempts)} transactions")
        single.start(TXN_MANAGER, deadline_s=DEADLINE_S)
        traffic.goes_on()
        ended = await traffic.ends_exactly_once(DEADLINE_S)
    print(f"read exactly once: {dict(ended)}")

    def unfinished() -> list[str]:
        return [name for name in running_workflows(fold(single.kafka_bootstrap)) if f":{traffic.scope}" in name]

    eventually(lambda: not unfinished(), DEADLINE_S, "nothing is left half done")
    skipped = skipped_segments(single, traffic)
    assert skipped, "no commit has skipped a segment"

    def deleted() -> bool:
        return not still_there(gateway, traffic, skipped)

    await asyncio.to_thread(eventually, deleted, DEADLINE_S, "what was skipped is deleted")


def skipped_segments(single: System, traffic: TxnTraffic) -> dict[int, list[str]]:
    """The names of the segments that commits have skipped, by segment number."""
    entries = fold(single.kafka_bootstrap)
    stream = states_of(entries)[StreamId(traffic.scope, traffic.stream).aggregate]
    names: dict[int, list[str]] = {}
    for event in events(entries, lambda e: isinstance(e, ev.EmptySegmentsSkipped) and e.scope == traffic.scope):
        for transaction, numbers in event.segments.items():
            for number in numbers:
                names.setdefault(number, []).append(segment_names(stream, transaction)[number])
    return names


def still_there(gateway: Controller, traffic: TxnTraffic, names: dict[int, list[str]]) -> list[str]:
    """Segments of one number are on one store, whatever their epochs."""

    async def present(number: int, store: SegmentStoreClient, _name: str) -> list[str]:
        infos = await asyncio.gather(*(store.segment_info(n) for n in names[number]), return_exceptions=True)
        found = zip(names[number], infos, strict=True)
        return [name for name, info in found if not isinstance(info, SegmentMissing)]

    stream = (traffic.scope, traffic.stream)
    return [name for number in names for name in on_store(gateway, stream, number, partial(present, number))]


def ask_for_scale(gateway: Controller, traffic: TxnTraffic) -> None:
    """Whether it is answered or not."""
    present = [segment for segment, _, _ in gateway.segments(traffic.scope, traffic.stream)]
    count = 4 + len(present) % 2
    gateway.status("scale", scale_request(traffic.scope, traffic.stream, present, count), 2.0)


@by_hand("Java, for what the test before it holds of Python")
def test_the_java_client_commits_exactly_once_though_txn_manager_is_killed(
    single: System, gateway: Controller, runs_folder: Path
) -> None:
    classpath = build(LocalSettings().home / "java-client")
    before = set(gateway.scopes())
    log = runs_folder / "java-client-faults.log"
    with JavaClient(classpath, f"tcp://{single.grpc_address}", log) as client, ThreadPoolExecutor(1) as pool:
        problem = pool.submit(client.problem, WITH_FAULTS)
        (scope,) = eventually(lambda: set(gateway.scopes()) - before, DEADLINE_S, "the scenario has begun")
        transactions = Transactions(gateway, scope)
        eventually(lambda: len(transactions.completed()) > 20, DEADLINE_S, "transactions are committed")
        single.kill(TXN_MANAGER)
        single.start(TXN_MANAGER, deadline_s=DEADLINE_S)
        assert not problem.done(), "the scenario was over before txn-manager was back"
        assert problem.result(SCENARIO_S) is None
