"""Snapshots by real processes: cluster-manager's helpers write and confirm them, and Kafka trims the journal.

What only this holds: that the helper starts with what the service starts with, that two processes come to the same
bytes, and that those who follow a journal that Kafka has trimmed, the command line among them, know all of it.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from support.health import metric, readiness
from support.wait import eventually, eventually_async

from harness import System
from sluice.domain import registry
from sluice.domain.model import DomainModel
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.state import find_scope
from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.journal import Journal
from sluice.engine.offsets import RequestFacts
from sluice.kafka.connections import KafkaConnections
from sluice.kafka.topics import ensure_topics

pytestmark = pytest.mark.integration

PARTITIONS = 2
DEADLINE_S = 120.0
AT_A_LOOK = 5
"""Records between two looks, each of which begins a process."""
MEMBERS = "sluice_members"
KEEPING = {
    "SLUICE_SNAPSHOT_MIN_RECORDS": "5",
    "SLUICE_SNAPSHOT_INTERVAL_S": "0.5",
    "SLUICE_SNAPSHOT_LOOK_S": "0.3",
    "SLUICE_JOURNAL_KEEP": "PT0S",
}
T = TypeVar("T")


@pytest.fixture(scope="module")
def kept(runs_folder: Path) -> Iterator[System]:
    """A Kafka, and two instances of cluster-manager, which need no segment store for this."""
    system = System(runs_folder / "snapshots", cluster_managers=2, partitions=PARTITIONS)
    try:
        system.start("kafka")
        system.start("zookeeper")
        ensure_topics({"bootstrap.servers": system.kafka_bootstrap}, PARTITIONS, 1)
        for number in range(2):
            system.configure(f"cluster-manager-{number}", KEEPING)
            system.start(f"cluster-manager-{number}", wait=False)
        yield system
    finally:
        system.down()


def with_journal(system: System, work: Callable[[Journal], Awaitable[T]]) -> T:
    """What `work` comes to with a journal that is loaded."""

    async def run() -> T:
        client: dict[str, Any] = {"bootstrap.servers": system.kafka_bootstrap, "log_level": 2}
        connections = KafkaConnections(client, PARTITIONS, 6.0)
        connections.producer.start()
        journal = Journal(connections.log, DomainModel(), "test/0", snapshots=connections.snapshots)
        journal.start()
        try:
            await asyncio.wait_for(journal.loaded.wait(), DEADLINE_S)
            return await work(journal)
        finally:
            await journal.stop()
            await asyncio.to_thread(connections.producer.stop)

    return asyncio.run(run())


async def create_scope(journal: Journal, name: str) -> None:
    def decide(reader: Reader, context: Context) -> Decision:
        return registry.decide(reader, CreateScope(name), context)

    await asyncio.wait_for(journal.propose(name, decide, RequestFacts(f"create-{name}")), DEADLINE_S)


def sluice(system: System, *arguments: str) -> Any:
    """What a command prints as JSON."""
    command = [str(Path(sys.executable).with_name("sluice")), *arguments, "--json"]
    environment = {**os.environ, "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return json.loads(ended.stdout)


def begins(system: System) -> list[int]:
    """Where each partition of the journal begins."""
    (journal,) = [topic for topic in sluice(system, "topic", "sizes") if topic["topic"] == "sluice.journal"]
    return [partition["begin"] for partition in journal["partitions"]]


def begins_from_snapshot(system: System, name: str) -> None:
    """Return once it does; what its helpers say stands in the same log."""

    service = name.rpartition("-")[0]

    def said() -> set[str]:
        lines = map(json.loads, system.log(name).read_text().splitlines())
        return {line["message"] for line in lines if line["service"] == service}

    eventually(lambda: said() >= {"snapshot loaded", "started"}, DEADLINE_S, f"{name} begins from a snapshot")


def test_a_journal_that_is_trimmed_behind_confirmed_snapshots_is_known_whole(kept: System) -> None:
    names = [f"scope-{number}" for number in range(40)]

    async def fill(journal: Journal) -> None:
        async def is_trimmed() -> bool:
            """With each look there is a little more: a snapshot is due only behind new records."""
            for _ in range(AT_A_LOOK):
                names.append(f"scope-{len(names)}")
                await create_scope(journal, names[-1])
            return all(begin > 0 for begin in await asyncio.to_thread(begins, kept))

        for name in names[:]:
            await create_scope(journal, name)
        await eventually_async(is_trimmed, DEADLINE_S, "both partitions are trimmed")

    # An instance that knows of no other one confirms by itself.
    eventually(lambda: metric(kept, "cluster-manager-0", MEMBERS) >= 2, DEADLINE_S, "both are members")
    with_journal(kept, fill)

    async def read(journal: Journal) -> list[bool]:
        return [find_scope(journal.reader(name), name) is not None for name in names]

    assert all(with_journal(kept, read))
    listed = [one for one in sluice(kept, "snapshot", "list", "--check") if one["problem"] is None]
    assert len(listed) >= 4 and {one["partition"] for one in listed} == {0, 1}
    assert all(one["by"] not in one["confirmedBy"] for one in listed), "another instance confirms"
    assert any(one["confirmedBy"] for one in listed)
    assert sluice(kept, "scope", "show", names[0], "--at", "now")["name"] == names[0]
    for number in range(2):
        kept.kill(f"cluster-manager-{number}")
        kept.start(f"cluster-manager-{number}", wait=False)

    for number in range(2):
        begins_from_snapshot(kept, f"cluster-manager-{number}")


def test_a_process_that_stood_still_through_a_trimming_ends_and_begins_anew(kept: System) -> None:
    name = "api-gateway-0"
    kept.start(name, wait=False)
    begins_from_snapshot(kept, name)
    kept.freeze(name)

    async def fill(journal: Journal) -> None:
        ends, number = await journal.ends(), 0

        async def is_trimmed_there() -> bool:
            nonlocal number
            for _ in range(AT_A_LOOK):
                number += 1
                await create_scope(journal, f"meanwhile-{number}")
            now = await asyncio.to_thread(begins, kept)
            return any(begin > ends[partition] + 1 for partition, begin in enumerate(now))

        await eventually_async(is_trimmed_there, DEADLINE_S, "records that it has not seen are trimmed")

    with_journal(kept, fill)
    kept.thaw(name)
    assert kept.wait_ended(name, DEADLINE_S), "it cannot go on"
    assert kept.exit_code(name) == 3
    kept.log(name).write_text("")
    kept.start(name, wait=False)
    begins_from_snapshot(kept, name)


def test_a_journal_that_was_made_anew_stops_all_and_comes_back_from_its_snapshots(kept: System, tmp_path: Path) -> None:
    names = {f"meanwhile-{number}" for number in range(1, AT_A_LOOK)}
    admin = AdminClient({"bootstrap.servers": kept.kafka_bootstrap, "log_level": 2})

    def delete(*topics: str) -> None:
        for answer in admin.delete_topics(list(topics)).values():
            answer.result()
        eventually(lambda: not {*topics} & admin.list_topics().topics.keys(), DEADLINE_S, "they are gone")

    def has_stopped(name: str) -> bool:
        try:
            return "partition 0: it has lost its end" in readiness(kept, name)[1]
        except httpx.TransportError:
            return False

    kept.kill("cluster-manager-1")
    delete("sluice.journal")
    kept.kill("cluster-manager-0")
    kept.start("cluster-manager-0", wait=False)
    eventually(lambda: has_stopped("cluster-manager-0"), DEADLINE_S, "who begins sees that its snapshot is ahead")
    eventually(lambda: has_stopped("api-gateway-0"), DEADLINE_S, "who runs sees that offsets begin anew")
    for name in ("api-gateway-0", "cluster-manager-0"):
        kept.kill(name)
    found = sluice(kept, "backup", "create", str(tmp_path / "backup"))
    assert found["fromSnapshots"] == [0, 1]
    delete(*(name for name in admin.list_topics().topics if name.startswith("sluice.")))
    assert sluice(kept, "backup", "restore", str(tmp_path / "backup"))["scopes"] == found["scopes"] > len(names)

    async def read(journal: Journal) -> list[str]:
        return [name for name in names if find_scope(journal.reader(name), name) is None]

    assert with_journal(kept, read) == []
