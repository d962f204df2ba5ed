"""`python -m bench.migration`: what `sluice migrate` takes for originals of 1,000, 10,000 and 100,000 streams.

The segment store is the one in memory, which a process of its own serves by Pravega's wire protocol; it is full of what
`bench.made_original` writes. ZooKeeper and Kafka are real. Each command is a process; what it took is printed: seconds,
seconds of the processors, the most memory it had, and calls that the segment store answered.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from containers.store_server import SegmentStoreServer

from bench.made_original import CLUSTER, write_nodes
from bench.processor_time import memory_mib
from bench.systems import Say
from harness import System
from sluice.pravega.container_map import CONTAINER_MAP_NODE, encode_container_map
from sluice_local.home import HOST

SIZES = (1_000, 10_000, 100_000)
_CONTAINERS = range(4)
_AT_A_TIME = ("--concurrency", 32)
_LOOK_S = 0.1
_SLUICE = (str(Path(sys.executable).with_name("sluice")), "migrate")


class Took(NamedTuple):
    """`calls` are those that the segment store answered meanwhile."""

    seconds: float
    cpu_s: float
    peak_mib: int
    calls: int

    def __str__(self) -> str:
        rate = f"{self.calls:9,} calls, {self.calls / self.seconds:6,.0f} a second"
        return f"{self.seconds:7.1f} s, {self.cpu_s:7.1f} s of CPU, {self.peak_mib:5,} MiB, {rate}"


class Measured:
    """Runs commands on an original."""

    def __init__(self, store: SegmentStoreServer, environment: Mapping[str, str], say: Say) -> None:
        self._environment = {**os.environ, **environment}
        self._say = say
        self._calls = 0
        store.store.fault = self._count

    def _count(self, moment: str, *_: object) -> None:
        self._calls += moment == "before"

    def run(self, what: str, command: Sequence[object]) -> str:
        """What it prints. Raises AssertionError unless it ends with 0."""
        calls, began, peak_mib = self._calls, time.monotonic(), 0
        with tempfile.TemporaryFile("w+") as out:
            child = subprocess.Popen([*map(str, command)], env=self._environment, stdout=out)
            # The most memory by `wait4` counts that of the process which it was forked from, too.
            while (ended := os.wait4(child.pid, os.WNOHANG))[0] == 0:
                with suppress(OSError, KeyError):
                    peak_mib = memory_mib(child.pid)[1]
                time.sleep(_LOOK_S)
            child.returncode, used = os.waitstatus_to_exitcode(ended[1]), ended[2]
            out.seek(0)
            printed = out.read()
        assert child.returncode == 0, f"{what} ended with {child.returncode}: {printed[-2000:]}"
        seconds = time.monotonic() - began
        took = Took(seconds, used.ru_utime + used.ru_stime, peak_mib, self._calls - calls)
        self._say(f"{what:32} {took}, load {os.getloadavg()[0]:.0f}")
        return printed

    def sluice(self, what: str, *words: object) -> Any:
        """The document that the command prints."""
        return json.loads(self.run(what, (*_SLUICE, *words, "--json")))


def measure(system: System, streams: int, folder: Path, say: Say) -> None:
    """All commands. Raises AssertionError if one fails, or finds something wrong."""
    with SegmentStoreServer(HOST) as store:
        write_nodes(system.zookeeper, {CONTAINER_MAP_NODE: encode_container_map({store.host: _CONTAINERS})})
        environment = {
            "SLUICE_ZOOKEEPER": system.zookeeper,
            "SLUICE_CLUSTER_NAME": CLUSTER,
            "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
        }
        measured = Measured(store, environment, say)
        made = (sys.executable, "-m", "bench.made_original", system.zookeeper, streams)
        measured.run(f"made of {streams:,} streams", made)
        dump = folder / "dump"
        measured.sluice("dump", "dump", dump, *_AT_A_TIME)
        measured.sluice("hold", "hold", "--partitions", system.settings.partitions)
        imported = measured.sluice("import", "import", dump)
        assert imported["streams"] == streams and imported["appended"] == imported["records"], imported
        assert measured.sluice("import again: nothing to do", "import", dump)["appended"] == 0
        assert measured.sluice("dump again: only lengths", "dump", dump, *_AT_A_TIME)["changed"] == []
        inspected = measured.sluice("inspect", "inspect", *_AT_A_TIME)
        assert inspected["problems"] == inspected["unreadable"] == [], inspected
        say(f"{inspected['counts']}")
        measured.sluice("inspect --dump", "inspect", "--dump", dump)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("streams", type=int, nargs="*", default=SIZES, help="default 1,000, 10,000 and 100,000")
    given = parser.parse_args()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)

    for streams in given.streams:
        with tempfile.TemporaryDirectory() as folder:
            system = System(Path(folder) / "system", segment_stores=0, keep_logs=False)
            try:
                for part in ("zookeeper", "kafka"):
                    system.start(part)
                measure(system, streams, Path(folder), say)
            finally:
                system.down()


if __name__ == "__main__":
    main()
