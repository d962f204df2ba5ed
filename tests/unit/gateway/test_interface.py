"""All RPCs are there, and whatever arrives at the port leaves the service healthy."""

import asyncio
import logging
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, failure

from api_gateway.edge.reads import Reads
from api_gateway.metrics import RPC_DEFECTS
from api_gateway.pravega.server import INTERFACE, ControllerServer
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

NEEDS_NOTHING = {"getControllerServerList", "getControllerToBucketMapping", "getDelegationToken", "listScopes"}
RPCS = [method.name for method in INTERFACE.methods]


def _bytes_call(gateway: Gateway, rpc: str) -> Any:
    """The RPC with bytes for messages."""
    channel: Any = gateway.channel
    return channel.unary_unary(f"/{INTERFACE.full_name}/{rpc}")


async def _assert_healthy(gateway: Gateway) -> None:
    health: Any = health_pb2_grpc.HealthStub(gateway.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest(service=INTERFACE.full_name))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert not (await gateway.stub.checkScopeExists(pb.ScopeInfo(scope="sc"))).exists


@pytest.mark.parametrize("rpc", RPCS)
async def test_an_empty_request_is_internal_unless_the_rpc_needs_nothing(gateway: Gateway, rpc: str) -> None:
    empty = GetMessageClass(INTERFACE.methods_by_name[rpc].input_type)()
    call = _bytes_call(gateway, rpc)(empty.SerializeToString())
    expected = (grpc.StatusCode.OK, "") if rpc in NEEDS_NOTHING else SYNC_INTERNAL
    assert (await call.code(), await call.details()) == expected
    assert gateway.sent == []


def _defects() -> dict[str, float]:
    """As exposed, by RPC."""
    samples = [sample for metric in RPC_DEFECTS.collect() for sample in metric.samples]
    return {sample.labels["rpc"]: sample.value for sample in samples if sample.name == "sluice_rpc_defects_total"}


async def test_the_defects_of_every_rpc_are_exposed_from_the_beginning(gateway: Gateway) -> None:
    assert set(RPCS) <= _defects().keys()


async def test_a_call_with_bytes_that_are_no_message_fails_alone(gateway: Gateway) -> None:
    before = _defects()
    code, _ = await failure(_bytes_call(gateway, "getCurrentSegments")(b"\xff\xff\xff"))
    assert code is grpc.StatusCode.INTERNAL
    assert _defects() == before, "the caller's fault, not ours"
    await _assert_healthy(gateway)


async def test_a_defect_is_internal_for_its_caller_in_the_log_and_counted(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def defective(_reads: Reads, _name: str) -> bool:
        raise ZeroDivisionError("a defect")

    before = _defects()
    monkeypatch.setattr(Reads, "scope_exists", defective)
    with caplog.at_level(logging.ERROR):
        assert await failure(gateway.stub.checkScopeExists(pb.ScopeInfo(scope="sc"))) == SYNC_INTERNAL
    assert "a defect" in caplog.text
    assert _defects() == {**before, "checkScopeExists": before["checkScopeExists"] + 1}
    monkeypatch.undo()
    await _assert_healthy(gateway)


async def test_reflection_shows_the_interface(gateway: Gateway) -> None:
    def services() -> Any:
        with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            return ProtoReflectionDescriptorDatabase(channel).get_services()

    assert INTERFACE.full_name in await asyncio.to_thread(services)


async def test_two_gateways_do_not_share_a_port_and_it_is_named(gateway: Gateway) -> None:
    with pytest.raises(OSError, match=str(gateway.port)):
        await ControllerServer({}, 1).start("127.0.0.1", gateway.port)


def test_a_handler_for_an_rpc_outside_the_interface_is_a_defect() -> None:
    async def handler(_request: Any, _context: Any) -> None:
        return None

    with pytest.raises(ValueError, match="createScop"):
        ControllerServer({"createScop": handler}, 1)


async def test_calls_in_progress_are_bounded() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def handler(_request: Any, _context: Any) -> pb.ExistsResponse:
        entered.set()
        await leave.wait()
        return pb.ExistsResponse()

    server = ControllerServer({"checkScopeExists": handler}, 1)
    port = await server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = ControllerServiceStub(channel)
        first = asyncio.ensure_future(stub.checkScopeExists(pb.ScopeInfo(scope="a")))
        await entered.wait()
        code, _ = await failure(stub.checkScopeExists(pb.ScopeInfo(scope="b")))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        leave.set()
        await first
    await server.stop(0)
