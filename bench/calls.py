"""The timed calls: the same for any Pravega controller, over gRPC with the stubs of our own interface description.

A fresh scope for every run, so that runs on one data plane do not meet. Blocking; the concurrent measurements call the
same methods from many threads, which gRPC's stubs allow.
"""

import secrets
import time
from collections.abc import Callable, Iterator

import grpc

from bench.figures import Figures
from bench.stopwatch import CALLERS, UnexpectedReplyError, at_once, one_by_one, outcome, until
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

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
WHOLE_TXN = "transaction, open to COMMITTED"
COMMITTED_ONE = f"committed transactions, 1 stream, {CALLERS} callers"
COMMITTED_MANY = f"committed transactions, 100 streams, {CALLERS} callers"
CREATE_STREAM_ALL = f"createStream, {CALLERS} callers"
CREATE_TXN_ALL = f"createTransaction, {CALLERS} callers"
CURRENT_SEGMENTS_ALL = f"getCurrentSegments, {CALLERS} callers"

_DEADLINE_S = 60.0
_DRAINED_S = 300.0
_LEASE_MS = 30_000
_MANY = [f"x{n}" for n in range(100)]
_SCALED, _DROPPED, _READ = range(30), range(30, 60), range(60, 105)
"""Which of the streams made one by one each measurement uses; the first two change theirs."""


