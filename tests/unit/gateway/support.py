"""What the tests of handlers have in common."""

from collections.abc import Awaitable
from typing import Any

import grpc
from unit.gateway.conftest import Gateway

from api_gateway.errors import INTERNAL_TEXT
from api_gateway.generated import controller_pb2 as pb


async def failure(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str | None]:
    """Code and description of a call that must fail."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"answered {answer}")


SYNC_INTERNAL = (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)


async def create_scope(gateway: Gateway, scope: str = "sc") -> None:
    answer = await gateway.stub.createScope(pb.ScopeInfo(scope=scope))
    assert answer.status == pb.CreateScopeStatus.SUCCESS


async def create_stream(
    gateway: Gateway, name: str = "st", scope: str = "sc", segments: int = 2, tag: str = ""
) -> None:
    answer = await gateway.stub.createStream(
        pb.StreamConfig(
            streamInfo=pb.StreamInfo(scope=scope, stream=name),
            scalingPolicy=pb.ScalingPolicy(minNumSegments=segments),
            tags=pb.Tags(tag=[tag] if tag else []),
        )
    )
    assert answer.status == pb.CreateStreamStatus.SUCCESS
