"""What Java's client and ours make of one reader group besides reading in it, on the whole system."""

import asyncio
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Self
from zlib import crc32

import pytest
from integration.test_java_client import build
from support.controller import unique
from support.group_histories import History
from support.group_reader import next_events
from support.wait import eventually_async

from harness import System
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.reader_group_state import GroupState, decode_update, encode_update
from sluice_client import (
    Checkpoint,
    CheckpointGivenUp,
    Client,
    ReaderGroup,
    create_reader_group,
    open_client,
    open_reader,
    open_reader_group,
)
from sluice_client.groups import decisions
from sluice_local import java
from sluice_local.settings import LocalSettings

# The first test waits for the client's jars to be fetched where they are not there yet.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HISTORIES, STEPS = 200, 60
SOON_S = 60.0
EVENT = 8 + 4


@pytest.fixture(scope="module")
def classpath() -> str:
    return build(LocalSettings().home / "java-client")


@pytest.fixture
async def client(system: System) -> AsyncIterator[Client]:
    async with open_client(system.grpc_address) as client:
        yield client


@pytest.fixture
async def scope(client: Client) -> str:
    """With a stream of three segments."""
    scope = unique("sc")
    await client.controller.create_scope(scope)
    await client.controller.create_stream(scope, "st", 3)
    return scope


