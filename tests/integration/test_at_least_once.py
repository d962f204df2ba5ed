"""Workers of `examples/at_least_once` as processes on the whole system: killed, frozen, stopped.

That the stream of results misses nothing when a worker is killed is in the tutorial (`test_at_least_once_docs.py`).
By hand 20,000 events and 20 lost workers, where changes are judged a part of that. Each prints its figures.
"""

import asyncio
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast
from uuid import uuid4

import msgspec
import pytest
from integration.test_java_client import build
from redis.asyncio import Redis
from support.crew import Crew, Program
from support.effort import effort

from at_least_once.groups import whole_stream
from at_least_once.idempotent import KeyedStore
from at_least_once.membership import Membership
from at_least_once.streams import ensure_stream
from at_least_once.tally import Summary, Tally
from harness import System, eventually_async
from sluice_client import Client, Event, ScalingPolicy, open_client, open_reader_group
from sluice_local import java
from sluice_local.settings import LocalSettings

pytestmark = pytest.mark.integration

WORKERS = 4
SEGMENTS = 8
EVENTS = effort(20_000, 2_000)
RATE = effort(500, 400)
LOST = effort(20, 4)
MIXED_RATE = effort(200, 100)
"""What workers in Java and Python are given: no more than they process at once on a busy machine."""
FROZEN = 4
"""Every so many of the lost is frozen, the others are killed."""
HEARTBEAT_S, MISSED, CHECKPOINT_S, REFRESH_S = 0.2, 10, 0.5, 0.25
STARTS_S = 60.0
DONE_S = 180.0
CHECKED_S = 60.0
LOOKS_S = 0.05
MOVES_S = (MISSED + 2) * HEARTBEAT_S + REFRESH_S + 2.0
"""Within which the segments of a dead worker are others'."""
BUSY_S = 3.0
"""What a busy machine may add to that, beside the time in which it stands still."""


class Trial:
    """A scope of its own on the system, programs in it, and what has come out of them so far."""

    def __init__(self, crew: Crew, client: Client, scope: str) -> None:
        self.crew = crew
        self.client = client
        self.scope = scope
        self.tally = Tally(0)

    def start_workers(self, count: int) -> list[Program]:
        """Starts workers and waits until they are online."""
        started = [self.crew.start("app") for _ in range(count)]
        for worker in started:
            worker.says("is online", STARTS_S)
        return started

    async def readers(self) -> dict[str, list[str]]:
        """The readers in the group, each with its segments."""
        return await (await open_reader_group(self.client, self.scope, "workers")).readers()

    async def came(self, count: int) -> None:
        """Waits until so many different events have come out."""
        await eventually_async(lambda: self.tally.different >= count, DONE_S, f"{count} events came out")

    async def count_keyed(self, store: KeyedStore) -> None:
        """Counts what comes out as keyed results, without end."""
        while True:
            for data in await store.results(self.tally.events):
                self.tally.add(data)
            await asyncio.sleep(LOOKS_S)

    async def stop(self, workers: list[Program]) -> None:
        """Stops workers, all at once; each ends as it should."""
        for worker in workers:
            worker.says("is online", STARTS_S)
            worker.signal(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0] * len(workers)

    async def count_results(self) -> None:
        """Counts what comes out in the stream of results, without end."""
        async with whole_stream(self.client, self.scope, "stream2") as reader:
            async for item in reader:
                if isinstance(item, Event):
                    self.tally.add(item.data)

    def checked(self) -> Summary:
        """What the sink of keyed results says, which finds nothing missing and nothing bad."""
        checking = self.crew.start("redis-sink", "--expect", str(EVENTS), "--deadline-s", str(CHECKED_S))
        assert checking.wait(2 * CHECKED_S) == 0, checking.log.read_text()[-2000:]
        summary = msgspec.json.decode(checking.log.read_text().splitlines()[-1], type=Summary)
        assert (summary.different, summary.missing, summary.bad, summary.sources) == (EVENTS, 0, 0, 1)
        return summary


@asynccontextmanager
async def trial(system: System, folder: Path, **settings: str) -> AsyncIterator[Trial]:
    scope = f"alo{uuid4().hex[:8]}"
    common = {
        "controller": system.grpc_address,
        "scope": scope,
        "segments": str(SEGMENTS),
        "heartbeat_s": str(HEARTBEAT_S),
        "missed": str(MISSED),
        "checkpoint_s": str(CHECKPOINT_S),
        "refresh_s": str(REFRESH_S),
        "redis_url": system.redis_url,
    }
    async with open_client(system.grpc_address) as client:
        for stream in ("stream1", "stream2"):
            await ensure_stream(client, scope, stream, ScalingPolicy(min_segments=SEGMENTS))
        with Crew(folder, {**common, **settings}) as crew:
            yield Trial(crew, client, scope)


@asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Has something done while the block runs; if it fails, the block does."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        yield
        task.cancel()


