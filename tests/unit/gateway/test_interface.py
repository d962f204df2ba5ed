"""All RPCs are there, and whatever arrives at the port leaves the service healthy."""

import asyncio
import contextlib
import logging
import os
import socket
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from unit.gateway.conftest import Gateway

from api_gateway.errors import INTERNAL_TEXT
from api_gateway.metrics import RPC_DEFECTS
from api_gateway.reads import Reads
from api_gateway.server import INTERFACE, ControllerServer
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

NEEDS_NOTHING = {"getControllerServerList", "getControllerToBucketMapping", "getDelegationToken", "listScopes"}
RPCS = [method.name for method in INTERFACE.methods]


def _bytes_call(gateway: Gateway, rpc: str) -> Any:
    """The RPC with bytes for messages."""
    channel: Any = gateway.channel
    return channel.unary_unary(f"/{INTERFACE.full_name}/{rpc}")


async def _call_empty(gateway: Gateway, rpc: str) -> tuple[grpc.StatusCode, str | None]:
    """Code and description of the answer to the empty request."""
    method = INTERFACE.methods_by_name[rpc]
    empty = GetMessageClass(method.input_type)()
    call = _bytes_call(gateway, rpc)(empty.SerializeToString())
    return await call.code(), await call.details()


async def _assert_healthy(gateway: Gateway) -> None:
    health: Any = health_pb2_grpc.HealthStub(gateway.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest(service=INTERFACE.full_name))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert not (await gateway.stub.checkScopeExists(pb.ScopeInfo(scope="sc"))).exists


def test_the_interface_has_47_rpcs() -> None:
    assert len(RPCS) == 47


@pytest.mark.parametrize("rpc", RPCS)
async def test_every_rpc_answers(gateway: Gateway, rpc: str) -> None:
    answer = await _call_empty(gateway, rpc)
    if rpc in NEEDS_NOTHING:
        assert answer == (grpc.StatusCode.OK, "")
    else:
        assert answer == (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)


async def test_random_bytes_leave_the_service_healthy(gateway: Gateway) -> None:
    for size in (1, 24, 1000, 100_000):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(os.urandom(size))
        # The server may have hung up before all was said.
        with contextlib.suppress(OSError):
            writer.write_eof()
            await reader.read()
        writer.close()
    await _assert_healthy(gateway)


def _defects() -> dict[str, float]:
    """As told, by RPC."""
    samples = [sample for metric in RPC_DEFECTS.collect() for sample in metric.samples]
    return {sample.labels["rpc"]: sample.value for sample in samples if sample.name == "sluice_rpc_defects_total"}


async def test_every_rpc_tells_of_its_defects_from_the_beginning(gateway: Gateway) -> None:
    assert set(RPCS) <= _defects().keys()


async def test_a_call_with_bytes_that_are_no_message_fails_alone(gateway: Gateway) -> None:
    before = _defects()
    call = _bytes_call(gateway, "getCurrentSegments")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call(b"\xff\xff\xff")
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    assert _defects() == before, "the caller's fault, not ours"
    await _assert_healthy(gateway)


async def test_a_message_over_the_limit_is_refused(gateway: Gateway) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await gateway.stub.checkScopeExists(pb.ScopeInfo(scope="x" * (4 * 1024 * 1024)))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await _assert_healthy(gateway)


async def test_a_defect_is_internal_for_its_caller_in_the_log_and_counted(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def defective(_reads: Reads, _name: str) -> bool:
        raise ZeroDivisionError("a defect")

    before = _defects()
    monkeypatch.setattr(Reads, "scope_exists", defective)
    with caplog.at_level(logging.ERROR), pytest.raises(grpc.aio.AioRpcError) as failed:
        await gateway.stub.checkScopeExists(pb.ScopeInfo(scope="sc"))
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)
    assert "a defect" in caplog.text
    assert _defects() == {**before, "checkScopeExists": before["checkScopeExists"] + 1}
    monkeypatch.undo()
    await _assert_healthy(gateway)


async def test_reflection_shows_the_interface(gateway: Gateway) -> None:
    def services() -> Any:
        with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            return ProtoReflectionDescriptorDatabase(channel).get_services()

    assert INTERFACE.full_name in await asyncio.to_thread(services)


async def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=str(port)):
            await ControllerServer({}, 1).start("127.0.0.1", port)


async def test_two_gateways_do_not_share_a_port(gateway: Gateway) -> None:
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
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await stub.checkScopeExists(pb.ScopeInfo(scope="b"))
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        leave.set()
        await first
    await server.stop(0)
