"""`python -m bench.chaos --minutes 30`: a system under load lives on while faults happen to it, from a seed.

Three brokers, two of each service, two segment stores. What happens is drawn from `tests/support/faults.py`, the same
from the same seed; the load is `tests/support/load.py`. In the end all that was acknowledged is there once, nothing is
stuck, `sluice verify` finds no difference, and the judge finds every stream linearizable; a table for
`docs/operations.md` says how long calls were late. Snapshots are made every few seconds and the journal is kept for a
minute. Exit code 1 if something of that is not so; its folder, with logs and histories, is kept. With `--networks`
links break, too. `--broken` runs gateways without the read barrier, which must be found guilty.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from shutil import rmtree
from statistics import median
from tempfile import mkdtemp

from confluent_kafka import Consumer, TopicPartition
from support.answers import Effect, named
from support.faults import AT_ONCE
from support.judge import Verdict, judge
from support.load import Load

from harness import System, eventually
from sluice.kafka.topics import JOURNAL
from sluice_local.settings import LocalSettings

SNAPSHOTS = {
    "SLUICE_SNAPSHOT_MIN_RECORDS": "20",
    "SLUICE_SNAPSHOT_INTERVAL_S": "20",
    "SLUICE_SNAPSHOT_LOOK_S": "2",
    "SLUICE_JOURNAL_KEEP": "PT60S",
}
LINKS = (("api-gateway-0", "kafka"), ("stream-workflows-0", "segment-store"), ("txn-manager-0", "redis"))
MANY = 200
TRIMMED_S = 300.0
_BROKEN = """
from sluice.engine.journal import Journal

async def passed(*_):
    pass

Journal.barrier = passed
"""


async def disturb(
    system: System, folder: Path, options: argparse.Namespace, effects: dict[str, list[Effect]]
) -> Verdict:
    """What the judge says; `effects` takes what each fault did."""
    minutes: float = options.minutes
    operations: int = options.operations
    began = time.monotonic()
    async with Load(system, folder, options.seed) as load:

        def goes_on() -> bool:
            if time.monotonic() - began < minutes * 60:
                return True
            return sum(clients.operations for clients in load.groups) < operations

        mixture = load.faults.mixture(Random(options.seed))
        while goes_on():
            if options.calm:
                await asyncio.sleep(1.0)
                continue
            event, lasts_s = next(mixture)
            effect = await load.survives(event, lasts_s)
            effects[event.kind or event.name].append(effect)
            load_now = f"load {os.getloadavg()[0]:.0f}"
            _say(f"{time.monotonic() - began:5.0f} s, {load_now}: {event.name} for {lasts_s:.0f} s: {effect}")
        return await load.ends()


def table(effects: dict[str, list[Effect]]) -> str:
    """What each fault did, for people."""
    head = ("What happens", "times", "late from its begin", "late from its end", "p99 till then", "calls that fail")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, seen in sorted(effects.items(), key=lambda row: (row[0] == AT_ONCE, row[0])):
        failures = sum((effect.failures for effect in seen), Counter[str]())
        of = sum(effect.of for effect in seen)
        begins, ends = [effect.from_begin_s for effect in seen], [effect.from_end_s for effect in seen]
        worst = max(effect.p99_s for effect in seen)
        cells = (name, str(len(seen)), _span(begins), _span(ends), f"{worst:.1f} s", f"{named(failures)} of {of}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _span(seconds: list[float]) -> str:
    most = f", at most {max(seconds):.1f}" if len(seconds) > 1 else ""
    return f"{median(seconds):.1f}{most} s"


def untrimmed(system: System) -> list[int]:
    """The partitions of the journal that have many records and still begin with their first one."""
    consumer = Consumer({"bootstrap.servers": system.kafka_bootstrap, "group.id": "bench-chaos"})
    try:
        spans = {
            p: consumer.get_watermark_offsets(TopicPartition(JOURNAL.name, p), timeout=30)
            for p in range(system.settings.partitions)
        }
    finally:
        consumer.close()
    return [p for p, (begin, end) in spans.items() if end > MANY and not begin]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--operations", type=int, default=0, help="go on until so many calls are there to be judged")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument("--networks", action="store_true", help="links of one instance of three services break, too")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--broken", action="store_true", help="gateways read without the barrier")
    options = parser.parse_args()
    judge()  # What cannot be built is missed now, not at the end.
    os.environ.update(SNAPSHOTS)
    folder = LocalSettings().home
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(mkdtemp(prefix="chaos-", dir=folder))
    _say(f"seed {options.seed}, in {home}")
    system = System(
        home,
        kafka_brokers=3,
        api_gateways=2,
        stream_workflows=2,
        cluster_managers=2,
        txn_managers=2,
        segment_stores=2,
        links=LINKS if options.networks else (),
    )
    if options.broken:
        (home / "broken").mkdir()
        (home / "broken" / "sitecustomize.py").write_text(_BROKEN)
        for name in ("api-gateway-0", "api-gateway-1"):
            system.configure(name, {"PYTHONPATH": str(home / "broken")})
    effects: dict[str, list[Effect]] = defaultdict(list)
    try:
        with system:
            found = asyncio.run(disturb(system, home, options, effects))
            print(found.text)
            eventually(lambda: not untrimmed(system), TRIMMED_S, "the journal is trimmed")
    finally:
        print(table(effects))
    if not found.is_linearizable:
        return 1
    rmtree(home)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
