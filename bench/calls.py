"""The timed calls: the same for any Pravega controller, over gRPC with the stubs of our own interface description.

A fresh scope for every run, so that runs on one data plane do not meet. Blocking; the concurrent measurements call the
same methods from many threads, which gRPC's stubs allow.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bench import secured
from bench.event_writer import EventWriter
from bench.figures import Figures
from bench.stopwatch import (
    CALLERS,
    WARM_UP_CALLS,
    UnexpectedReplyError,
    at_once,
    one_by_one,
    outcome,
    own_times,
    until,
    until_at_rest,
)
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.host import Host
from sluice.domain.segment import parse_segment_name, transaction_segment_name
from sluice.domain.transaction.state import NO_TIME

CREATE_SCOPE = "createScope"
CREATE_STREAM = "createStream, 1 segment"
CREATE_STREAM_4 = "createStream, 4 segments"
CURRENT_SEGMENTS = "getCurrentSegments"
GET_URI = "getURI"
SCALE = "scale 1 to 2, until done"
SEAL_DELETE = "seal and delete a stream"
CREATE_TXN = "createTransaction, 4 segments"
PING_TXN = "pingTransaction"
COMMIT_TXN = "commitTransaction"
WHOLE_ONE = "open to COMMITTED, event in 1 of 4"
WHOLE_EACH = "open to COMMITTED, event in each of 4"
WHOLE_EMPTY = "open to COMMITTED, empty"
COMMITTED_ONE = f"committed transactions, 1 stream, {CALLERS} callers"
COMMITTED_MANY = f"committed transactions, 100 streams, {CALLERS} callers"
CREATE_STREAM_ALL = f"createStream, {CALLERS} callers"
CREATE_TXN_ALL = f"createTransaction, {CALLERS} callers"
CURRENT_SEGMENTS_ALL = f"getCurrentSegments, {CALLERS} callers"

_DEADLINE_S = 60.0
_DRAINED_S = 300.0
_LEASE_MS = 60_000
_WARM_UP_S = 60.0
_REST_LIMIT_S = 180.0

_MANY = [f"x{n}" for n in range(100)]
_SCALED, _DROPPED, _READ = range(30), range(30, 60), range(60, 105)
"""Which of the streams made one by one each measurement uses; the first two change theirs."""


class OpenTransaction(NamedTuple):
    """What names a transaction in calls, and its own segments on the data plane."""

    request: pb.TxnRequest
    segments: list[str]


class Calls:
    """Calls on streams of one scope of the controller at `address` (host:port)."""

    def __init__(self, address: str) -> None:
        self._stub = secured.stub(secured.channel(address))
        self._scope = f"bench{secrets.token_hex(4)}"
        self._writer = EventWriter(self._host_of)
        self._open: list[OpenTransaction] = []
        self._left: list[OpenTransaction] = []

    def close(self) -> None:
        self._writer.close()

    def create_scope(self, number: int = 0) -> None:
        name = f"{self._scope}x{number}" if number else self._scope
        _expect(self._stub.createScope(pb.ScopeInfo(scope=name), timeout=_DEADLINE_S).status, "createScope")

    def more_scopes(self, number: int) -> None:
        self.create_scope(number + 1)

    def create_stream(self, name: str, segments: int = 1) -> None:
        policy = pb.ScalingPolicy(scaleType=pb.ScalingPolicy.FIXED_NUM_SEGMENTS, minNumSegments=segments)
        config = pb.StreamConfig(streamInfo=self._info(name), scalingPolicy=policy)
        _expect(self._stub.createStream(config, timeout=_DEADLINE_S).status, f"createStream {name}")

    def create_streams(self, names: Iterable[str]) -> None:
        """Streams of one segment each, a few at a time, as a preparation."""
        with ThreadPoolExecutor(8) as callers:
            list(callers.map(self.create_stream, names))

    def current_segments(self, number: int) -> None:
        self._segments_of(f"s{_READ[number % len(_READ)]}")

    def uri(self, number: int) -> None:
        segment = pb.SegmentId(streamInfo=self._info(f"s{_READ[number % len(_READ)]}"), segmentId=0)
        if not self._stub.getURI(segment, timeout=_DEADLINE_S).endpoint:
            raise UnexpectedReplyError("getURI without an address")

    def scale(self, number: int) -> None:
        """Replace the stream's one segment by two and return when that is done."""
        name = f"s{_SCALED[number]}"
        entry = pb.ScaleRequest.KeyRangeEntry
        request = pb.ScaleRequest(
            streamInfo=self._info(name),
            sealedSegments=self._segments_of(name),
            newKeyRanges=[entry(start=0, end=0.5), entry(start=0.5, end=1)],
            scaleTimestamp=time.time_ns() // 1_000_000,
        )
        started = self._stub.scale(request, timeout=_DEADLINE_S)
        _expect(started.status, f"scale {name}")
        question = pb.ScaleStatusRequest(streamInfo=self._info(name), epoch=started.epoch)
        done = pb.ScaleStatusResponse.SUCCESS
        until(lambda: self._stub.checkScale(question, timeout=_DEADLINE_S).status == done)

    def seal_and_delete(self, number: int) -> None:
        self.drop_stream(f"s{_DROPPED[number]}")

    def drop_stream(self, name: str) -> None:
        stream = self._info(name)
        _expect(self._stub.sealStream(stream, timeout=_DEADLINE_S).status, f"sealStream {name}")
        _expect(self._stub.deleteStream(stream, timeout=_DEADLINE_S).status, f"deleteStream {name}")

    # Transactions.

    def open_transaction(self, stream: str) -> OpenTransaction:
        info = self._info(stream)
        request = pb.CreateTxnRequest(streamInfo=info, lease=_LEASE_MS)
        opened = self._stub.createTransaction(request, timeout=_DEADLINE_S)
        id, parents = opened.txnId, [r.segmentId.segmentId for r in opened.activeSegments]
        names = [transaction_segment_name(self._scope, stream, s, id.highBits, id.lowBits) for s in parents]
        return OpenTransaction(pb.TxnRequest(streamInfo=info, txnId=id), names)

    def create_transaction(self, _number: int) -> None:
        self._open.append(self.open_transaction("t"))

    def ping_transaction(self, number: int) -> None:
        opened = self._opened(number).request
        request = pb.PingTxnRequest(streamInfo=opened.streamInfo, txnId=opened.txnId, lease=_LEASE_MS)
        _expect(self._stub.pingTransaction(request, timeout=_DEADLINE_S).status, "pingTransaction")

    def write_events(self, count: int) -> None:
        """One event into one segment of each of the transactions that `commit_transaction` is about to commit."""
        with ThreadPoolExecutor(8) as callers:
            list(callers.map(lambda opened: self._write(opened, 1), map(self._opened, range(count))))

    def commit_transaction(self, number: int) -> None:
        self._commit(self._opened(number))

    def whole_transaction(self, written: int) -> float:
        """Seconds from open to COMMITTED, without the time it takes to write an event into so many of the segments."""
        began = time.perf_counter()
        opened = self.open_transaction("t")
        took_s = time.perf_counter() - began
        self._write(opened, written)
        began = time.perf_counter()
        self._commit(opened)
        until(lambda: self._is_committed(opened))
        return took_s + time.perf_counter() - began

    def open_and_commit(self, stream: str, written: int = 0) -> OpenTransaction:
        """A transaction with an event in so many of its segments; it is committed some time later."""
        opened = self.open_transaction(stream)
        self._write(opened, written)
        self._commit(opened)
        return opened

    def committed(self, streams: list[str], spell_s: float) -> Figures:
        """Transactions of one event per second, from open to COMMITTED, the time until the last one is included.

        Commits are made in the order in which they were requested, so it suffices to wait for each caller's last.
        """
        opened: list[OpenTransaction] = []
        began = time.perf_counter()
        load = at_once(lambda n: opened.append(self.open_and_commit(streams[n % len(streams)], 1)), spell_s, 0)
        for transaction in reversed(opened[-max(CALLERS, len(streams)) * 2 :]):
            until(lambda transaction=transaction: self._is_committed(transaction), _DRAINED_S)  # type: ignore[misc]
        per_s = len(opened) / (time.perf_counter() - began)
        return Figures(len(opened), per_s=round(per_s, 1), client_cpu=load.client_cpu)

    def one_of_each(self, number: int) -> None:
        """A stream made and dropped, and a transaction on the way, with an event in none to four of its segments."""
        name = f"w{number}"
        self.create_stream(name)
        self.drop_stream(name)
        self.open_and_commit("t", number % 5)

    def leave_open(self, number: int) -> None:
        """A transaction that no one commits."""
        self._left.append(self.open_transaction(f"s{_READ[number % len(_READ)]}"))

    def left_are_aborted(self) -> None:
        """Return when the leases of those that were left open have run out, and the aborts that follow are through."""
        under_way = (pb.TxnState.OPEN, pb.TxnState.ABORTING)
        for left in self._left[-CALLERS:]:
            until(lambda left=left: self._state(left) not in under_way, _DRAINED_S, pause_s=0.5)  # type: ignore[misc]

    def commits_done(self, count: int) -> None:
        """Return when the first so many commits of `commit_transaction` are through: they slow what comes next.

        Commits are made in order, so it looks at the last few, and not too often: CPU time may be under measurement.
        """
        for number in reversed(range(max(0, count - 16), count)):
            opened = self._opened(number)
            until(lambda opened=opened: self._is_committed(opened), pause_s=0.05)  # type: ignore[misc]

    def _commit(self, opened: OpenTransaction) -> None:
        """As Pravega's clients do where their user gives no time: with the name of the writer."""
        request = pb.TxnRequest(writerId=self._scope, timestamp=NO_TIME)
        request.MergeFrom(opened.request)
        _expect(self._stub.commitTransaction(request, timeout=_DEADLINE_S).status, "commitTransaction")

    def _write(self, opened: OpenTransaction, segments: int) -> None:
        self._writer.write(opened.segments[:segments])

    def _is_committed(self, opened: OpenTransaction) -> bool:
        return self._state(opened) == pb.TxnState.COMMITTED

    def _state(self, opened: OpenTransaction) -> int:
        return self._stub.checkTransactionState(opened.request, timeout=_DEADLINE_S).state

    def _opened(self, number: int) -> OpenTransaction:
        while len(self._open) <= number:
            self.create_transaction(number)
        return self._open[number]

    # Parts.

    def _info(self, name: str) -> pb.StreamInfo:
        return pb.StreamInfo(scope=self._scope, stream=name)

    def _host_of(self, parent: str) -> Host:
        """The segment store that has a segment of a stream, by its name."""
        scope, stream, segment, _ = parse_segment_name(parent)
        info = pb.StreamInfo(scope=scope, stream=stream)
        node = self._stub.getURI(pb.SegmentId(streamInfo=info, segmentId=segment), timeout=_DEADLINE_S)
        return Host(node.endpoint, node.port)

    def _segments_of(self, name: str) -> list[int]:
        ranges = self._stub.getCurrentSegments(self._info(name), timeout=_DEADLINE_S).segmentRanges
        if not ranges:
            raise UnexpectedReplyError(f"getCurrentSegments {name}: none")
        return [r.segmentId.segmentId for r in ranges]


