"""The timed calls, made on a controller of a few lines and a segment store in memory, both over sockets."""

import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from containers.store_server import SegmentStoreServer

from bench.calls import Calls
from bench.cpu_calls import kinds
from bench.event_writer import EVENT
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceServicer, add_ControllerServiceServicer_to_server
from sluice.domain.segment import transaction_segment_name
from sluice.pravega.event_frames import HEADER_BYTES


class FakeController(ControllerServiceServicer):
    """Streams have as many segments as requested; a transaction is committed at the second look at its state."""

    def __init__(self, store: SegmentStoreServer) -> None:
        self.streams: dict[str, int] = {}
        self.committed: list[pb.TxnId] = []
        self.pinged = self.looked = 0
        self._store = store

    def createScope(self, request: pb.ScopeInfo, context: object) -> pb.CreateScopeStatus:  # noqa: N802
        return pb.CreateScopeStatus(status=pb.CreateScopeStatus.SUCCESS)

    def createStream(self, request: pb.StreamConfig, context: object) -> pb.CreateStreamStatus:  # noqa: N802
        self.streams[request.streamInfo.stream] = request.scalingPolicy.minNumSegments
        return pb.CreateStreamStatus(status=pb.CreateStreamStatus.SUCCESS)

    def sealStream(self, request: pb.StreamInfo, context: object) -> pb.UpdateStreamStatus:  # noqa: N802
        return pb.UpdateStreamStatus(status=pb.UpdateStreamStatus.SUCCESS)

    def deleteStream(self, request: pb.StreamInfo, context: object) -> pb.DeleteStreamStatus:  # noqa: N802
        del self.streams[request.stream]
        return pb.DeleteStreamStatus(status=pb.DeleteStreamStatus.SUCCESS)

    def getCurrentSegments(self, request: pb.StreamInfo, context: object) -> pb.SegmentRanges:  # noqa: N802
        return pb.SegmentRanges(segmentRanges=self._ranges(request))

    def getURI(self, request: pb.SegmentId, context: object) -> pb.NodeUri:  # noqa: N802
        return pb.NodeUri(endpoint=self._store.host.address, port=self._store.host.port)

    def createTransaction(self, request: pb.CreateTxnRequest, context: object) -> pb.CreateTxnResponse:  # noqa: N802
        id, info = pb.TxnId(highBits=0, lowBits=secrets.randbits(62)), request.streamInfo
        for number in range(self.streams[info.stream]):
            name = transaction_segment_name(info.scope, info.stream, number, id.highBits, id.lowBits)
            self._store.run(self._store.store.create_segment(name, 0, 0))
        return pb.CreateTxnResponse(txnId=id, activeSegments=self._ranges(info))

    def pingTransaction(self, request: pb.PingTxnRequest, context: object) -> pb.PingTxnStatus:  # noqa: N802
        self.pinged += 1
        return pb.PingTxnStatus(status=pb.PingTxnStatus.OK)

    def commitTransaction(self, request: pb.TxnRequest, context: object) -> pb.TxnStatus:  # noqa: N802
        self.committed.append(request.txnId)
        return pb.TxnStatus(status=pb.TxnStatus.SUCCESS)

    def checkTransactionState(self, request: pb.TxnRequest, context: object) -> pb.TxnState:  # noqa: N802
        self.looked += 1
        is_done = request.txnId in self.committed and self.looked % 2 == 0
        return pb.TxnState(state=pb.TxnState.COMMITTED if is_done else pb.TxnState.COMMITTING)

    def _ranges(self, info: pb.StreamInfo) -> list[pb.SegmentRange]:
        return [
            pb.SegmentRange(segmentId=pb.SegmentId(streamInfo=info, segmentId=number))
            for number in range(self.streams[info.stream])
        ]


@pytest.fixture
def store() -> Iterator[SegmentStoreServer]:
    with SegmentStoreServer("127.0.0.1") as store:
        yield store


@pytest.fixture
def controller(store: SegmentStoreServer) -> FakeController:
    return FakeController(store)  # type: ignore[abstract]


@pytest.fixture
def calls(controller: FakeController) -> Iterator[Calls]:
    server = grpc.server(ThreadPoolExecutor(8))
    add_ControllerServiceServicer_to_server(controller, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    calls = Calls(f"127.0.0.1:{port}")
    calls.create_scope()
    calls.create_stream("t", 4)
    yield calls
    calls.close()
    server.stop(None).wait()


def lengths(store: SegmentStoreServer) -> list[int]:
    return sorted(length for _, length, _ in store.contents.values())


@pytest.mark.parametrize("written", [0, 1, 4])
def test_a_whole_transaction_is_written_as_said_and_committed(
    calls: Calls, controller: FakeController, store: SegmentStoreServer, written: int
) -> None:
    assert 0 < calls.whole_transaction(written) < 60
    event = HEADER_BYTES + len(EVENT)
    assert lengths(store) == [0] * (4 - written) + [event] * written
    assert len(controller.committed) == 1


def test_the_time_of_the_write_is_not_in_that_of_a_transaction(
    calls: Calls, store: SegmentStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = 0.3
    monkeypatch.setattr("bench.event_writer.EventWriter.write", lambda *_: threading.Event().wait(slow))
    began = time.perf_counter()
    counted = calls.whole_transaction(1)
    assert 0 < counted <= time.perf_counter() - began - slow


def test_every_transaction_whose_cpu_time_is_measured_is_one_event_committed_once(
    calls: Calls, controller: FakeController, store: SegmentStoreServer
) -> None:
    count = 0
    for kind in kinds(calls, few=100):
        kind.prepare()
        for number in range(kind.count):
            kind.call(number)
        kind.finish()
        count = kind.count if kind.name == "commitTransaction" else count
    event = HEADER_BYTES + len(EVENT)
    assert lengths(store) == [0] * 3 * count + [event] * count
    assert len({id.lowBits for id in controller.committed}) == controller.pinged == count > 0
    assert controller.streams == {"t": 4}
