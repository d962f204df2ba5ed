"""Coordination on real servers: documents in each; five nodes, killed and frozen, on Redis and on OpenSearch.

`COORDINATION_FULL=1` runs the full form: 500 tasks, many faults, the store away for 20 s. Each prints its figures.
"""

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from integration.coordination.cluster import (
    TOPOLOGY,
    WORKERS,
    Cluster,
    disturb,
    judge,
    machine_s,
    settings_of,
    unevenness,
)
from integration.coordination.search_server import ELASTICSEARCH, OPENSEARCH, NotFetched, SearchServer, private_search
from support.effort import by_hand
from support.redis_server import PrivateRedis, private_redis
from unit.coordination.store_suite import DocumentStoreSuite

from harness import eventually_async
from sluice_coordination import Functions, LeaseSettings, Node, NodeSettings, TaskFuture, open_store
from sluice_coordination.search_store import SearchStore
from sluice_coordination.store import DocumentStore

pytestmark = pytest.mark.integration

FULL = bool(os.environ.get("COORDINATION_FULL"))
ALL_DONE_S = 240.0
NODES_UP_S = 90.0
STOPS_S = 1.0
"""Within which a task that was cancelled notes that it has stopped, beside what its process did not run."""
CALM_PAUSE_S = 0.5
"""For how long a process may not run in a round that is judged by how evenly tasks are spread."""
CALM_ROUNDS = 10
PATIENT = LeaseSettings(lease_s=90.0, margin_s=30.0)
"""For the one that submits, to which nothing is done."""


@dataclass(frozen=True)
class Form:
    """How much is done. Times in seconds."""

    calm: int
    calm_task_s: float
    disturbed: int
    disturbed_task_s: float
    faults: int
    between_faults_s: float
    freeze_s: float
    away_s: float
    lease_s: float
    margin_s: float
    look_s: float


SHORT = Form(112, 0.5, 40, 0.6, 3, 0.7, 5.0, 5.0, 4.0, 1.5, 0.25)
LONG = Form(200, 0.5, 300, 1.5, 14, 4.0, 12.0, 20.0, 6.0, 2.0, 0.5)
FORM = LONG if FULL else SHORT


class Server(Protocol):
    """A server that can be made to stand still."""

    @property
    def url(self) -> str: ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


@pytest.fixture(scope="module", params=[OPENSEARCH, ELASTICSEARCH], ids=lambda product: product.name)
def search_server(request: pytest.FixtureRequest) -> Iterator[SearchServer]:
    try:
        with private_search(request.param) as server:
            yield server
    except NotFetched as error:
        pytest.skip(f"{request.param.name} cannot be fetched here: {error}")


@pytest.fixture(scope="module")
def redis_server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


@pytest.fixture
def space() -> str:
    return f"space-{uuid.uuid4().hex}"


@by_hand("OpenSearch and Elasticsearch")
class TestSearchStore(DocumentStoreSuite):
    @pytest.fixture
    async def store(self, search_server: SearchServer) -> AsyncIterator[DocumentStore]:
        async with open_store(f"{search_server.url}/tests", timeout_s=20) as store:
            assert isinstance(store, SearchStore)
            yield store