class JavaPeer:
    """A Java process that takes part in a group; `read` is what its readers got, `out` who learned of a reset."""

    def __init__(self, process: Process) -> None:
        self.read: dict[str, list[str]] = {}
        self.out: set[str] = set()
        self._process = process
        self._replies: asyncio.Queue[str | None] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    @asynccontextmanager
    async def started(cls, classpath: str, system: System, scope: str) -> AsyncIterator[Self]:
        command = [java.executable(), *java.SHORT_LIVED, "-Xmx256m", "-Djava.net.preferIPv4Stack=true"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "io.sluice.client.GroupPeer"]
        process = await asyncio.create_subprocess_exec(
            *command, f"tcp://{system.grpc_address}", scope, "g", stdin=PIPE, stdout=PIPE
        )
        peer = cls(process)
        try:
            yield peer
        finally:
            await peer.kill()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._listening

    async def __call__(self, *command: str) -> str:
        """What the process replies."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{' '.join(command)}\n".encode())
        async with asyncio.timeout(SOON_S):
            reply = await self._replies.get()
        assert reply is not None, f"{command}: the process ended"
        return reply

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            match line.decode().split():
                case ["event", reader, event]:
                    self.read.setdefault(reader, []).append(event)
                case ["out", reader]:
                    self.out.add(reader)
                case ["reply", *reply]:
                    self._replies.put_nowait(" ".join(reply))
        self._replies.put_nowait(None)


async def write(client: Client, scope: str, events: list[str]) -> None:
    writer = client.event_writer(scope, "st")
    for event in events:
        writer.add(event, event.encode())
    await writer.flush()


def numbered(first: int) -> list[str]:
    return [f"{number:04d}" for number in range(first, first + 30)]


async def until_read(peer: JavaPeer, reader: str, events: list[str]) -> None:
    """A reader gets these events, and no others since it began, in any order."""
    await eventually_async(lambda: len(peer.read.get(reader, [])) >= len(events), SOON_S, f"{reader} reads {events}")
    assert sorted(peer.read[reader]) == events


def test_java_makes_the_same_state_of_every_update(classpath: str) -> None:
    histories = [History(seed, STEPS) for seed in range(HISTORIES)]
    lines = ["\n".join(encode_update(update).hex() for update, _ in history.steps) for history in histories]
    done = subprocess.run(
        [java.executable(), *java.SHORT_LIVED, "-cp", classpath, "io.pravega.client.stream.impl.GroupStateFold"],
        input="\n\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = iter(done.stdout.split())
    for history in histories:
        for update, state in history.steps:
            java_state = decode_update(bytes.fromhex(next(found)))
            assert java_state == state, update


async def test_java_readers_in_a_group_that_python_made(
    system: System, client: Client, scope: str, classpath: str
) -> None:
    await create_reader_group(
        client, scope, "g", GroupConfig(starts={f"{scope}/st": None}, automatic_checkpoint_ms=-1, refresh_ms=500)
    )
    group = await open_reader_group(client, scope, "g")
    await write(client, scope, numbered(0))
    async with JavaPeer.started(classpath, system, scope) as peer:
        await peer("reader", "j1")
        await until_read(peer, "j1", numbered(0))
        first = await group.checkpoint("by-python")
        assert sum(first.cuts[f"{scope}/st"].offsets.values()) == 30 * EVENT
        await write(client, scope, numbered(30))
        assert await group.unread_bytes() == int(await peer("unread")) == 30 * EVENT
        await until_read(peer, "j1", numbered(0) + numbered(30))
        assert sum((await group.generate_cuts())[f"{scope}/st"].offsets.values()) == 60 * EVENT

        # Java restores what Python kept, and the reverse.
        assert await peer("reset", first.to_bytes().hex()) == "by-python"
        await eventually_async(lambda: "j1" in peer.out, SOON_S, "j1 learns of the reset")
        await peer("reader", "j2")
        await until_read(peer, "j2", numbered(30))
        second = Checkpoint.from_bytes(bytes.fromhex(await peer("checkpoint", "by-java")))
        assert sum(second.cuts[f"{scope}/st"].offsets.values()) == 60 * EVENT
        assert (await group.config()).generation == 1 and await group.unread_bytes() == 0
        await group.reset_to(first.cuts)
        await eventually_async(lambda: "j2" in peer.out, SOON_S, "j2 learns of the reset")
        await peer("reader", "j3")
        await until_read(peer, "j3", numbered(30))

        # A dead reader holds up checkpoints until it is reported.
        await peer.kill()
        with pytest.raises(CheckpointGivenUp, match="j3"):
            await group.checkpoint(deadline_s=3.0)
        await group.reader_offline("j3")
        assert (await group.checkpoint()).cuts == first.cuts == await group.cuts()


async def test_events_of_more_than_8_mib_are_read_by_java_and_python_whoever_wrote_them(
    system: System, client: Client, scope: str, classpath: str
) -> None:
    large = [b"java" * (3 << 20), b"python" * (2 << 20)]
    for name in ("g", "typed"):
        await create_reader_group(client, scope, name, GroupConfig(starts={f"{scope}/st": None}))
    async with JavaPeer.started(classpath, system, scope) as peer:
        await peer("write", "st", "java", str(3 << 20))
        async with client.event_writer(scope, "st", large_events=True) as writer:
            await writer.write("key", large[1])
        await peer("reader", "j1")
        await until_read(peer, "j1", sorted(f"{len(event)}:{crc32(event)}" for event in large))
    async with await open_reader(client, scope, "typed", "p1") as reader:
        events = await next_events(reader, 2, SOON_S)
        assert sorted(event.data for event in events) == large
        assert [await client.fetch_event(event.pointer) for event in events] == [event.data for event in events]


async def _pending(group: ReaderGroup, reader: str) -> bool:
    state = await group.shared.refresh()
    return any(reader in readers for readers in state.checkpoints.waiting.values())


async def test_a_checkpoint_with_a_hole_is_published(client: Client, scope: str) -> None:
    """What was completed stands there with its end, and what still waits is in the cut: the controller takes it."""
    name = f"{scope}/st"
    config = GroupConfig(starts={name: None}, automatic_checkpoint_ms=-1, retention=Retention.AUTOMATIC)
    await create_reader_group(client, scope, "g", config)
    group = await open_reader_group(client, scope, "g")
    await write(client, scope, numbered(0))
    one, two, three = await client.controller.segments(scope, "st")
    await client.streams.scale([one, two], [(0.0, 0.5), (0.5, 2 / 3)])
    await group.shared.update(partial(decisions.join, reader="p"))
    lag = decisions.lag_of("p", 0, None, {}, {})
    await group.shared.update(partial(decisions.acquire, reader="p", lag=lag))
    for positions in ({one: 0, two: -1, three: 0}, {one: EVENT, three: EVENT}):
        checkpoint = asyncio.create_task(group.checkpoint())
        await eventually_async(lambda: _pending(group, "p"), SOON_S, "p is to tell where it is")
        id = next(iter(group.shared.state.checkpoints.waiting))
        await group.shared.update(partial(decisions.checkpoint, reader="p", id=id, positions=positions))
        await checkpoint
        await group.publish_last_checkpoint()
        assert (await _refreshed(group)).checkpoints.published
        if positions.get(two) == -1:
            after = await client.controller.successors(two)
            found = {segment: {_id(before) for before in predecessors} for segment, predecessors in after.items()}
            await group.shared.update(partial(decisions.complete, reader="p", segment=two, successors=found, ranges={}))


async def _refreshed(group: ReaderGroup) -> GroupState:
    return await group.shared.refresh()


def _id(segment: str) -> int:
    return int(segment.rpartition("/")[2].partition(".")[0])