async def disturb(run: Trial, crew: list[Program]) -> None:
    """Has all events processed by workers of which some are killed or frozen at random, until that many are lost.

    For each one lost a new one comes. A frozen one goes on when others have found it gone; it has to find that out.
    """
    chance = random.Random(7)
    run.crew.start("generator", "--rate", str(RATE), "--count", str(EVENTS), "--source", "trial")
    for number in range(1, LOST + 1):
        await run.came(int(EVENTS * (number - chance.random()) / (LOST + 1)))
        victim = crew.pop(chance.randrange(len(crew)))
        crew.append(run.crew.start("app"))
        if number % FROZEN:
            victim.kill()
        else:
            victim.says("is online", STARTS_S)
            victim.signal(signal.SIGSTOP)
            await comes_true(partial(is_out, run, victim), "the frozen worker's reader is offline")
            victim.signal(signal.SIGCONT)
            victim.says("begins anew", STARTS_S)
            crew.append(victim)
    await run.came(EVENTS)
    await run.stop(crew)
    state = (await open_reader_group(run.client, run.scope, "workers")).shared.state
    assert not state.assigned and len(state.unassigned) == SEGMENTS


async def comes_true(condition: Callable[[], Awaitable[bool]], message: str) -> None:
    await eventually_async(cast(Callable[[], object], condition), DONE_S, message)


async def is_out(run: Trial, worker: Program) -> bool:
    """Whether none of a worker's readers is in the group."""
    log = worker.log.read_text()
    return not any(f"{reader} is online" in log for reader in await run.readers())


async def test_whatever_worker_is_lost_the_keyed_output_has_each_effect_once(system: System, tmp_path: Path) -> None:
    async with trial(system, tmp_path, output_to="redis") as run, Redis.from_url(system.redis_url) as redis:
        crew, store = run.start_workers(WORKERS), KeyedStore(redis, run.scope, "stream2")
        began = time.monotonic()
        async with beside(run.count_keyed(store)):
            await disturb(run, crew)
        took, refused = time.monotonic() - began, await store.refused()
        summary = run.checked()
        print(f"\n{LOST} workers lost, {took:.1f} s, {refused} results came again and were refused: {summary}")
        assert summary.repeated == 0


async def test_the_segments_of_a_dead_worker_move_in_time(system: System, tmp_path: Path) -> None:
    async with trial(system, tmp_path) as run:
        victim, other = run.start_workers(2)

        async def each_has(segments: int) -> bool:
            held = [len(held) for held in (await run.readers()).values()]
            return held == [segments] * (SEGMENTS // segments)

        await comes_true(partial(each_has, SEGMENTS // 2), "both have their share")
        members = await Membership.open(run.client, run.scope, "workers")
        victim.kill()
        began, before = time.monotonic(), (await members.fetch()).members
        await comes_true(partial(each_has, SEGMENTS), "the other one has all segments")
        took, after = time.monotonic() - began, (await members.fetch()).members
        (reader,) = await run.readers()
        # As the other one counts: if it did not run, no heart of it beat.
        counted = (after[reader] - before.get(reader, 0)) * HEARTBEAT_S
        print(f"\nthe segments of a dead worker moved within {took:.2f} s, {counted:.2f} s of the other one's; "
              f"stated: {MOVES_S:.2f} s")  # fmt: skip
        assert counted < MOVES_S + BUSY_S
        await run.stop([other])


async def test_workers_in_java_and_python_take_the_place_of_each_other(system: System, tmp_path: Path) -> None:
    classpath = await asyncio.to_thread(build, LocalSettings().home / "java-client")
    async with trial(system, tmp_path) as run:

        def in_java() -> Program:
            command = [java.executable(), *java.SHORT_LIVED, "-Xmx128m", "-Djava.net.preferIPv4Stack=true"]
            command += ["-cp", classpath, "io.sluice.client.WorkerPeer", f"tcp://{system.grpc_address}"]
            name, beat_ms = f"java-{uuid4().hex[:8]}", f"{HEARTBEAT_S * 1000:.0f}"
            return run.crew.run("java", *command, run.scope, "workers", name, "stream2", beat_ms)

        def in_python() -> Program:
            return run.crew.start("app")

        async def all_have_some() -> bool:
            readers = await run.readers()
            assert len(readers) == WORKERS and all(readers.values()), readers
            return True

        async def more_came() -> None:
            await run.came(run.tally.different + MIXED_RATE)

        kinds = [in_python, in_java] * (WORKERS // 2)
        crew: list[Program] = []
        async with beside(run.count_results()):
            for start in kinds:
                crew.append(start())
                crew[-1].says("is online", STARTS_S)
            # Events come in all segments until the end: a reader that had none yet counts as one with nothing to read,
            # in Java and here, and gives no segment away.
            rate = str(MIXED_RATE)
            generator = run.crew.start("generator", "--rate", rate, "--keys", rate, "--source", "g")
            for number, start in enumerate(kinds):
                await more_came()
                victim, crew[number] = crew[number], start()
                victim.kill()
                crew[number].says("is online", STARTS_S)
                await comes_true(partial(is_out, run, victim), "the killed worker's reader is offline")
            await comes_true(all_have_some, "all have segments")
            await more_came()
            assert generator.stop() == 0
            written = re.search(r"g: (\d+) events, from 0 on", generator.log.read_text())
            assert written is not None
            await run.came(int(written[1]))
            await run.stop(crew)
        summary = run.tally.summary()
        print(f"\n{WORKERS} workers in Java and Python killed in turn: {summary}")
        assert (summary.missing, summary.bad) == (0, 0)
        # Each of the last ones did some.
        assert all(re.search(r": [1-9]\d* events", worker.log.read_text()) for worker in crew)
