"""Nodes as real processes that can be killed and frozen, and a log of their own that tells what ran when.

Each node writes to a log file of its own what its tasks do: begin, a sign of life now and then, end; each with the
time of the machine's clock at which the task checked whether it still had its lock, and with its fence. The judge reads
only that: it asks neither the documents nor the nodes.

Beside that each process notes all the time that it runs. Where it does not, the machine stood still, and what a node
did or did not do meanwhile says nothing about it.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_coordination import (
    Functions,
    LeaseSettings,
    LockLostError,
    Node,
    NodeSettings,
    TaskContext,
    open_store,
)

TOPOLOGY = "work"
BEAT_S = 0.05
GONE_S = 60.0
"""Within which a process that was killed is gone."""
_PULSE = ".pulse"
WORKERS = (2, 2, 3, 3, 4)
"""How many each node has."""


def machine_s() -> float:
    """The one clock that all processes of the test share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


# --- what runs in the node's process


def settings_of(workers: int, options: dict[str, float]) -> NodeSettings:
    lease = LeaseSettings(lease_s=options["lease_s"], margin_s=options["margin_s"], retry_s=0.3)
    return NodeSettings(workers=workers, look_s=options["look_s"], keep_done_s=20, lease=lease)


async def run_node(options: dict[str, Any]) -> None:
    """Take part until killed or ended by a signal."""
    functions = Functions()
    log = os.open(options["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def tell(kind: str, context: TaskContext, at: float) -> None:
        line = {"kind": kind, "task": context.task, "fence": context.fence, "node": options["token"], "at": at}
        os.write(log, (json.dumps(line) + "\n").encode())

    def alive(context: TaskContext) -> float:
        """Return a moment at which the lock was held."""
        at = machine_s()
        context.check()
        return at

    @functions.register("work")
    async def work(context: TaskContext, seconds: float) -> str:
        tell("begin", context, alive(context))
        try:
            end = machine_s() + seconds
            while machine_s() < end:
                await asyncio.sleep(BEAT_S)
                tell("alive", context, alive(context))
        except (LockLostError, asyncio.CancelledError):
            tell("stopped", context, machine_s())
            raise
        tell("end", context, alive(context))
        return str(options["token"])

    settings = settings_of(options["workers"], options)
    async with open_store(options["url"], options["timeout_s"]) as store:
        node = Node(store, TOPOLOGY, functions, settings=settings, token=options["token"])
        async with node:
            ending = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
            noting = asyncio.create_task(note_that_it_runs(Path(options["log"]).with_suffix(_PULSE)))
            await ending.wait()
            noting.cancel()


async def note_that_it_runs(path: Path) -> None:
    with path.open("w", buffering=1) as pulse:
        while True:
            pulse.write(f"{machine_s()}\n")
            await asyncio.sleep(BEAT_S)


# --- what runs in the test


@dataclass
class NodeProcess:
    """One node: a process, and what was done to it."""

    token: str
    workers: int
    process: "subprocess.Popen[bytes]"
    frozen_until: float | None = None


@dataclass
class Cluster:
    """Five nodes on one store. Tokens of a node that was started anew begin alike: `n3`, `n3.1`."""

    url: str
    folder: Path
    options: dict[str, float]
    nodes: list[NodeProcess] = field(default_factory=list)
    begun: Counter[str] = field(default_factory=Counter)

    def start(self, number: int) -> NodeProcess:
        """Start a node."""
        name = f"n{number}"
        token = f"{name}.{self.begun[name]}"
        self.begun[name] += 1
        given = {**self.options, "url": self.url, "token": token, "workers": WORKERS[number]}
        given["log"] = str(self.folder / f"{token}.log")
        with (self.folder / f"{token}.output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, __file__, json.dumps(given)], stdout=output, stderr=output, env=_environment()
            )
        node = NodeProcess(token, WORKERS[number], process)
        self.nodes.append(node)
        return node

    def kill(self, token: str) -> None:
        """End a node with kill -9, and start another one in its place."""
        node = self.node(token)
        node.process.kill()
        node.process.wait(GONE_S)
        self.nodes.remove(node)
        self.start(int(token[1 : token.index(".")]))

    def freeze(self, token: str, seconds: float) -> None:
        node = self.node(token)
        node.process.send_signal(signal.SIGSTOP)
        node.frozen_until = machine_s() + seconds

    def thaw_due(self) -> None:
        """Let nodes go on whose time has come."""
        for node in self.nodes:
            if node.frozen_until is not None and machine_s() >= node.frozen_until:
                node.process.send_signal(signal.SIGCONT)
                node.frozen_until = None

    def node(self, token: str) -> NodeProcess:
        return next(node for node in self.nodes if node.token == token)

    def free_nodes(self) -> list[str]:
        """Names of the nodes that are not frozen."""
        return [node.token for node in self.nodes if node.frozen_until is None]

    def stop(self) -> None:
        """End all nodes at once."""
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT)
            node.process.kill()
        for node in self.nodes:
            node.process.wait(GONE_S)

    def lines(self) -> list[dict[str, Any]]:
        """Everything that was logged, by time."""
        found: list[dict[str, Any]] = []
        for log in self.folder.glob("*.log"):
            # A process that was killed may have been writing its last line.
            found += [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return sorted(found, key=lambda line: float(line["at"]))

    def longest_pause_s(self, begin_s: float, end_s: float) -> float:
        """The longest between these times that the process of a node did not run, of those that there are now."""
        pulses = [self.folder / f"{node.token}{_PULSE}" for node in self.nodes]
        recorded = [[float(at) for at in pulse.read_text().split()] for pulse in pulses if pulse.exists()]
        pairs = [(max(a, begin_s), min(b, end_s)) for times in recorded for a, b in itertools.pairwise([*times, end_s])]
        return max((b - a for a, b in pairs), default=0.0)

    def troubles(self) -> str:
        """What the nodes printed."""
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in self.folder.glob("*.output"))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


# --- what the logs tell


@dataclass(frozen=True)
class Verdict:
    """`overlaps`: pairs of attempts at one task that ran at the same moment. `ended`: by task, how often it ended."""

    overlaps: list[str]
    ended: Counter[str]
    attempts: int
    done_by: Counter[str]
    """Ends by node, whatever its life."""
    longest_s: float
    """The longest that a task was seen to run without a break."""


def judge(lines: list[dict[str, Any]]) -> Verdict:
    """Look at what ran when. An attempt lasts from its first to its last moment with a lock."""
    attempts: dict[tuple[str, tuple[int, ...], str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        attempts[line["task"], tuple(line["fence"]), line["node"]].append(line)
    by_task: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for (task, fence, node), of_attempt in attempts.items():
        alive = [line["at"] for line in of_attempt if line["kind"] != "stopped"]
        if alive:
            by_task[task].append((min(alive), max(alive), f"{task} {fence} on {node}"))
    overlaps = []
    for spans in by_task.values():
        spans.sort()
        overlaps += [f"{a} and {b}" for (_, end, a), (begin, _, b) in itertools.pairwise(spans) if begin <= end]
    ends = [line for line in lines if line["kind"] == "end"]
    return Verdict(
        overlaps,
        Counter(line["task"] for line in ends),
        len(attempts),
        Counter(line["node"].split(".")[0] for line in ends),
        max((end - begin for spans in by_task.values() for begin, end, _ in spans), default=0.0),
    )


def unevenness(done_by: Counter[str]) -> float:
    """By how much the node that is furthest from its share by workers is off, as a fraction of that share."""
    total, workers = sum(done_by.values()), sum(WORKERS)
    shares = {f"n{number}": total * count / workers for number, count in enumerate(WORKERS)}
    return max(abs(done_by[name] - share) / share for name, share in shares.items())


def disturb(cluster: Cluster, leader: str | None, source: random.Random, freeze_s: float) -> str:
    """Kill or freeze the leader, or any node that is not frozen; return what was done."""
    free = cluster.free_nodes()
    victim = leader if leader in free and source.random() < 0.5 else source.choice(free)
    what = "kill" if source.random() < 0.5 or len(free) <= 2 else "freeze"
    if what == "kill":
        cluster.kill(victim)
    else:
        cluster.freeze(victim, freeze_s)
    return f"{what} {victim}{' (leader)' if victim == leader else ''}"


if __name__ == "__main__":
    asyncio.run(run_node(json.loads(sys.argv[1])))