class Trial:
    """A cluster, and a node in the test's own process that submits to it and runs nothing."""

    def __init__(self, server: Server, url: str, folder: Path) -> None:
        self.server = server
        self.options = {"lease_s": FORM.lease_s, "margin_s": FORM.margin_s, "timeout_s": FORM.margin_s}
        self.options["look_s"] = FORM.look_s
        self.cluster = Cluster(url, folder, self.options)
        self.random = random.Random(5)
        self.store: DocumentStore
        self.submitter: Node

    async def run(self, *, away: bool) -> dict[str, object]:
        """Put the cluster through everything; return the figures."""
        settings = NodeSettings(workers=0, leads=False, look_s=0.3, lease=PATIENT)
        async with (
            open_store(self.cluster.url, PATIENT.margin_s) as self.store,
            Node(self.store, TOPOLOGY, Functions(), settings=settings, token="submitter") as self.submitter,
        ):
            try:
                return await self._run(away=away)
            except BaseException:
                print(self.cluster.troubles())
                raise
            finally:
                self.cluster.stop()

    async def _run(self, *, away: bool) -> dict[str, object]:
        begin_s = machine_s()
        for number in range(len(WORKERS)):
            self.cluster.start(number)
        listed: Callable[[], bool | Awaitable[bool]] = self._all_listed
        await eventually_async(listed, NODES_UP_S, "all nodes are listed")
        figures: dict[str, object] = {"up_s": round(machine_s() - begin_s, 1)}
        figures |= await self._calm()
        figures |= await self._disturbed()
        if away:
            figures |= await self._away()
        verdict = judge(self.cluster.lines())
        assert verdict.overlaps == []
        return figures | {"attempts": verdict.attempts, "seconds": round(machine_s() - begin_s, 1)}

    async def _calm(self) -> dict[str, object]:
        """Have tasks spread while nothing happens; once more if the machine stood still, for then others take them."""
        for again in reversed(range(CALM_ROUNDS)):
            begin_s = machine_s()
            futures = await self._submit(FORM.calm, FORM.calm_task_s)
            await self._all_done(futures)
            end_s, wanted = machine_s(), {future.id for future in futures}
            pause_s = self.cluster.longest_pause_s(begin_s, end_s)
            verdict = judge([line for line in self.cluster.lines() if line["task"] in wanted])
            assert sum(verdict.done_by.values()) >= FORM.calm and len(verdict.ended) == FORM.calm
            if pause_s <= CALM_PAUSE_S or not again:
                break
            print(f"a calm round does not count: a process did not run for {pause_s:.2f} s")
        figures = {"calm": dict(sorted(verdict.done_by.items())), "unevenness": round(unevenness(verdict.done_by), 3)}
        figures |= {"pause_s": round(pause_s, 2), "calm_s": round(end_s - begin_s, 1)}
        # One task more or less does not count against a share of a few.
        slack = 1 / (FORM.calm * min(WORKERS) / sum(WORKERS))
        assert unevenness(verdict.done_by) <= 0.25 + (0.0 if FULL else slack), figures
        return figures

    async def _disturbed(self) -> dict[str, object]:
        begin_s, before = machine_s(), judge(self.cluster.lines()).done_by
        futures = await self._submit(FORM.disturbed, FORM.disturbed_task_s)
        done = []
        find_leader: Callable[[], str | Awaitable[str | None] | None] = self._leader
        for number in range(FORM.faults):
            # The first is the leader's end.
            leader = await eventually_async(find_leader, NODES_UP_S, "there is a leader")
            assert leader is not None
            if number == 0:
                self.cluster.kill(leader)
                done.append(f"kill {leader} (leader)")
            elif number == 1:
                self.cluster.freeze(leader, FORM.freeze_s)
                done.append(f"freeze {leader} (leader)")
            else:
                done.append(disturb(self.cluster, leader, self.random, FORM.freeze_s))
            await self._pass(FORM.between_faults_s)
        await self._all_done(futures)
        ends = judge(self.cluster.lines()).done_by
        by = {name: ends[name] - before[name] for name in sorted(ends)}
        return {"faults": done, "disturbed": by, "disturbed_s": round(machine_s() - begin_s, 1)}

    async def _away(self) -> dict[str, object]:
        """Have the store stand still while tasks run that would last longer than that."""
        for node in self.cluster.nodes:
            if node.frozen_until is not None:
                node.frozen_until = 0.0
        self.cluster.thaw_due()
        count = sum(WORKERS) // 2
        futures = await self._submit(count, FORM.away_s)
        wanted = {future.id for future in futures}
        await eventually_async(lambda: self._began(wanted) >= count, NODES_UP_S, "all of these tasks have begun")
        self.server.freeze()
        away_s = machine_s()
        try:
            await self._pass(FORM.away_s)
        finally:
            self.server.thaw()
        back_s = machine_s()
        pause_s = self.cluster.longest_pause_s(away_s, back_s)
        during = [line for line in self.cluster.lines() if away_s < line["at"] < back_s]
        last_s = max(line["at"] for line in during if line["kind"] == "alive") - away_s
        stopped_s = max(line["at"] for line in during if line["kind"] == "stopped") - away_s
        usable_s = settings_of(1, self.options).lease.usable_s
        assert last_s <= usable_s and stopped_s <= usable_s + STOPS_S + pause_s, (last_s, stopped_s, usable_s, pause_s)
        await self._all_done(futures)
        figures = {"usable_s": usable_s, "last_sign_s": last_s, "stopped_s": stopped_s, "pause_s": pause_s}
        return {name: round(value, 2) for name, value in figures.items()} | {
            "resumed_and_done_s": round(machine_s() - back_s, 1)
        }

    async def _submit(self, count: int, seconds: float) -> list[TaskFuture]:
        futures: list[TaskFuture] = []
        while (rest := count - len(futures)) > 0:
            some = [self.submitter.submit("work", {"seconds": seconds}) for _ in range(min(rest, 10))]
            futures += await asyncio.gather(*some)
        return futures

    async def _all_done(self, futures: list[TaskFuture]) -> None:
        def done() -> bool:
            self.cluster.thaw_due()
            return all(future.done() for future in futures)

        await eventually_async(done, ALL_DONE_S, "all tasks are done")
        tokens = [await future for future in futures]
        assert all(token.startswith("n") for token in tokens)

    async def _pass(self, seconds: float) -> None:
        """Let so much time go by; faults are spread over time, not bound to what happens."""
        until = machine_s() + seconds

        def passed() -> bool:
            self.cluster.thaw_due()
            return machine_s() >= until

        await eventually_async(passed, seconds + 30, "time goes by")

    async def _all_listed(self) -> bool:
        found = await self.store.get(f"{TOPOLOGY}/nodes")
        listed = set() if found is None else {node["token"] for node in found.body["nodes"]}
        return {node.token for node in self.cluster.nodes} <= listed

    async def _leader(self) -> str | None:
        self.cluster.thaw_due()
        found = await self.store.get(f"{TOPOLOGY}/leader")
        owner = None if found is None or found.body["expire"] == 0 else str(found.body["owner"])
        return owner if owner in self.cluster.free_nodes() else None

    def _began(self, wanted: set[str]) -> int:
        return len({line["task"] for line in self.cluster.lines() if line["kind"] == "begin"} & wanted)


def report(capsys: pytest.CaptureFixture[str], name: str, figures: dict[str, object]) -> None:
    with capsys.disabled():
        print(f"\n{name}: " + "; ".join(f"{key} {value}" for key, value in figures.items()))


@pytest.mark.timeout(900)
async def test_five_nodes_on_redis(
    redis_server: PrivateRedis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = Trial(redis_server, f"{redis_server.url}?namespace=trial", tmp_path)
    report(capsys, "Redis", await trial.run(away=True))


@pytest.mark.timeout(900)
@by_hand("five nodes on OpenSearch")
@pytest.mark.parametrize("search_server", [OPENSEARCH], indirect=True, ids=[OPENSEARCH.name])
async def test_five_nodes_on_opensearch(
    search_server: SearchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = Trial(search_server, f"{search_server.url}/trial", tmp_path)
    # A look costs the server a refresh.
    trial.options["look_s"] = LONG.look_s
    report(capsys, "OpenSearch", await trial.run(away=FULL))
