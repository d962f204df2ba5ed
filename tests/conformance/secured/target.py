"""The two controllers that are called: the original, and our gateway with all that is behind it in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import httpx
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from unit.gateway.conftest import Gateway, served
from unit.gateway.rest.world import World

from api_gateway.edge.security.guard import Guard
from conformance.secured.operations import DENIED, UNAUTHENTICATED
from sluice.controller_api import controller_pb2 as pb

_INTERFACE = pb.DESCRIPTOR.services_by_name["ControllerService"]
_CALL_DEADLINE_S = 60.0
"""Who is refused is refused at once; what takes longer was let through."""

_AT_A_TIME = 8
_CODES = {grpc.StatusCode.UNAUTHENTICATED: UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED: DENIED}
_STATUSES = {401: UNAUTHENTICATED, 403: DENIED}


class Target:
    """Part of `Client`.

    `refusals` are the descriptions and bodies of all that was refused, but of our own interface over HTTP.
    """

    def __init__(self, channel: grpc.aio.Channel, http: httpx.AsyncClient) -> None:
        self._channel = channel
        self._http = http
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self.refusals: set[tuple[str, str]] = set()

    async def rpc(self, name: str, request: Message, authorization: str) -> str:
        output = GetMessageClass(_INTERFACE.methods_by_name[name].output_type)
        call: Any = self._channel.unary_unary(
            f"/{_INTERFACE.full_name}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=output.FromString,
        )
        metadata = (("authorization", authorization),) if authorization else ()
        async with self._turns:
            try:
                await call(request, timeout=_CALL_DEADLINE_S, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                outcome = _CODES.get(error.code())
                if outcome is not None:
                    self.refusals.add((outcome, error.details() or ""))
                return outcome or error.code().name
        return "OK"

    async def http(self, method: str, path: str, body: Any, authorization: str) -> str:
        headers = {"Authorization": authorization} if authorization else {}
        async with self._turns:
            try:
                answer = await self._http.request(method, path, json=body, headers=headers)
            except httpx.TimeoutException:
                return "no answer"
        outcome = _STATUSES.get(answer.status_code)
        if outcome is not None and not path.startswith("/sluice/"):
            self.refusals.add((outcome, answer.text))
        return outcome or str(answer.status_code)


@asynccontextmanager
async def ours(guard: Guard) -> AsyncIterator[Target]:
    """Our gateway behind this guard."""
    world = World(guard=guard)
    await world.start()
    transport = httpx.ASGITransport(world.app)
    gateway: Gateway
    async with (
        served(guard, token_key="a key") as gateway,
        httpx.AsyncClient(transport=transport, base_url="http://gateway") as http,
    ):
        yield Target(gateway.channel, http)
    await world.stop()


@asynccontextmanager
async def theirs(address: str, rest_url: str) -> AsyncIterator[Target]:
    """A controller that is up."""
    async with (
        grpc.aio.insecure_channel(address) as channel,
        httpx.AsyncClient(base_url=rest_url, timeout=_CALL_DEADLINE_S, trust_env=False) as http,
    ):
        yield Target(channel, http)
