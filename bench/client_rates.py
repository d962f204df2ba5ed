"""`python -m bench.client_rates`: how fast events are written and read by our client, and by the PyPI package.

Both on the same streams of a private system with one segment store, in turns, each time in a process of its own: events
and MB per second, and processor time of the process per event. `--address HOST:PORT` measures on a system that runs.
"""

import argparse
import asyncio
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pravega_client

from bench.systems import private_system
from sluice_client import (
    Event,
    EventReader,
    GroupConfig,
    ScalingPolicy,
    StreamConfig,
    create_reader_group,
    open_client,
    open_reader,
)

CASES = ((100, 1), (100, 8), (10_240, 1), (10_240, 8))
"""Bytes of an event, and segments of the stream."""
_BYTES = {100: 30_000_000, 10_240: 100_000_000}
_IN_FLIGHT = 10_000
"""Of the PyPI writer, which waits for each event otherwise."""
_KEYS = [f"key-{number}" for number in range(64)]
_SCOPE = "rates"
_SIDES = ("ours", "pypi")


class Rate(msgspec.Struct, frozen=True):
    """What one process did: events, seconds, and seconds of the processor."""

    events: int
    took_s: float
    cpu_s: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.client_rates")
    parser.add_argument("--address", metavar="HOST:PORT", help="measure on a system that runs")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side takes its turn; the best one counts")
    parser.add_argument("--side", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side is not None:
        side, what, stream, size, count = arguments.side
        rate = asyncio.run(WORK[side, what](arguments.address, stream, int(size), int(count)))
        print(msgspec.json.encode(rate).decode())
    elif arguments.address is not None:
        _measure(arguments.address, arguments.rounds)
    else:
        with tempfile.TemporaryDirectory() as home, private_system(Path(home), spark=False) as (system, _):
            _measure(system.grpc_address, arguments.rounds)
    return 0


def _measure(address: str, rounds: int) -> None:
    print(f"{'bytes':>7}{'segments':>9}  {'':6}{'ours: events/s':>16}{'MB/s':>7}{'CPU us':>8}", end="")
    print(f"{'PyPI: events/s':>16}{'MB/s':>7}{'CPU us':>8}{'ratio':>7}")
    for size, segments in CASES:
        stream = f"s{secrets.token_hex(4)}"
        asyncio.run(create(address, stream, segments))
        count = _BYTES[size] // size
        for what in ("write", "read", "batch"):
            turns = [[apart(address, side, what, stream, size, count) for side in _SIDES] for _ in range(rounds)]
            ours, theirs = (max(rates, key=events_per_s) for rates in zip(*turns, strict=True))
            shown = f"{_shown(ours, size)}{_shown(theirs, size)}"
            ratio = f"{events_per_s(ours) / events_per_s(theirs):>7.2f}" if theirs is not None else ""
            print(f"{size:>7}{segments:>9}  {what:6}{shown}{ratio}", flush=True)


def events_per_s(rate: Rate | None) -> float:
    """0 if the process died."""
    return rate.events / rate.took_s if rate is not None else 0.0


def _shown(rate: Rate | None, size: int) -> str:
    if rate is None:
        return f"{'died':>16}{'':15}"
    per_s = events_per_s(rate)
    return f"{per_s:>16,.0f}{per_s * size / 1e6:>7.1f}{rate.cpu_s / rate.events * 1e6:>8.1f}"


def apart(address: str, side: str, what: str, stream: str, size: int, count: int) -> Rate | None:
    """What one side did in a process of its own; None if the process died, as the package's does of a panic."""
    command = [sys.executable, "-m", "bench.client_rates", "--address", address]
    command += ["--side", side, what, stream, str(size), str(count)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        print(f"{side} {what}: {done.stderr[-500:]}", file=sys.stderr)
        return None
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Rate)


async def create(address: str, stream: str, segments: int) -> None:
    """A stream for `apart`."""
    async with open_client(address) as client:
        await client.streams.create_scope(_SCOPE)
        await client.streams.create_stream(_SCOPE, stream, StreamConfig(ScalingPolicy(min_segments=segments)))


async def _timed(events: int, work: Callable[[], Awaitable[None]]) -> Rate:
    began, cpu = time.perf_counter(), time.process_time()
    await work()
    return Rate(events, time.perf_counter() - began, time.process_time() - cpu)


async def _write(address: str, stream: str, size: int, count: int) -> Rate:
    async with open_client(address) as client, client.event_writer(_SCOPE, stream) as writer:
        event = bytes(size)

        async def work() -> None:
            for number in range(count):
                await writer.write(_KEYS[number % len(_KEYS)], event)
            await writer.flush()

        return await _timed(count, work)


async def _pypi_write(address: str, stream: str, size: int, count: int) -> Rate:
    manager = pravega_client.StreamManager(f"tcp://{address}")
    writer, event = manager.create_writer(_SCOPE, stream, max_inflight_events=_IN_FLIGHT), bytes(size)

    async def work() -> None:
        for number in range(count):
            writer.write_event_bytes(event, routing_key=_KEYS[number % len(_KEYS)])
        writer.flush()

    return await _timed(count, work)


@asynccontextmanager
async def _new_reader(address: str, stream: str) -> AsyncIterator[EventReader]:
    async with open_client(address) as client:
        group = f"g{secrets.token_hex(4)}"
        await create_reader_group(client, _SCOPE, group, GroupConfig(starts={f"{_SCOPE}/{stream}": None}))
        async with await open_reader(client, _SCOPE, group, "r") as reader:
            yield reader


async def _read(address: str, stream: str, _size: int, count: int) -> Rate:
    async with _new_reader(address, stream) as reader:

        async def work() -> None:
            left = count
            async for item in reader:
                left -= isinstance(item, Event)
                if left == 0:
                    return

        return await _timed(count, work)


async def _read_batches(address: str, stream: str, _size: int, count: int) -> Rate:
    async with _new_reader(address, stream) as reader:

        async def work() -> None:
            left = count
            async for batch in reader.batches():
                if isinstance(batch, list):
                    left -= len([event.data for event in batch])
                if left <= 0:
                    return

        return await _timed(count, work)


async def _pypi_read(address: str, stream: str, _size: int, count: int) -> Rate:
    manager = pravega_client.StreamManager(f"tcp://{address}")
    reader = manager.create_reader_group(f"g{secrets.token_hex(4)}", _SCOPE, stream).create_reader("r")

    async def work() -> None:
        left = count
        while left > 0:
            part = await reader.get_segment_slice_async()
            for event in part:
                event.data()
                left -= 1
            reader.release_segment(part)

    return await _timed(count, work)


WORK = {
    ("ours", "write"): _write,
    ("ours", "read"): _read,
    ("ours", "batch"): _read_batches,
    ("pypi", "write"): _pypi_write,
    ("pypi", "read"): _pypi_read,
    ("pypi", "batch"): _pypi_read,
}


if __name__ == "__main__":
    sys.exit(main())
