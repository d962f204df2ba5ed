"""Reader groups on the whole system that Java's readers and ours share, while their stream is scaled."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from signal import SIGKILL

import pytest
from integration.test_java_client import build
from support.controller import unique
from support.wait import eventually_async

from harness import System
from sluice_client import (
    CheckpointReached,
    Client,
    Event,
    EventReader,
    GroupConfig,
    ReaderGroup,
    Retention,
    ScalingPolicy,
    StreamConfig,
    create_reader_group,
    open_client,
    open_reader,
    open_reader_group,
)
from sluice_local import java
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DEADLINE_S = 120.0
KEYS = [f"key-{number}" for number in range(16)]


class Reading:
    """What the readers of a group return, in a task for each."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        """Readers with the events they returned, in the order of return."""
        self.checkpoints: defaultdict[str, set[str]] = defaultdict(set)
        self._changed = asyncio.Event()

    def record(self, reader: str, kind: str, what: str) -> None:
        if kind == "event":
            self.events.append((reader, what))
        elif kind == "checkpoint":
            self.checkpoints[reader].add(what)
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await self._changed.wait()

    async def read(self, reader: EventReader) -> None:
        """Returns at the end of data. A cancelled one is gone without leaving its group, as if it was killed."""
        async for item in reader:
            match item:
                case Event():
                    self.record(reader.id, "event", item.data.decode())
                case CheckpointReached():
                    self.record(reader.id, "checkpoint", item.name)

    def has_all(self, traffic: "Traffic") -> bool:
        return {event for _, event in self.events} == set(traffic.events)

    async def relay(self, reader: str, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            kind, _, what = line.decode().strip().partition(" ")
            self.record(reader, kind, what)

    def by(self, reader: str) -> list[str]:
        return [event for name, event in self.events if name == reader]


@asynccontextmanager
async def _java_reader(system: System, reading: Reading, *arguments: str) -> AsyncIterator[Process]:
    """A reader in Java, which has joined its group; the arguments are those of `GroupPeer` behind the address."""
    classpath = await asyncio.to_thread(build, LocalSettings().home / "java-client")
    command = [java.executable(), *java.SHORT_LIVED, "-cp", classpath, "io.sluice.client.GroupPeer"]
    process = await asyncio.create_subprocess_exec(*command, f"tcp://{system.grpc_address}", *arguments, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            assert await process.stdout.readline() == b"joined\n"
        relay = asyncio.create_task(reading.relay(arguments[2], process))
        yield process
        async with asyncio.timeout(DEADLINE_S):
            await relay
            assert await process.wait() in (0, -SIGKILL)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Traffic:
    """Numbered events under 16 keys, and what has been written."""

    def __init__(self, client: Client, scope: str) -> None:
        self._writer = client.event_writer(scope, "st")
        self.count = 0

    async def write(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            key = KEYS[number % len(KEYS)]
            self._writer.add(key, f"{key} {number:06}".encode())
        self.count += count
        await self._writer.flush()

    @property
    def events(self) -> list[str]:
        return [f"{KEYS[number % len(KEYS)]} {number:06}" for number in range(self.count)]


async def test_java_and_python_share_a_group_while_its_stream_is_scaled(system: System) -> None:
    scope = unique("sc")
    async with open_client(system.grpc_address) as client:
        await client.streams.create_scope(scope)
        await client.streams.create_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=4)))
        reading, traffic = Reading(), Traffic(client, scope)
        await traffic.write(200)
        async with _java_reader(system, reading, scope, "g", "java", "st"):
            python = await open_reader(client, scope, "g", "python")
            task = asyncio.create_task(reading.read(python))
            await reading.until(lambda: len(reading.events) == traffic.count)
            # Segments are shared out at checkpoints, which each reader returns.
            # In a quiet stream, one that had events of its segments gives all but one of them to one that had none.
            await reading.until(lambda: len(python.segments) >= 2)
            await reading.until(lambda: bool(reading.checkpoints["java"] & reading.checkpoints["python"]))
            for count in (8, 2):
                await traffic.write(200)
                await client.streams.update_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=count)))
            await traffic.write(200)
            await client.streams.seal_stream(scope, "st")
            async with asyncio.timeout(DEADLINE_S):
                await task
            await python.close()
        assert sorted(event for _, event in reading.events) == sorted(traffic.events)
        assert reading.by("java") and reading.by("python")
        for reader in ("java", "python"):
            for key in KEYS:
                read = [event for event in reading.by(reader) if event.startswith(f"{key} ")]
                assert read == sorted(read)


async def _is_published(group: ReaderGroup) -> bool:
    """Whether the controller has taken what the last checkpoint has."""
    checkpoints = (await group.shared.refresh()).checkpoints
    return bool(checkpoints.last) and checkpoints.published


async def test_what_a_killed_reader_held_is_read_by_the_others(system: System) -> None:
    """It blocks every checkpoint until it is reported; then the others begin at its last one."""
    scope = unique("sc")
    async with open_client(system.grpc_address) as client:
        await client.streams.create_scope(scope)
        await client.streams.create_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=4)))
        reading, traffic = Reading(), Traffic(client, scope)
        await traffic.write(100)
        config = GroupConfig(
            starts={f"{scope}/st": None}, refresh_ms=200, automatic_checkpoint_ms=500, retention=Retention.AUTOMATIC
        )
        assert await create_reader_group(client, scope, "g", config)
        group = await open_reader_group(client, scope, "g")
        async with _java_reader(system, reading, scope, "g", "java") as killed:
            python = await open_reader(client, scope, "g", "python")
            task = asyncio.create_task(reading.read(python))
            await reading.until(lambda: reading.has_all(traffic) and len(python.segments) >= 2)
            killed.kill()
            await killed.wait()
        await traffic.write(100)
        await group.reader_offline("java")
        await reading.until(lambda: reading.has_all(traffic) and len(python.segments) == 4)
        await eventually_async(lambda: _is_published(group), DEADLINE_S, "the last checkpoint is not published")
        task.cancel()
        await asyncio.wait([task])
        await traffic.write(100)
        await group.reader_offline("python")
        async with _java_reader(system, reading, scope, "g", "other"):
            await reading.until(lambda: reading.has_all(traffic))
            await client.streams.seal_stream(scope, "st")
        assert reading.by("other")
