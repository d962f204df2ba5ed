"""`python -m bench.shared_group`: three readers in Java and three in Python share a group, and each is killed once.

They read a stream of 24 segments of a private system, which is scaled five times and written to meanwhile, and make a
checkpoint every second. Each reader in turn gets SIGKILL; it is reported, and another one joins. What has to hold:
every event is read, no segment waits longer than 15 s for a reader, each checkpoint completes or says what it waited
for, and whoever reads from the cut of a complete one gets all that was not read before it. Exit code 1 if any does not.
"""

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from integration.test_java_client import build
from support.controller import unique

from bench.systems import private_system
from sluice_client import (
    CheckpointGivenUp,
    Client,
    ClientError,
    Event,
    GroupConfig,
    ReaderGroup,
    ScalingPolicy,
    StreamConfig,
    StreamCut,
    create_reader_group,
    open_client,
    open_reader,
    open_reader_group,
)
from sluice_local import java, launch
from sluice_local.settings import LocalSettings

SEGMENTS = (24, 12, 20, 8, 16, 24)
KEYS = [f"key-{number}" for number in range(64)]
UNREAD_S = 15.0
_WRITE_EVERY_S, _EVENTS = 0.1, 20
_CHECKPOINT_S = 20.0
_DEADLINE_S = 120.0
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_TESTS = Path(__file__).parents[1] / "tests"