def _expect(status: int, call: str) -> None:
    if status != 0:
        raise UnexpectedReplyError(f"{call}: status {status}")


def measurements(calls: Calls, quick: bool) -> Iterator[tuple[str, Callable[[], Figures]]]:
    """Every measurement with its name, in the order to take them; `quick` takes a fifth of the time, for a look."""
    few = 5 if quick else 1
    spell_s, warm_up_s = 10 / few, 3 / few

    def create() -> Figures:
        figures = one_by_one(lambda n: calls.create_stream(f"s{n}"), 100 // few)
        calls.create_streams(f"s{n}" for n in range(100 // few + WARM_UP_CALLS, _READ.stop))
        return figures

    def commit() -> Figures:
        count = 50 // few
        calls.write_events(count + WARM_UP_CALLS)
        figures = one_by_one(calls.commit_transaction, count)
        calls.commits_done(count + WARM_UP_CALLS)
        return figures

    yield CREATE_SCOPE, lambda: one_by_one(calls.more_scopes, 50 // few)
    yield CREATE_STREAM, create
    yield CREATE_STREAM_4, lambda: one_by_one(lambda n: calls.create_stream(f"f{n}", 4), 50 // few)
    yield CURRENT_SEGMENTS, lambda: one_by_one(calls.current_segments, 500 // few)
    yield GET_URI, lambda: one_by_one(calls.uri, 500 // few)
    yield SCALE, lambda: one_by_one(calls.scale, 25 // few)
    yield SEAL_DELETE, lambda: one_by_one(calls.seal_and_delete, 25 // few)
    yield CREATE_TXN, lambda: one_by_one(calls.create_transaction, 100 // few)
    yield PING_TXN, lambda: one_by_one(calls.ping_transaction, 100 // few)
    yield COMMIT_TXN, commit
    yield WHOLE_ONE, lambda: own_times(lambda _: calls.whole_transaction(1), 30 // few)
    yield WHOLE_EACH, lambda: own_times(lambda _: calls.whole_transaction(4), 30 // few)
    yield WHOLE_EMPTY, lambda: own_times(lambda _: calls.whole_transaction(0), 30 // few)
    yield COMMITTED_ONE, lambda: calls.committed(["o"], spell_s)
    yield COMMITTED_MANY, lambda: calls.committed(_MANY, spell_s)
    yield CREATE_STREAM_ALL, lambda: at_once(lambda n: calls.create_stream(f"c{n}"), spell_s, warm_up_s)
    yield CREATE_TXN_ALL, lambda: at_once(calls.leave_open, spell_s, warm_up_s)
    yield CURRENT_SEGMENTS_ALL, lambda: at_once(calls.current_segments, spell_s, warm_up_s)


def measure(calls: Calls, report: Callable[[str, Figures], None], quick: bool = False) -> dict[str, Figures]:
    """Take every measurement; each is reported as soon as it is there.

    Before the first one calls of all kinds go on for a while: Java compiles what runs often only then. Each begins at
    rest: commits and deletions that the one before has left have ended, and what a segment store does behind them.
    """
    few = 5 if quick else 1
    calls.create_scope()
    calls.create_stream("t", 4)
    calls.create_streams(["o", *_MANY])
    warm_up = outcome(lambda: at_once(calls.one_of_each, _WARM_UP_S / few, 0))
    if warm_up.failed:
        report("warm-up", warm_up)
    measured = {}
    for name, take in measurements(calls, quick):
        if not until_at_rest(_REST_LIMIT_S / few):
            report("the machine does not rest before", Figures(failed=name))
        measured[name] = outcome(take)
        report(name, measured[name])
    calls.left_are_aborted()
    return measured
