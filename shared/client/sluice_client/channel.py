"""The gRPC channel to a controller: a new one replaces it when it no longer answers.

The other side of a TCP connection may vanish without a word, behind a firewall or with its machine. Then gRPC keeps the
connection for many minutes, and with it every call fails. Pings find that out no sooner: a controller as it comes
allows one in five minutes. So a call that ran out of time has a new channel made, which must not share the connection
of the old one; the calls on that one go on to their own deadlines, for it may only have been slow. Callers that leave
sooner than that would never find out: so one attempt goes on when its caller has left.

Concurrency: any number of calls side by side on one event loop.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice_client.errors import ClientClosed

if TYPE_CHECKING:
    from sluice.controller_api.controller_pb2_grpc import ControllerServiceAsyncStub

_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    # Variables for the Internet's sake mean no controller: REST, segment stores and Kafka are called directly, too.
    ("grpc.enable_http_proxy", 0),
)
_MAX_LEAVING = 4
Request = TypeVar("Request")
Answer = TypeVar("Answer")
Rpc = Callable[["ControllerServiceAsyncStub"], grpc.aio.UnaryUnaryMultiCallable[Request, Answer]]
"""Picks a method of the stub, because the stub may be a new one at the next attempt."""


class ControllerChannel:
    """A channel to `host:port`; an attempt on it takes `attempt_s` at most.

    `tls` is how it is secured, if it is, and `metadata` goes with every call.
    """

    def __init__(
        self,
        target: str,
        attempt_s: float,
        tls: grpc.ChannelCredentials | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._target = target
        self._tls = tls
        self._metadata = metadata
        self._attempt_s = attempt_s
        self._leaving: dict[grpc.aio.Channel, asyncio.Task[None]] = {}
        self._given_up: asyncio.Task[Any] | None = None
        self._closed = False
        self._connect()

    async def attempt(self, rpc: Rpc[Request, Answer], request: Request, left_s: float) -> Answer:
        """The answer to one attempt, which also ends when `left_s` are over.

        Raises grpc.aio.AioRpcError, ClientClosed.
        """
        attempt = asyncio.create_task(self._attempt(rpc, request, left_s), name=f"call {self._target}")
        try:
            await asyncio.wait((attempt,))
        except asyncio.CancelledError:
            self._give_up(attempt)
            raise
        if attempt.cancelled() or attempt.exception() is not None:
            # gRPC cancels the calls on a channel that is closed.
            self._check_open()
        return attempt.result()

    async def close(self) -> None:
        """Closes the channel; calls under way end with ClientClosed."""
        self._closed = True
        leaving = dict(self._leaving)
        for task in leaving.values():
            task.cancel()
        await asyncio.gather(*leaving.values(), return_exceptions=True)
        for channel in [*leaving, self._channel]:
            await channel.close(None)
        if self._given_up is not None:
            await asyncio.gather(self._given_up, return_exceptions=True)

    async def _attempt(self, rpc: Rpc[Request, Answer], request: Request, left_s: float) -> Answer:
        self._check_open()
        channel = self._channel
        try:
            timeout_s = max(0.0, min(self._attempt_s, left_s))
            return await rpc(self._stub)(
                request, timeout=timeout_s, wait_for_ready=True, metadata=self._metadata or None
            )
        except grpc.aio.AioRpcError as error:
            late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if late and channel is self._channel and not self._closed:
                self._replace()
            raise

    def _give_up(self, attempt: "asyncio.Task[Any]") -> None:
        """Has an attempt go on without its caller, unless another one does already."""
        if self._given_up is None or self._given_up.done():
            self._given_up = attempt
            attempt.add_done_callback(_retrieve)
        else:
            attempt.cancel()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed(self._target)

    def _replace(self) -> None:
        if len(self._leaving) < _MAX_LEAVING:
            leaving = asyncio.create_task(self._leave(self._channel), name=f"leave {self._target}")
            self._leaving[self._channel] = leaving
            self._connect()

    def _connect(self) -> None:
        if self._tls is None:
            self._channel = grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        else:
            self._channel = grpc.aio.secure_channel(self._target, self._tls, options=_OPTIONS)
        self._stub: ControllerServiceAsyncStub = ControllerServiceStub(self._channel)

    async def _leave(self, channel: grpc.aio.Channel) -> None:
        """Closes a channel when the calls on it have had all their time.

        Not by the grace that `close` of gRPC gives: a channel that has begun it cannot be closed any sooner.
        """
        await asyncio.sleep(2 * self._attempt_s)
        await channel.close(None)
        del self._leaving[channel]


def _retrieve(attempt: "asyncio.Task[Any]") -> None:
    """Retrieves a failure that no caller is left to receive."""
    if not attempt.cancelled():
        attempt.exception()
