"""The boundary around every RPC: its time is measured, whatever it raises becomes a gRPC status.

Nothing a caller sends and no defect of ours ends the service: an unexpected exception is INTERNAL for that one
caller and stands in the log with its stack.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NoReturn

from api_gateway.edge.errors import failure_of
from api_gateway.edge.security.guard import Guard
from api_gateway.metrics import RPC_DEFECTS
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.permissions import RPCS
from api_gateway.pravega.traced import traced
from sluice.exceptions import in_words
from sluice.telemetry.metrics import RPC_SECONDS

log = logging.getLogger(__name__)


def guarded(rpc: str, handler: Handler, parse: Callable[[bytes], Any], guard: Guard | None = None) -> Handler:
    """The handler inside the boundary. It is given the bytes of a request, for they may be of no message at all.

    Without a guard nobody is asked for credentials.
    """
    answered = RPC_SECONDS.labels(rpc, "OK").observe
    RPC_DEFECTS.labels(rpc)  # Exposed as 0 from now on: a rate sees no increase in a first sample.
    now = time.perf_counter
    handle = traced(rpc, handler if guard is None else _admitted(rpc, handler, guard))

    async def answer(request: bytes, context: Context) -> Any:
        began = now()
        try:
            response = await handle(parse(request), context)
        except asyncio.CancelledError:
            RPC_SECONDS.labels(rpc, "CANCELLED").observe(now() - began)
            raise
        except Exception as error:  # noqa: BLE001 - this is the boundary
            await _fail(rpc, context, error, began)
        answered(now() - began)
        return response

    return answer


def _admitted(rpc: str, handler: Handler, guard: Guard) -> Handler:
    """The handler for callers who may do this."""
    rule = RPCS[rpc]

    async def answer(request: Any, context: Context) -> Any:
        caller = await guard.admit(rule, request, _authorization(context))
        with guard.serving(caller):
            return await handler(request, context)

    return answer


def _authorization(context: Context) -> str | None:
    """The last one, of several."""
    found = dict(context.invocation_metadata() or ()).get("authorization")
    return found if isinstance(found, str) else None


async def _fail(rpc: str, context: Context, error: Exception, began: float) -> NoReturn:
    failure = failure_of(error)
    RPC_SECONDS.labels(rpc, failure.code.name).observe(time.perf_counter() - began)
    if failure.level >= logging.ERROR:
        RPC_DEFECTS.labels(rpc).inc()
    if log.isEnabledFor(failure.level):
        facts = {"rpc": rpc, "code": failure.code.name, "error": in_words(error), "trace": trace_of(context)}
        log.log(failure.level, "call failed", extra=facts, exc_info=error if failure.level >= logging.ERROR else None)
    await context.abort(failure.code, failure.details)


def trace_of(context: Context) -> str:
    """The id the caller gave its call, a decimal number; empty unless it came with a description of the call.

    Java clients send both headers (controller-grpc-api 12). What is not a number is ignored.
    """
    found = {key: value for key, value in context.invocation_metadata() or () if key.startswith("request")}
    id = found.get("requestid")
    if not isinstance(id, str) or "requestdescriptor" not in found:
        return ""
    return id if len(id) <= 20 and id.isascii() and id.removeprefix("-").isdigit() else ""
