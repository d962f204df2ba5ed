"""`python -m bench.for_tests`: `sluice dev` beside Pravega's own standalone, for who tests a program with either.

Each is started anew for each round, one after the other. The standalone is io.pravega's own, all in memory; its Java
runtime chooses collector and compiler, and has 1,500 MB at most.
"""

import argparse
import asyncio
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from conformance.peer import Peer
from support.ports import free_ports

from bench import calls, client_rates
from bench.calls import Calls, measurements
from bench.peer import until_scope
from bench.processor_time import memory_mib
from bench.show import aligned
from bench.stopwatch import outcome
from sluice_client import open_client
from sluice_local import jars, setup
from sluice_local.home import HOST
from sluice_local.process import Spawner
from sluice_local.settings import LocalSettings

DEV, STANDALONE = "sluice dev", "standalone"
CALLS = (calls.CREATE_STREAM, calls.CURRENT_SEGMENTS, calls.CREATE_TXN)
EVENT_BYTES, EVENTS = 1024, 30_000
_JAVA = ("-Xmx1500m", "-Djava.net.preferIPv4Stack=true")


class Round(msgspec.Struct, frozen=True):
    """One life of one of the two; `load` is that of the machine, for a minute, when it ended.

    `calls_ms` has medians of calls one by one; memory is what was resident after the first event and at the end.
    """

    first_event_s: float
    first_event_mib: int
    calls_ms: dict[str, float]
    events_per_s: float
    end_mib: int
    load: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.for_tests", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds: int = parser.parse_args().rounds
    settings = LocalSettings()
    jars.fetch_besides(jars.PEER, settings.jars_dir, setup.say)
    found: dict[str, list[Round]] = {DEV: [], STANDALONE: []}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            folder = Path(scratch, str(number))
            for name, lives in ((DEV, _dev(folder / "dev")), (STANDALONE, _standalone(settings, folder / "peer"))):
                began = time.monotonic()
                with lives as (address, pid):
                    found[name].append(_measured(address, pid, began))
                print(name, msgspec.json.encode(found[name][-1]).decode(), flush=True)
    print(table(found))


@contextmanager
def _dev(folder: Path) -> Iterator[tuple[str, int]]:
    grpc, rest, store = free_ports(3)
    command = [sys.executable, "-m", "sluice_dev", "--grpc-port", str(grpc)]
    command += ["--rest-port", str(rest), "--store-port", str(store)]
    spawner = Spawner()
    child = spawner.spawn(command, os.environ, folder, folder / "log")
    try:
        yield f"{HOST}:{grpc}", child.pid
    finally:
        child.kill()
        spawner.close()


@contextmanager
def _standalone(settings: LocalSettings, folder: Path) -> Iterator[tuple[str, int]]:
    peer = Peer(settings.jars_dir, folder, options=_JAVA)
    pid = peer.begin()
    try:
        yield peer.address, pid
    finally:
        peer.close()


def _measured(address: str, pid: int, began: float) -> Round:
    until_scope(address)
    asyncio.run(_first_event(address))
    first_event_s, (first_event_mib, _) = time.monotonic() - began, memory_mib(pid)
    _calls_ms(address, quick=True)  # Java compiles what runs often.
    calls_ms = _calls_ms(address, quick=False)
    _events_per_s(address)
    events_per_s = _events_per_s(address)
    return Round(first_event_s, first_event_mib, calls_ms, events_per_s, memory_mib(pid)[0], os.getloadavg()[0])


async def _first_event(address: str) -> None:
    """Write one to a new stream; return when it is kept."""
    async with open_client(address) as client:
        await client.streams.create_scope("first")
        await client.streams.create_stream("first", "events")
        async with client.event_writer("first", "events") as writer:
            await writer.write("key", b"hello")


def _calls_ms(address: str, quick: bool) -> dict[str, float]:
    made = Calls(address)
    made.create_scope()
    made.create_stream("t", 4)
    found = {name: outcome(take) for name, take in measurements(made, quick) if name in CALLS}
    made.close()
    return {name: figures.p50_ms for name, figures in found.items() if figures.p50_ms is not None}


def _events_per_s(address: str) -> float:
    stream = f"s{secrets.token_hex(4)}"
    asyncio.run(client_rates.create(address, stream, 1))
    return client_rates.events_per_s(client_rates.apart(address, "pypi", "write", stream, EVENT_BYTES, EVENTS))


def table(found: dict[str, list[Round]]) -> str:
    """Medians of all rounds, and the load of each."""
    lines = [["", *found]]
    lines.append(["start to first event, s", *_medians(found, "first_event_s", "{:.1f}")])
    lines.append(["memory then, MiB", *_medians(found, "first_event_mib", "{:.0f}")])
    for name in CALLS:
        medians = (_median([each.calls_ms.get(name) for each in rounds]) for rounds in found.values())
        lines.append([f"{name}, ms", *("failed" if median is None else f"{median:.1f}" for median in medians)])
    lines.append([f"events/s, one writer, {EVENT_BYTES} bytes", *_medians(found, "events_per_s", "{:,.0f}")])
    lines.append(["memory at the end, MiB", *_medians(found, "end_mib", "{:.0f}")])
    lines.append(["load", *(", ".join(f"{each.load:.1f}" for each in rounds) for rounds in found.values())])
    return aligned(lines)


def _medians(found: dict[str, list[Round]], field: str, form: str) -> list[str]:
    return [form.format(statistics.median(getattr(each, field) for each in rounds)) for rounds in found.values()]


def _median(values: Sequence[float | None]) -> float | None:
    """None if one of them is missing."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if len(known) == len(values) else None


if __name__ == "__main__":
    main()
