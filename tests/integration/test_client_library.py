"""The client library on the whole system: counting together, lost answers, and one stream together with Java."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from integration.test_java_client import build
from support.controller import unique
from support.counter import counting
from support.wait import SOON_S, eventually_async

from harness import System
from sluice.pravega import ConnectionFailure, Failure, LocatedSegmentStores
from sluice.pravega.calls import RequestChannel
from sluice.pravega.wire.command import Command, Numbered
from sluice_client import (
    Client,
    Controller,
    GroupConfig,
    RetentionPolicy,
    RetentionType,
    Revision,
    RevisionedStream,
    ScalingPolicy,
    SegmentInput,
    StreamConfig,
    TimeWindow,
    Transaction,
    TransactionStatus,
    create_reader_group,
    open_client,
    open_reader,
)
from sluice_local import java, launch
from sluice_local.settings import LocalSettings

pytestmark = pytest.mark.integration

COUNTERS = ("a", "b", "c", "d")
STEPS = 50
APPENDS = 40
PEERS_S = 120.0
"""Within which processes that tests start have done their work."""
WATERMARKS_S = 90.0
"""Watermarks come every ten seconds."""
TESTS = Path(__file__).parents[1]


@pytest.fixture
async def client(system: System) -> AsyncIterator[Client]:
    async with open_client(system.grpc_address) as client:
        yield client


@pytest.fixture
async def scope(client: Client) -> str:
    scope = unique("sc")
    assert await client.controller.create_scope(scope)
    return scope


@pytest.fixture
async def stream(client: Client, scope: str) -> RevisionedStream:
    assert await client.controller.create_stream(scope, "st")
    return await client.revisioned_stream(scope, "st")


async def test_a_stream_is_made_scaled_truncated_and_removed(client: Client, scope: str) -> None:
    streams = client.streams
    config = StreamConfig(ScalingPolicy(min_segments=2), RetentionPolicy(RetentionType.SIZE, 10**9, 10**10), ("blue",))
    assert await streams.create_stream(scope, "st", config)
    assert [name async for name in streams.streams(scope, tag="blue")] == ["st"]
    before = await streams.describe(scope, "st")
    assert before.config == config
    await streams.scale([before.segments[1].segment], [(0.5, 0.75), (0.75, 1.0)])
    await streams.update_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=3)))
    after = await streams.describe(scope, "st")
    assert [(found.low, found.high) for found in after.segments] == [(0.0, 0.5), (0.5, 0.75), (0.75, 1.0)]
    assert after.config.retention is None and after.head == before.head
    tail = await streams.tail(scope, "st")
    await streams.truncate_stream(tail)
    assert await streams.head(scope, "st") == tail
    await streams.seal_stream(scope, "st")
    assert (await streams.describe(scope, "st")).sealed
    assert [await streams.delete_stream(scope, "st") for _ in range(2)] == [True, False]
    assert await streams.delete_scope(scope)


async def test_transactions_are_read_when_they_are_committed_and_else_never(client: Client, scope: str) -> None:
    await client.streams.create_stream(scope, "st")
    async with await client.begin_transaction(scope, "st", lease_s=10.0) as kept:
        kept.add("key", b"kept")
        await kept.flush()
        assert await kept.ping()
        dropped = await client.begin_transaction(scope, "st")
        dropped.add("key", b"dropped")
        await dropped.flush()
        await dropped.abort()
        await client.streams.update_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=2)))
        kept.add("key", b"kept, too")
    await eventually_async(lambda: _is(kept, TransactionStatus.COMMITTED), SOON_S, "not committed")
    await eventually_async(lambda: _is(dropped, TransactionStatus.ABORTED), SOON_S, "not aborted")
    await client.streams.seal_stream(scope, "st")
    read, segments = list[bytes](), list(await client.controller.head(scope, "st"))
    for segment in segments:
        async with SegmentInput(client.store, segment) as source:
            while (found := await source.next()) is not None:
                read += [event.data for event in found] if isinstance(found, list) else []
        segments += (await client.controller.successors(segment)).keys() - set(segments)
    assert read == [b"kept", b"kept, too"]


async def _is(transaction: Transaction, status: TransactionStatus) -> bool:
    return await transaction.status() is status


async def test_readers_learn_how_far_they_are_in_the_time_of_writers(client: Client, scope: str) -> None:
    name, time, window = f"{scope}/st", 1_000, TimeWindow(None, None)
    await client.streams.create_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=2)))
    await create_reader_group(client, scope, "g", GroupConfig(starts={name: None}))
    async with client.event_writer(scope, "st") as writer, await open_reader(client, scope, "g", "r") as reader:

        async def is_bounded() -> bool:
            nonlocal time, window
            time += 1
            await writer.write(f"{time}", b"event")
            await writer.note_time(time)
            while await reader.next(0.1) is not None:
                pass
            window = await reader.time_window(name)
            return window.lower is not None

        await eventually_async(is_bounded, WATERMARKS_S, "a lower bound")
    assert window.lower is not None and 1_000 < window.lower <= time
    assert window.upper is None or window.lower <= window.upper <= time


async def test_four_processes_count_together_while_all_compact(
    system: System, scope: str, stream: RevisionedStream
) -> None:
    from_the_beginning = counting(stream)
    assert (await from_the_beginning.fetch()).total == 0
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
    arguments = [system.grpc_address, scope, "st"]
    processes = [
        await asyncio.create_subprocess_exec(
            *launcher, sys.executable, "-m", "support.counter", *arguments, who, str(STEPS), cwd=TESTS
        )
        for who in COUNTERS
    ]
    try:
        async with asyncio.timeout(PEERS_S):
            assert [await process.wait() for process in processes] == [0] * len(COUNTERS)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
    assert (await stream.head()).offset > 0
    counted = await from_the_beginning.fetch()
    assert counted.total == STEPS * len(COUNTERS) and counted.by == dict.fromkeys(COUNTERS, STEPS)
    assert await counting(stream).fetch() == counted


class LosingLine:
    """A line whose replies get lost now and then: after the store gave them, or before it has even begun."""

    def __init__(self, channel: RequestChannel, random: Random, under_way: list[asyncio.Task[Command]]) -> None:
        self._channel = channel
        self._random = random
        self._under_way = under_way

    async def call(self, request: Numbered, timeout_s: float) -> Command:
        fate = self._random.random()
        if fate < 0.1:
            await self._channel.call(request, timeout_s)
            raise ConnectionFailure(Failure.LOST, "the reply came")
        if fate < 0.2:
            self._under_way.append(asyncio.create_task(self._channel.call(request, timeout_s)))
            # One turn of the loop, in which the request goes out.
            await asyncio.sleep(0)
            raise ConnectionFailure(Failure.LOST, "the reply comes too late")
        return await self._channel.call(request, timeout_s)


class LosingStores(LocatedSegmentStores):
    """The real segment stores over such lines."""

    def __init__(self, controller: Controller) -> None:
        super().__init__(controller.node_of)
        self.random = Random(7)
        self.under_way: list[asyncio.Task[Command]] = []

    async def _channel(self, segment: str) -> RequestChannel:  # type: ignore[override]
        return LosingLine(await super()._channel(segment), self.random, self.under_way)


async def test_whatever_answers_get_lost_every_entry_is_there_once(system: System, stream: RevisionedStream) -> None:
    async with Controller(system.grpc_address) as controller:
        stores = LosingStores(controller)
        lossy = [RevisionedStream(stores, stream.segment) for _ in range(2)]
        conditional: dict[bytes, Revision] = {}

        async def write(stream: RevisionedStream, who: int) -> None:
            for number in range(APPENDS // 2):
                entry = b"%d.%d" % (who, number)
                if number % 3 == 0:
                    assert await stream.append(entry) > Revision(stream.segment, 0)
                    continue
                while (after := await stream.append_if(entry, await stream.tail())) is None:
                    continue
                conditional[entry] = after

        await asyncio.gather(*(write(stream, who) for who, stream in enumerate(lossy)))
        # What was given up may only fail: its append was repeated meanwhile.
        lost = await asyncio.gather(*stores.under_way, return_exceptions=True)
        assert lost
        await stores.close()
    read = [pair async for pair in stream.read(await stream.head())]
    for who in range(2):
        own = [entry for _, entry in read if entry.startswith(b"%d." % who)]
        assert own == [b"%d.%d" % (who, number) for number in range(APPENDS // 2)]
    assert {entry: after for after, entry in read if entry in conditional} == conditional


async def test_java_and_python_share_a_stream(
    system: System, scope: str, stream: RevisionedStream, runs_folder: Path
) -> None:
    first = await stream.append_if(b"first", await stream.tail())
    assert first is not None
    second = await stream.append(b"\x00\xff" * 500_000)
    assert await stream.set_mark(first, None)
    peer = ("RevisionedPeer", f"tcp://{system.grpc_address}", scope, "st")
    said = await asyncio.to_thread(java_peer, runs_folder / "revisioned.log", *peer)
    assert said[:3] == [
        f"mark {first}",
        f"entry {first} {b'first'.hex()}",
        f"entry {second} {'00ff' * 500_000}",
    ]
    entries = [pair async for pair in stream.read(second)]
    assert [entry for _, entry in entries] == [b"on condition", b"unconditionally"]
    after = entries[0][0]
    assert said[3:] == [f"appended {after}", "appended null", f"marked {after}"]
    assert await stream.mark() == after == Revision.from_text(said[3].removeprefix("appended "))


def java_peer(log: Path, name: str, *arguments: str) -> list[str]:
    """What a program of the Java client says, line by line."""
    classpath = build(LocalSettings().home / "java-client")
    options = ("-XX:+UseSerialGC", "-Xmx128m", *java.SHORT_LIVED, "-Djava.net.preferIPv4Stack=true")
    main = (f"io.sluice.client.{name}", *arguments)
    with log.open("wb") as errors:
        command = (java.executable(), *options, "-cp", classpath, *main)
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=PEERS_S, check=True
        ).stdout.splitlines()
