"""A cluster of the original's controller after a scripted life, killed in the middle of its work, as a dump.

`python -m bench.original_life FILE` runs the real controller on a real data plane, gives it streams, groups, tables and
transactions, kills it while it scales, truncates, commits and aborts, and reads what it left. It tries until every kind
of unfinished work is among that. FILE is what tests read (`tests/unit/migration`): the dump, compressed.
"""

import argparse
import asyncio
import lzma
import os
import secrets
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from bench import secured
from bench.peer import PeerController
from harness import System
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import segment_name
from sluice.lookback.progress import unseen
from sluice_cli.migration import dump as dumps
from sluice_cli.migration import raw
from sluice_cli.migration.inspection import Inspector
from sluice_cli.migration.invariants import Problem
from sluice_cli.migration.model import Stream, Thing, Unreadable
from sluice_cli.migration.records import NO_COMMITS
from sluice_cli.migration.segments import SegmentJudge
from sluice_cli.migration.source import Containers, Source
from sluice_cli.session import open_store, open_zookeeper

_PARTS = ("zookeeper", "bookie", "segment-store-0")
_SETTINGS = {"controller.retention.frequency.minutes": 1}
_CALL_S = 60.0
_RETENTION_S = 150.0
_LEASE_MS = 500_000
_SCOPE = "shop"
_LIVES = 6
_MIDDLE_S, _MOMENT_S = 60.0, 0.02
_MIDDLE = frozenset({"a transition", "a truncation", "a batch", "COMMITTING", "ABORTING"})
"""What is to be seen of a life before it is ended."""
_SCALED, _TRUNCATED, _ROLLED = (
    tuple(f"{what}-{number}" for number in range(4)) for what in ("scaled", "truncated", "rolled")
)


class Life:
    """What happens to the cluster, by the controller at one address."""

    def __init__(self, address: str) -> None:
        self._channel = secured.channel(address)
        self._stub = secured.stub(self._channel)

        self._answers = ThreadPoolExecutor(64)

    def close(self) -> None:
        self._channel.close()
        self._answers.shutdown(wait=False, cancel_futures=True)

    def call(self, rpc: str, request: Any) -> Any:
        return getattr(self._stub, rpc)(request, timeout=_CALL_S)

    def begin(self, rpc: str, request: Any) -> Future[Any]:
        """Ask, and let the controller die over it."""
        return self._answers.submit(self.call, rpc, request)

    def stream(self, name: str, segments: int, **more: Any) -> None:
        policy = pb.ScalingPolicy(scaleType="FIXED_NUM_SEGMENTS", minNumSegments=segments)
        self.call("createStream", pb.StreamConfig(**{"scalingPolicy": policy, **more, "streamInfo": info(name)}))

    def segments(self, stream: str) -> list[Any]:
        return sorted(self.call("getCurrentSegments", info(stream)).segmentRanges, key=lambda one: one.minKey)

    def ids(self, stream: str) -> list[int]:
        return [_id(one) for one in self.segments(stream)]

    def split(self, stream: str) -> pb.ScaleRequest:
        """A scale of its first segment into two."""
        first = self.segments(stream)[0]
        middle = (first.minKey + first.maxKey) / 2
        ranges = [(first.minKey, middle), (middle, first.maxKey)]
        entry = pb.ScaleRequest.KeyRangeEntry
        return pb.ScaleRequest(
            streamInfo=info(stream),
            sealedSegments=[_id(first)],
            newKeyRanges=[entry(start=low, end=high) for low, high in ranges],
            scaleTimestamp=time.time_ns() // 1_000_000,
        )

    def scale(self, stream: str) -> None:
        """Split and wait until that is done."""
        self.until_scaled(stream, self.call("scale", self.split(stream)).epoch)

    def until_scaled(self, stream: str, epoch: int) -> None:
        status = pb.ScaleStatusRequest(streamInfo=info(stream), epoch=epoch)
        until(lambda: self.call("checkScale", status).status == pb.ScaleStatusResponse.SUCCESS, f"{stream} is scaled")

    def transaction(self, stream: str) -> Any:
        return self.call("createTransaction", pb.CreateTxnRequest(streamInfo=info(stream), lease=_LEASE_MS)).txnId

    def commit(self, stream: str, id: Any) -> None:
        """Commit and wait until that is done."""
        request = pb.TxnRequest(streamInfo=info(stream), txnId=id, writerId="w", timestamp=7)
        self.call("commitTransaction", request)
        self.until_ended(request, pb.TxnState.COMMITTED)

    def until_ended(self, request: pb.TxnRequest, state: pb.TxnState.State) -> None:
        until(lambda: self.call("checkTransactionState", request).state == state, f"{request} is {state}")

    def head(self, stream: str) -> pb.StreamCut:
        """A cut at the beginning of what is active now."""
        return pb.StreamCut(streamInfo=info(stream), cut=dict.fromkeys(self.ids(stream), 0))

    def group(self, name: str, streams: Iterable[str], retention: int) -> None:
        cuts = [pb.StreamCut(streamInfo=info(one)) for one in streams]
        configuration = pb.ReaderGroupConfiguration(
            scope=_SCOPE,
            readerGroupName=name,
            groupRefreshTimeMillis=3000,
            automaticCheckpointIntervalMillis=30_000,
            maxOutstandingCheckpointRequest=3,
            retentionType=retention,
            readerGroupId=str(uuid4()),
            startingStreamCuts=cuts,
            endingStreamCuts=cuts,
        )
        self.call("createReaderGroup", configuration)


