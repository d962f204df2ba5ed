"""`python -m bench.rolling`: every instance of every service is ended gently and started again, under load.

Load: writers and transactional writers of the PyPI client, each in a process of its own, and calls at a steady rate,
all through one address that leads to both gateways. In the end every event that was acknowledged or committed is
there once. Exit code 1 if a call or a writer failed in a way that the client does not mend by itself.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from support.controller import Controller, unique
from support.pravega import check_exactly_once, manager, read_from_the_start
from support.txn_traffic import TxnTraffic
from support.writer import WriterProcess

from bench.balancer import Balancer
from bench.prober import Prober, summary
from harness import System
from sluice_local.settings import LocalSettings

ROLLED = ("cluster-manager", "stream-workflows", "txn-manager", "api-gateway")
_DEADLINE_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instances", type=int, default=2, help="of each service (default 2)")
    parser.add_argument("--quiet-s", type=float, default=20.0, help="seconds without a restart before and after")
    arguments = parser.parse_args()
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="rolling-", dir=folder))
    counts = {f"{name.replace('-', '_')}s": arguments.instances for name in ROLLED if name != "stream-workflows"}
    system = System(home, segment_stores=1, stream_workflows=arguments.instances, **counts)
    try:
        with system, Balancer(system.grpc_addresses) as balancer:
            return asyncio.run(_roll(system, balancer.address, arguments.quiet_s))
    finally:
        shutil.rmtree(home / "data", ignore_errors=True)


async def _roll(system: System, address: str, quiet_s: float) -> int:
    gateway = Controller(address)
    scope, stream = unique("roll"), "events"
    assert gateway.create_scope(scope) == "SUCCESS" and gateway.create_stream(scope, stream, 4) == "SUCCESS"
    with TxnTraffic(gateway, address, 2, system.grpc_address) as traffic, Prober(address) as prober:
        writers = [WriterProcess(address, scope, stream, f"w{n}") for n in range(2)]
        try:
            marks = [time.monotonic()]
            await asyncio.sleep(quiet_s)
            marks.append(time.monotonic())
            for name in [name for service in ROLLED for name in system.names if name.startswith(service)]:
                began = time.monotonic()
                await asyncio.to_thread(system.restart, name)
                print(f"{name:22} back after {time.monotonic() - began:5.1f} s   ", end="")
                print(summary(prober.between(began, time.monotonic())), flush=True)
            marks.append(time.monotonic())
            await asyncio.sleep(quiet_s)
            marks.append(time.monotonic())
            for title, began, ended in zip(("before", "restarts", "after"), marks, marks[1:], strict=False):
                print(f"{title:9}{summary(prober.between(began, ended))}")
            alive = all(writer.running for writer in writers)
            acknowledged = {writer.name: writer.acknowledged for writer in writers}
        finally:
            for writer in writers:
                writer.close()
        outcomes = await traffic.ends_exactly_once(_DEADLINE_S)
        mended = sum(bool(attempt.problems) for attempt in traffic.attempts)
    at_least = sum(acknowledged.values())
    # Not by way of the balancer, a thread of this process: the client keeps Python's lock while it waits.
    events = await read_from_the_start(manager(system.grpc_address), scope, stream, at_least, _DEADLINE_S)
    seen = {
        name: max(int(e.partition(":")[2]) for e in events if e.startswith(f"{name}:")) + 1 for name in acknowledged
    }
    assert all(seen[name] >= count for name, count in acknowledged.items()), (seen, acknowledged)
    check_exactly_once(events, seen)
    failed = [probe for probe in prober.probes if probe.failure]
    print(f"writers: {at_least} events acknowledged, all read once; alive at the end: {alive}")
    print(f"transactions: {dict(outcomes)}, read exactly once; with a problem on the way: {mended}")
    print(f"calls that failed for good: {len(failed)}")
    return 0 if alive and not failed and not mended else 1


if __name__ == "__main__":
    sys.exit(main())
