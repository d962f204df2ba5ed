"""The span of an RPC: the beginning of a trace, or part of one that the caller's metadata names (W3C Trace Context)."""

import asyncio
from typing import Any

import grpc

from api_gateway.edge.errors import failure_of
from api_gateway.pravega.handlers import Context, Handler
from sluice.telemetry import tracing

_OURS = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What counts as an error of a server, by OpenTelemetry's conventions for RPC spans."""


def traced(rpc: str, handler: Handler) -> Handler:
    """The handler inside a span; itself while traces are off, which is decided once."""
    if not tracing.is_on():
        return handler
    attributes = {"rpc.system": "grpc", "rpc.service": "ControllerService", "rpc.method": rpc}

    async def answer(request: Any, context: Context) -> Any:
        span = tracing.begin(rpc, "server", attributes, tracing.received(list(context.invocation_metadata() or ())))
        with span.active():
            try:
                response = await handler(request, context)
            except asyncio.CancelledError:
                _end(span, grpc.StatusCode.CANCELLED, None)
                raise
            except Exception as error:
                code = failure_of(error).code
                _end(span, code, error if code in _OURS else None)
                raise
        _end(span, grpc.StatusCode.OK, None)
        return response

    return answer


def _end(span: tracing.Span, code: grpc.StatusCode, error: Exception | None) -> None:
    span.note({"rpc.grpc.status_code": code.value[0]})
    span.end(error)