def info(stream: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope=_SCOPE, stream=stream)


def _id(one: Any) -> int:
    return int(one.segmentId.segmentId)


def until(condition: Callable[[], bool], what: str, limit_s: float = _CALL_S) -> None:
    """Return when it holds. Raises TimeoutError."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def grow_up(life: Life, system: System) -> None:
    """All that is finished before the controller is killed."""

    def append(stream: str, ids: list[int]) -> None:
        asyncio.run(_append(system, stream, ids))

    life.call("createScope", pb.ScopeInfo(scope=_SCOPE))
    life.call("createScope", pb.ScopeInfo(scope="empty"))
    rate = pb.ScalingPolicy(scaleType="BY_RATE_IN_EVENTS_PER_SEC", targetRate=1000, scaleFactor=2, minNumSegments=2)
    kept = pb.RetentionPolicy(retentionType="SIZE", retentionParam=10, retentionMax=2**63 - 1)
    life.stream(
        "orders",
        2,
        scalingPolicy=rate,
        tags=pb.Tags(tag=["eu", "money"]),
        rolloverSizeBytes=1 << 20,
        timestampAggregationTimeout=86_400_000,
    )
    life.stream("kept", 1, retentionPolicy=kept, timestampAggregationTimeout=500)
    for name in (*_SCALED, *_TRUNCATED, *_ROLLED, "aborted", "sealed", "gone", "busy"):
        life.stream(name, 2)
    append("orders", life.ids("orders"))
    append("kept", life.ids("kept"))
    for _ in range(3):
        life.scale("orders")
        append("orders", life.ids("orders"))
    life.call("truncateStream", life.head("orders"))
    for name in ("orders", _ROLLED[0]):
        opened = life.transaction(name)
        life.scale(name)
        # Of an epoch before: the stream rolls.
        life.commit(name, opened)
    life.commit("busy", life.transaction("busy"))
    position = pb.StreamCut(streamInfo=info("orders"), cut=dict.fromkeys(life.ids("orders"), 1))
    reply = life.call("noteTimestampFromWriter", pb.TimestampFromWriter(writer="till", position=position, timestamp=5))
    assert reply.result == pb.TimestampResponse.SUCCESS, reply
    life.group("all", ("orders", "kept"), 0)
    life.group("manual", ("orders",), 1)
    life.group("automatic", ("kept",), 2)
    table = pb.KeyValueTableConfig(
        scope=_SCOPE, kvtName="stock", partitionCount=3, primaryKeyLength=8, secondaryKeyLength=4
    )
    life.call("createKeyValueTable", table)
    life.call("sealStream", info("sealed"))
    life.scale("gone")
    life.call("sealStream", info("gone"))
    life.call("deleteStream", info("gone"))
    life.stream("gone", 1)
    for _ in range(3):
        life.transaction("busy")


class Begun(NamedTuple):
    """A call that may not have been answered."""

    rpc: str
    request: Any
    answer: Future[Any]


def last_calls(life: Life) -> list[tuple[str, Any]]:
    """What is to begin at once, prepared."""
    for name in _TRUNCATED:
        life.scale(name)
    opened = {name: [life.transaction(name) for _ in range(4)] for name in _ROLLED}
    aborted = [life.transaction("aborted") for _ in range(16)]
    for name in _ROLLED:
        life.scale(name)
    requests: list[tuple[str, Any]] = [("abortTransaction", _request("aborted", id)) for id in aborted]
    requests += [("scale", life.split(name)) for name in _SCALED]
    requests += [("truncateStream", life.head(name)) for name in _TRUNCATED]
    requests += [("commitTransaction", _request(name, id)) for name, ids in opened.items() for id in ids]
    return requests


def begin_all(life: Life, calls: Iterable[tuple[str, Any]]) -> list[Begun]:
    return [Begun(rpc, request, life.begin(rpc, request)) for rpc, request in calls]


def come_to_the_end(life: Life, begun: Iterable[Begun]) -> Counter[str]:
    """All that began ends, as far as it was answered as the answers said; then the scope is deleted with all in it.

    That waits for what is under way. Returns how many calls of each kind were answered.
    """
    answered: Counter[str] = Counter()
    for rpc, request, answer in begun:
        if answer.exception() is not None:
            continue
        answered[rpc] += 1
        if rpc == "scale":
            life.until_scaled(request.streamInfo.stream, answer.result().epoch)
        elif rpc in _ENDS:
            life.until_ended(request, _ENDS[rpc])
    scope = pb.ScopeInfo(scope=_SCOPE)
    life.call("deleteScopeRecursive", scope)
    until(lambda: not life.call("checkScopeExists", scope).exists, "all is deleted")
    return answered


_ENDS = {"commitTransaction": pb.TxnState.COMMITTED, "abortTransaction": pb.TxnState.ABORTED}


def _request(stream: str, id: Any) -> pb.TxnRequest:
    return pb.TxnRequest(streamInfo=info(stream), txnId=id)


def missing(things: Iterable[Thing | Unreadable]) -> set[str]:
    """What of the work that there should be is not there."""
    streams = [one for one in things if isinstance(one, Stream)]
    of = [one.metadata for one in streams if one.metadata is not None]
    statuses = {t.status.name for one in streams for in_epoch in one.transactions.values() for t in in_epoch.values()}
    seen = {
        "a transition": any(one.transition and one.transition.sealed for one in of),
        "a truncation": any(one.truncation and one.truncation.updating for one in of),
        "a batch": any(one.committing not in (None, NO_COMMITS) for one in of),
        "a retention cut": any(one.retention_cuts for one in of),
        "a writer": any(one.writers for one in streams),
        **{name: name in statuses for name in ("OPEN", "COMMITTING", "ABORTING")},
    }
    return {name for name, is_there in seen.items() if not is_there}


async def _freeze_in_the_middle(system: System, pid: int) -> None:
    """Return with the controller frozen in the middle of everything, or frozen some time later.

    It runs for a moment, and stands still while it is looked at.
    """
    async with _source(system) as source:
        scope = await source.scope(_SCOPE, raw.scopes(await source.cluster())[_SCOPE])
        names = [one for one in raw.members(scope) if one.name in ("aborted", *_SCALED, *_TRUNCATED, *_ROLLED)]
        end = time.monotonic() + _MIDDLE_S
        while True:
            os.kill(pid, signal.SIGSTOP)
            found = await asyncio.gather(*map(source.thing, names))
            if not missing(map(raw.thing, found)) & _MIDDLE or time.monotonic() > end:
                return
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(_MOMENT_S)


@asynccontextmanager
async def _source(system: System) -> AsyncIterator[Source]:
    with open_zookeeper(system.zookeeper, system.settings.cluster_name) as nodes:
        containers = Containers(nodes)
        async with open_store(containers.host, containers.count) as store:
            yield Source(store, nodes, 16)


def make(file: Path, secure: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder), segment_stores=1, secure=secure)
        secured.become_admin(system.settings)
        try:
            for part in _PARTS:
                system.start(part)
            _lives(system, Path(folder), file)
        finally:
            system.down()


def _lives(system: System, folder: Path, file: Path) -> None:
    for number in range(_LIVES):
        peer = PeerController(system.settings, _SETTINGS)
        print(f"life {number}: ready after {peer.start():.0f} s", flush=True)
        life = Life(peer.address)
        try:
            if not number:
                grow_up(life, system)
            until(lambda: "a retention cut" not in missing(_read(system, folder).things()), "retention", _RETENTION_S)
            begin_all(life, last_calls(life))
            asyncio.run(_freeze_in_the_middle(system, peer.pid))
        finally:
            peer.kill()
            life.close()
            peer.stop()
        lacking = missing(_read(system, folder).things())
        print(f"life {number}: lacks {sorted(lacking)}", flush=True)
        file.write_bytes(lzma.compress((folder / "dump" / dumps.THINGS).read_bytes(), preset=9))
        if not lacking:
            for problem in asyncio.run(_inspected(system, folder / "dump")):
                print(problem, flush=True)
            return
    raise SystemExit("no life left every kind of work unfinished")


def _read(system: System, folder: Path) -> dumps.Dump:
    async def read() -> None:
        async with _source(system) as source:
            await dumps.dump(source, target, 2, lambda: 0, unseen)

    target = folder / "dump"
    (target / dumps.THINGS).unlink(missing_ok=True)
    asyncio.run(read())
    return dumps.Dump(target)


async def _inspected(system: System, folder: Path) -> tuple[Problem, ...]:
    async with _source(system) as source:
        inspector = Inspector(dumps.Dump(folder), SegmentJudge(source.store, 16), source)
        return (await inspector.run(unseen)).problems


async def _append(system: System, stream: str, ids: list[int]) -> None:
    async with _source(system) as source:
        for id in ids:
            await source.store.append(segment_name(_SCOPE, stream, id), uuid4(), secrets.token_bytes(100))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--secure", action="store_true", help="with TLS, users and tokens everywhere")
    given = arguments.parse_args()
    make(given.file, given.secure)