class Readers:
    """The processes that read, and what each of them said, in order."""

    def __init__(self, address: str, scope: str, classpath: str) -> None:
        self._address, self._scope, self._classpath = address, scope, classpath
        self.running: dict[str, Process] = {}
        self.said: dict[str, list[tuple[str, str]]] = {}
        self._relays: list[asyncio.Task[None]] = []

    async def start(self, kind: str) -> None:
        reader = f"{kind}-{len(self.said)}"
        if kind == "java":
            command = [
                java.executable(),
                *java.SHORT_LIVED,
                _QUIET,
                "-cp",
                self._classpath,
                "io.sluice.client.GroupPeer",
            ]
            arguments = [f"tcp://{self._address}", self._scope, "g", reader]
        else:
            command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), sys.executable]
            command += ["-m", "support.group_reader"]
            arguments = [self._address, self._scope, "g", reader]
        process = await asyncio.create_subprocess_exec(*command, *arguments, stdout=PIPE, cwd=_TESTS)
        assert process.stdout is not None
        async with asyncio.timeout(_DEADLINE_S):
            assert await process.stdout.readline() == b"joined\n", reader
        self.running[reader], self.said[reader] = process, []
        self._relays.append(asyncio.create_task(self._relay(reader, process)))

    async def kill(self, reader: str) -> None:
        process = self.running.pop(reader)
        process.kill()
        await process.wait()

    async def end(self) -> None:
        """Waits until all have come to the end of the stream."""
        async with asyncio.timeout(_DEADLINE_S):
            await asyncio.gather(*self._relays)

    def events(self, before: str | None = None) -> set[str]:
        """What was read; only what a reader said before it said this checkpoint."""
        found: set[str] = set()
        for lines in self.said.values():
            for kind, what in lines:
                if (kind, what) == ("checkpoint", before):
                    break
                found |= {what} if kind == "event" else set()
        return found

    async def _relay(self, reader: str, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            kind, _, what = line.decode().strip().partition(" ")
            self.said[reader].append((kind, what))


class Group:
    """The group as a whole: its checkpoints, and how long segments wait for a reader."""

    def __init__(self, group: ReaderGroup) -> None:
        self.group = group
        self.complete: dict[str, StreamCut] = {}
        self.given_up: list[str] = []
        self.longest_wait_s = 0.0
        self._waiting: dict[str, float] = {}

    async def checkpoint(self) -> None:
        """A checkpoint every second."""
        while True:
            try:
                found = await self.group.checkpoint(deadline_s=_CHECKPOINT_S)
                for cut in found.cuts.values():
                    self.complete[found.name] = cut
            except CheckpointGivenUp as error:
                self.given_up.append(str(error))
            await asyncio.sleep(1.0)

    async def watch(self) -> None:
        while True:
            state, now = await self.group.shared.refresh(), time.monotonic()
            self._waiting = {segment: self._waiting.get(segment, now) for segment in state.unassigned}
            self.longest_wait_s = max([self.longest_wait_s, *(now - since for since in self._waiting.values())])
            await asyncio.sleep(0.5)


async def run(address: str) -> list[str]:
    """What did not hold."""
    scope = unique("shared")
    classpath = build(LocalSettings().home / "java-client")
    async with open_client(address) as client:
        await client.streams.create_scope(scope)
        await client.streams.create_stream(scope, "st", StreamConfig(ScalingPolicy(min_segments=SEGMENTS[0])))
        config = GroupConfig(starts={f"{scope}/st": None}, automatic_checkpoint_ms=0, refresh_ms=500)
        await create_reader_group(client, scope, "g", config)
        group, readers = Group(await open_reader_group(client, scope, "g")), Readers(address, scope, classpath)
        watcher = Group(await open_reader_group(client, scope, "g"))
        written: list[str] = []
        for kind in ("java", "python") * 3:
            await readers.start(kind)
        tasks = [asyncio.create_task(work) for work in (group.checkpoint(), watcher.watch())]
        writing = asyncio.create_task(_write(client, scope, written))
        for number, reader in enumerate(list(readers.running)):
            await asyncio.sleep(10.0)
            await readers.kill(reader)
            await watcher.group.reader_offline(reader)
            await readers.start(reader.partition("-")[0])
            if number < len(SEGMENTS) - 1:
                await client.streams.update_stream(
                    scope, "st", StreamConfig(ScalingPolicy(min_segments=SEGMENTS[number + 1]))
                )
            print(f"{reader} was killed: {len(written):,} events, {len(group.complete)} checkpoints", flush=True)
        writing.cancel()
        await asyncio.wait([writing])
        await client.streams.seal_stream(scope, "st")
        await readers.end()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        failures = [f"{task.exception()!r}" for task in tasks if not task.cancelled() and task.exception()]
        return failures + await _violations(client, scope, set(written), readers, group, watcher.longest_wait_s)


async def _violations(
    client: Client, scope: str, written: set[str], readers: Readers, group: Group, longest_wait_s: float
) -> list[str]:
    print(f"{len(group.complete)} checkpoints completed, {len(group.given_up)} were given up", flush=True)
    for reason in group.given_up:
        print(f"  {reason}")
    print(f"the longest that a segment waited for a reader: {longest_wait_s:.1f} s")
    found = [f"{len(written - readers.events())} events were not read"] if written - readers.events() else []
    if longest_wait_s > UNREAD_S:
        found.append(f"a segment waited {longest_wait_s:.1f} s for a reader")
    names = list(group.complete)
    for name in (names[0], names[len(names) // 2], names[-1]):
        behind = await _read_from(client, scope, name, group.complete[name])
        lost = written - behind - readers.events(before=name)
        if lost:
            found.append(f"{len(lost)} events lie before checkpoint {name}, and were not read before it")
    return found


async def _write(client: Client, scope: str, written: list[str]) -> None:
    writer = client.event_writer(scope, "st")
    while True:
        for number in range(len(written), len(written) + _EVENTS):
            key = KEYS[number % len(KEYS)]
            written.append(f"{key}.{number:07}")
            writer.add(key, written[-1].encode())
        # What was added is written, whenever this is cancelled.
        await asyncio.shield(writer.flush())
        await asyncio.sleep(_WRITE_EVERY_S)


async def _read_from(client: Client, scope: str, name: str, cut: StreamCut) -> set[str]:
    """All events behind a cut."""
    config = GroupConfig(starts={f"{scope}/st": cut}, automatic_checkpoint_ms=500, refresh_ms=200)
    await create_reader_group(client, scope, f"from-{name}", config)
    found: set[str] = set()
    async with asyncio.timeout(_DEADLINE_S), await open_reader(client, scope, f"from-{name}", "r") as reader:
        async for item in reader:
            found |= {item.data.decode()} if isinstance(item, Event) else set()
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as home, private_system(Path(home), spark=False) as (system, _):
        try:
            violations = asyncio.run(run(system.grpc_address))
        except ClientError as error:
            violations = [str(error)]
    for violation in violations:
        print(f"VIOLATED  {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
