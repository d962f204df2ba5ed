"""The abort agent against a real Kafka: at least once and in order, through kill -9, an outage and failing handlers.

Run as a program, this file is one member of the group in a process of its own, that a test can kill.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.kafka import Groups, produce

from harness import System, eventually_async
from sluice.messaging.producer import KafkaProducer
from sluice.messaging.requests import cloud_event_headers
from sluice.messaging.topics import ABORT, ensure_topics
from sluice.settings import ServiceSettings
from txn_manager.abort_agent import AbortAgent, KafkaAwayError
from txn_manager.abort_lanes import Aborting

pytestmark = pytest.mark.integration

PARTITIONS = 16
JOINS_S = 60.0
HANDLES_S = 60.0
OUTAGE_S = 10.0
STOPS_S = 20.0
RECORDS = 2000


@pytest.fixture(scope="module")
def kafka(runs_folder: Path) -> Iterator[System]:
    """Only the broker, with the topics."""
    system = System(runs_folder / "aborts", partitions=PARTITIONS)
    try:
        system.start("kafka")
        ensure_topics({"bootstrap.servers": system.kafka_bootstrap}, PARTITIONS, 1)
        yield system
    finally:
        system.down()


class Handled:
    """What one member was given: the records of the keys of one test, for all tests share the topic."""

    def __init__(self, mark: str, *fails: bytes) -> None:
        self.mark = mark
        self.fails = fails
        self.records: list[Aborting] = []
        self.failed: list[tuple[bytes, str]] = []

    async def handle(self, record: Aborting) -> None:
        if record.key.startswith(self.mark):
            self.records.append(record)
            if record.value in self.fails:
                raise ValueError("cannot")

    async def on_failure(self, record: Aborting, error: Exception) -> None:
        self.failed.append((record.value, str(error)))

    @property
    def values(self) -> set[bytes]:
        return {record.value for record in self.records}


def agent_of(bootstrap: str, group: str, instance: str, handled: Any) -> AbortAgent:
    settings = ServiceSettings(kafka_bootstrap=bootstrap, instance=instance)
    return AbortAgent(settings, group, handled.handle, handled.on_failure)


@asynccontextmanager
async def running(agent: AbortAgent) -> AsyncIterator[AbortAgent]:
    await agent.start()
    try:
        yield agent
    finally:
        await stopped(agent)


async def stopped(agent: AbortAgent) -> None:
    began = time.monotonic()
    await agent.stop()
    assert time.monotonic() - began < STOPS_S


async def joined(agent: AbortAgent) -> None:
    await eventually_async(lambda: agent.joined and agent.failure is None, JOINS_S, "the agent has joined")


def send(kafka: System, mark: str, count: int, keys: int = 40) -> set[bytes]:
    """Records over many keys; the values of a key count upwards."""
    for key in range(keys):
        produce(kafka.kafka_bootstrap, ABORT.name, f"{mark}{key}", *(b"%d" % n for n in range(key, count, keys)))
    return {b"%d" % n for n in range(count)}


async def send_compressed(kafka: System, key: str, value: bytes) -> None:
    """A record as our services write it."""
    producer = KafkaProducer({"bootstrap.servers": kafka.kafka_bootstrap})
    producer.start()
    try:
        await producer.send(ABORT.name, key, value, cloud_event_headers("AbortTransaction", "id", "test/1", 1, key))
    finally:
        await asyncio.to_thread(producer.stop)


def first_times(records: list[Aborting]) -> list[Aborting]:
    """Without repeats, which come whenever the group is dealt out anew, or the machine stands still for long."""
    return list({(record.partition, record.offset): record for record in records}.values())


def times(handled: Handled, value: bytes) -> int:
    """How often a record was handled, repeats included."""
    return sum(record.value == value for record in handled.records)


def assert_in_order(records: list[Aborting]) -> None:
    """Records of a key come in order; a repeat may only begin further back, and then goes on in order."""
    firsts: dict[str, list[int]] = defaultdict(list)
    for record in first_times(records):
        firsts[record.key].append(record.offset)
    assert all(offsets == sorted(offsets) for offsets in firsts.values())


async def test_any_record_is_handled_and_once_committed_not_again(kafka: System) -> None:
    mark, group = uuid4().hex, uuid4().hex
    odd = [b'{"json":1}', b"\x00\xffnot json", b""]
    sent = [m for value in odd for m in produce(kafka.kafka_bootstrap, ABORT.name, mark, value)]
    large = b"x" * 2_000_000
    await send_compressed(kafka, mark, large)
    first = Handled(mark)
    async with running(agent_of(kafka.kafka_bootstrap, group, "a", first)) as agent:
        await eventually_async(lambda: large in first.values, JOINS_S, "they are handled")
        assert agent.joined
        handled = first_times(first.records)
        assert [r.value for r in handled] == [*odd, large]
        assert [r.offset for r in handled[:-1]] == [m.offset() for m in sent]
        assert [r.timestamp_ms for r in handled[:-1]] == [m.timestamp()[1] for m in sent]
        groups, (*_, last) = Groups(kafka.kafka_bootstrap), handled

        def committed() -> bool:
            return groups.committed(group, ABORT.name, last.partition) == last.offset + 1

        asked: Callable[[], bool | Awaitable[bool]] = partial(asyncio.to_thread, committed)
        await eventually_async(asked, JOINS_S, "they are committed")
    (late,) = produce(kafka.kafka_bootstrap, ABORT.name, mark, b"late")
    second = Handled(mark)
    async with running(agent_of(kafka.kafka_bootstrap, group, "b", second)):
        await eventually_async(lambda: second.records, JOINS_S, "the late one is handled")
    assert [r.offset for r in first_times(second.records)] == [late.offset()]


async def test_a_failing_record_is_handed_on_and_the_others_go_on(kafka: System) -> None:
    mark = uuid4().hex
    handled = Handled(mark, b"1")
    async with running(agent_of(kafka.kafka_bootstrap, uuid4().hex, "a", handled)) as agent:
        await joined(agent)
        produce(kafka.kafka_bootstrap, ABORT.name, mark, b"0", b"1", b"2")
        await eventually_async(lambda: b"2" in handled.values, HANDLES_S, "all are handled")
        assert [r.value for r in first_times(handled.records)] == [b"0", b"1", b"2"]
        assert handled.failed == [(b"1", "cannot")] * times(handled, b"1")
        await joined(agent)


async def test_a_record_that_nobody_keeps_comes_again(kafka: System) -> None:
    mark = uuid4().hex
    handled = Handled(mark, b"1")
    failures: list[BaseException | None] = []

    async def kept_at_the_second_time(record: Aborting, error: Exception) -> None:
        failures.append(agent.failure)
        if len(failures) < 2:
            raise OSError("nowhere to put it")
        await handled.on_failure(record, error)

    settings = ServiceSettings(kafka_bootstrap=kafka.kafka_bootstrap, instance="a")
    agent = AbortAgent(settings, uuid4().hex, handled.handle, kept_at_the_second_time)
    async with running(agent):
        produce(kafka.kafka_bootstrap, ABORT.name, mark, b"0", b"1", b"2")
        await eventually_async(lambda: b"2" in handled.values, JOINS_S, "the next record is handled")
    assert len(failures) == times(handled, b"1") >= 2
    assert handled.failed == [(b"1", "cannot")] * (len(failures) - 1)


async def test_a_member_that_is_killed_loses_nothing(kafka: System, tmp_path: Path) -> None:
    mark, group = uuid4().hex, uuid4().hex
    others = tmp_path / "handled"
    path = os.pathsep.join(part for part in sys.path if part)
    member = subprocess.Popen(  # noqa: ASYNC220 - returns at once
        [sys.executable, __file__, kafka.kafka_bootstrap, group, mark, str(others)],
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        handled = Handled(mark)
        async with running(agent_of(kafka.kafka_bootstrap, group, "survivor", handled)) as agent:
            await joined(agent)
            await eventually_async(others.exists, JOINS_S, "the other one has joined")
            first = await asyncio.to_thread(send, kafka, f"{mark}-first-", RECORDS // 2)

            def both_work() -> bool:
                return bool(others.read_text()) and bool(handled.records)

            await eventually_async(both_work, HANDLES_S, "both members handle records")
            sending = asyncio.create_task(asyncio.to_thread(send, kafka, f"{mark}-second-", RECORDS // 2))
            member.kill()
            member.wait()
            second = await sending

            def by_anyone(prefix: str) -> set[bytes]:
                lines = (line.partition(" ") for line in others.read_text().splitlines())
                theirs = {value.encode() for key, _, value in lines if key.startswith(prefix)}
                return theirs | {r.value for r in handled.records if r.key.startswith(prefix)}

            def all_handled() -> bool:
                return by_anyone(f"{mark}-first-") == first and by_anyone(f"{mark}-second-") == second

            await eventually_async(all_handled, HANDLES_S, "every record was handled by one of them")
            await joined(agent)
            assert_in_order(handled.records)
    finally:
        member.kill()
        member.wait()


async def test_it_starts_and_stops_without_kafka_and_goes_on_after_an_outage(kafka: System) -> None:
    mark = uuid4().hex
    before, late, leaving = Handled(mark), Handled(mark), Handled(mark)
    patient = agent_of(kafka.kafka_bootstrap, uuid4().hex, "patient", before)
    leaver = agent_of(kafka.kafka_bootstrap, uuid4().hex, "leaver", leaving)
    other = agent_of(kafka.kafka_bootstrap, uuid4().hex, "late", late)
    async with running(patient), running(leaver), running(other):
        await joined(patient)
        await other.stop()
        expected = await asyncio.to_thread(send, kafka, mark, 100)
        await eventually_async(lambda: before.values == leaving.values == expected, HANDLES_S, "all are handled")
        await asyncio.to_thread(kafka.kill, "kafka")
        ends = time.monotonic() + OUTAGE_S
        await stopped(leaver)
        await other.start()
        await eventually_async(lambda: isinstance(other.failure, KafkaAwayError), JOINS_S, "it says what is missing")
        await eventually_async(lambda: time.monotonic() > ends, 2 * OUTAGE_S, "the outage is over")
        await asyncio.to_thread(kafka.start, "kafka")
        expected = await asyncio.to_thread(send, kafka, mark, 200)
        await eventually_async(lambda: before.values == expected, HANDLES_S, "the patient one goes on")
        await eventually_async(lambda: late.values == expected, HANDLES_S, "the late one has all of them")
        await joined(patient)
        await joined(other)
        assert_in_order(before.records)


async def member(bootstrap: str, group: str, mark: str, path: str) -> None:
    """One member: makes the file when it has joined, then adds a line for each record."""
    lines: list[str] = []
    note = lines.append

    class Noted(Handled):
        async def handle(self, record: Aborting) -> None:
            if record.key.startswith(mark):
                note(f"{record.key} {record.value.decode()}\n")

    agent = agent_of(bootstrap, group, "killed", Noted(mark))
    await agent.start()
    await joined(agent)
    with Path(path).open("w", buffering=1) as out:  # noqa: ASYNC230 - a file of a test
        out.writelines(lines)
        note = out.write  # type: ignore[assignment]
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(member(*sys.argv[1:5]))