class Calls:
    """Calls on streams of one scope of the controller at `address` (host:port)."""

    def __init__(self, address: str) -> None:
        self._stub = ControllerServiceStub(grpc.insecure_channel(address))
        self._scope = f"bench{secrets.token_hex(4)}"
        self._open: list[pb.TxnId] = []

    def create_scope(self, number: int = 0) -> None:
        name = f"{self._scope}x{number}" if number else self._scope
        _expect(self._stub.createScope(pb.ScopeInfo(scope=name), timeout=_DEADLINE_S).status, "createScope")

    def more_scopes(self, number: int) -> None:
        self.create_scope(number + 1)

    def create_stream(self, name: str, segments: int = 1) -> None:
        policy = pb.ScalingPolicy(scaleType=pb.ScalingPolicy.FIXED_NUM_SEGMENTS, minNumSegments=segments)
        config = pb.StreamConfig(streamInfo=self._info(name), scalingPolicy=policy)
        _expect(self._stub.createStream(config, timeout=_DEADLINE_S).status, f"createStream {name}")

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
        stream = self._info(f"s{_DROPPED[number]}")
        _expect(self._stub.sealStream(stream, timeout=_DEADLINE_S).status, f"sealStream {stream.stream}")
        _expect(self._stub.deleteStream(stream, timeout=_DEADLINE_S).status, f"deleteStream {stream.stream}")

    # Transactions.

    def open_transaction(self, stream: str) -> pb.TxnId:
        request = pb.CreateTxnRequest(streamInfo=self._info(stream), lease=_LEASE_MS)
        return self._stub.createTransaction(request, timeout=_DEADLINE_S).txnId

    def create_transaction(self, _number: int) -> None:
        self._open.append(self.open_transaction("t"))

    def ping_transaction(self, number: int) -> None:
        request = pb.PingTxnRequest(streamInfo=self._info("t"), txnId=self._opened(number), lease=_LEASE_MS)
        _expect(self._stub.pingTransaction(request, timeout=_DEADLINE_S).status, "pingTransaction")

    def commit_transaction(self, number: int) -> None:
        request = pb.TxnRequest(streamInfo=self._info("t"), txnId=self._opened(number))
        _expect(self._stub.commitTransaction(request, timeout=_DEADLINE_S).status, "commitTransaction")

    def whole_transaction(self, _number: int) -> None:
        request = pb.TxnRequest(streamInfo=self._info("t"), txnId=self.open_transaction("t"))
        _expect(self._stub.commitTransaction(request, timeout=_DEADLINE_S).status, "commitTransaction")
        until(lambda: self._is_committed(request))

    def open_and_commit(self, stream: str) -> pb.TxnRequest:
        """Returns what to ask for its state with; it is committed some time later."""
        request = pb.TxnRequest(streamInfo=self._info(stream), txnId=self.open_transaction(stream))
        _expect(self._stub.commitTransaction(request, timeout=_DEADLINE_S).status, "commitTransaction")
        return request

    def committed(self, streams: list[str], spell_s: float) -> Figures:
        """Transactions per second that were opened and committed, the time until the last one is included.

        Commits are made in the order in which they were requested, so it suffices to wait for each caller's last.
        """
        requests: list[pb.TxnRequest] = []
        began = time.perf_counter()
        load = at_once(lambda n: requests.append(self.open_and_commit(streams[n % len(streams)])), spell_s, 0)
        for request in reversed(requests[-max(CALLERS, len(streams)) * 2 :]):
            until(lambda request=request: self._is_committed(request), _DRAINED_S)  # type: ignore[misc]
        per_s = len(requests) / (time.perf_counter() - began)
        return Figures(len(requests), per_s=round(per_s, 1), client_cpu=load.client_cpu)

    def last_commit_done(self, number: int) -> None:
        """Return when the commits of `commit_transaction` are through, so that they do not slow what comes next."""
        request = pb.TxnRequest(streamInfo=self._info("t"), txnId=self._opened(number))
        until(lambda: self._is_committed(request))

    def _is_committed(self, request: pb.TxnRequest) -> bool:
        return self._stub.checkTransactionState(request, timeout=_DEADLINE_S).state == pb.TxnState.COMMITTED

    def _opened(self, number: int) -> pb.TxnId:
        while len(self._open) <= number:
            self.create_transaction(number)
        return self._open[number]

    # Parts.

    def _info(self, name: str) -> pb.StreamInfo:
        return pb.StreamInfo(scope=self._scope, stream=name)

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
    reads = len(_READ)

    def commit() -> Figures:
        figures = one_by_one(calls.commit_transaction, 50 // few)
        calls.last_commit_done(figures.count + 4)
        return figures

    yield CREATE_SCOPE, lambda: one_by_one(calls.more_scopes, 50 // few)
    yield CREATE_STREAM, lambda: one_by_one(lambda n: calls.create_stream(f"s{n}"), 100)
    yield CREATE_STREAM_4, lambda: one_by_one(lambda n: calls.create_stream(f"f{n}", 4), 50 // few)
    yield CURRENT_SEGMENTS, lambda: one_by_one(calls.current_segments, 500 // few)
    yield GET_URI, lambda: one_by_one(calls.uri, 500 // few)
    yield SCALE, lambda: one_by_one(calls.scale, 25 // few)
    yield SEAL_DELETE, lambda: one_by_one(calls.seal_and_delete, 25 // few)
    yield CREATE_TXN, lambda: one_by_one(calls.create_transaction, 100 // few)
    yield PING_TXN, lambda: one_by_one(calls.ping_transaction, 100 // few)
    yield COMMIT_TXN, commit
    yield WHOLE_TXN, lambda: one_by_one(calls.whole_transaction, 30 // few)
    yield COMMITTED_ONE, lambda: calls.committed(["o"], spell_s)
    yield COMMITTED_MANY, lambda: calls.committed(_MANY, spell_s)
    yield CREATE_STREAM_ALL, lambda: at_once(lambda n: calls.create_stream(f"c{n}"), spell_s, warm_up_s)
    yield CREATE_TXN_ALL, lambda: at_once(lambda n: calls.open_transaction(f"s{_READ[n % reads]}"), spell_s, warm_up_s)
    yield CURRENT_SEGMENTS_ALL, lambda: at_once(calls.current_segments, spell_s, warm_up_s)


def measure(calls: Calls, report: Callable[[str, Figures], None], quick: bool = False) -> dict[str, Figures]:
    """Take every measurement; each is reported as soon as it is there."""
    calls.create_scope()
    for name, segments in (("t", 4), ("o", 1), *((name, 1) for name in _MANY)):
        calls.create_stream(name, segments)
    measured = {}
    for name, take in measurements(calls, quick):
        measured[name] = outcome(take)
        report(name, measured[name])
    return measured
