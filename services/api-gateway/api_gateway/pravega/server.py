"""The gRPC server: every RPC of the interface has a handler, beside gRPC's own health and reflection services.

Belongs to the event loop it is started on.
"""

import asyncio
import errno
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from api_gateway.edge.security.guard import Guard
from api_gateway.pravega.handlers import Handler
from api_gateway.pravega.rpc import guarded
from sluice.addresses import address_of
from sluice.controller_api import controller_pb2 as pb
from sluice.security.tls import Identity
from sluice.security.watched import Watched
from sluice.telemetry.listening import listening_addresses

INTERFACE = pb.DESCRIPTOR.services_by_name["ControllerService"]


class ControllerServer:
    """Serves the interface with these handlers; RPCs without one answer UNIMPLEMENTED.

    A guard, if there is one, stands before all of them, but not before health and reflection.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        max_calls: int,
        guard: Guard | None = None,
        options: Iterable[tuple[str, int]] = (),
    ) -> None:
        self._listening = False
        self._ended: asyncio.Task[object] | None = None
        self._credentials: list[grpc.ServerCredentials] = []
        methods = _methods(handlers, guard)
        # Without this a second server on the same port would silently take half of the calls.
        alone = ("grpc.so_reuseport", 0)
        self._server = grpc.aio.server(options=[alone, *options], maximum_concurrent_rpcs=max_calls)
        # A server waits anew for each registered method with every call. The generated code of health and reflection
        # would register theirs, at the cost of every call of ours; by their names they are found all the same.
        self._server.add_registered_method_handlers = _register_nothing  # type: ignore[attr-defined]
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self._server.add_generic_rpc_handlers((methods,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (INTERFACE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    async def start(self, host: str, port: int, identity: Watched[Identity] | None = None) -> int:
        """The port listened on, which 0 leaves to the system; with an `identity` it wants TLS.

        Raises OSError if it is taken.
        """
        try:
            for address in listening_addresses(host):
                port = self._add_port(address_of(address, port), identity)
        except RuntimeError as error:
            raise OSError(errno.EADDRINUSE, f"cannot listen on gRPC port {port} of {host}: is it taken?") from error
        await self._server.start()
        self._ended = asyncio.create_task(self._server.wait_for_termination())
        self._listening = True
        for service in ("", INTERFACE.full_name):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        return port

    def _add_port(self, address: str, identity: Watched[Identity] | None) -> int:
        if identity is None:
            return self._server.add_insecure_port(address)
        # Each port wants credentials of its own: only the first of those asks for no newer version when it is added.
        # gRPC calls back into them without holding on to them.
        self._credentials.append(reloading_credentials(identity))
        return self._server.add_secure_port(address, self._credentials[-1])

    def problem(self) -> str | None:
        """Why no call can come in, for operators; None while it can."""
        if not self._listening:
            return "does not listen"
        if self._ended is not None and self._ended.done():
            return f"has ended, restart this process: {self._ended.exception()!r}"
        return None

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; those in progress get `grace_s` to end."""
        self._listening = False
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)


def reloading_credentials(identity: Watched[Identity]) -> grpc.ServerCredentials:
    """Credentials of which each handshake takes the newest version."""
    shown = identity.current

    def configuration() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(shown.key, shown.chain)])

    def newest() -> "grpc.ServerCertificateConfiguration | None":
        nonlocal shown
        if identity.current is shown:
            return None
        shown = identity.current
        return configuration()

    # The stubs do not know that None means no change.
    return grpc.dynamic_ssl_server_credentials(configuration(), newest)  # type: ignore[arg-type]


def _register_nothing(_service: str, _methods: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]) -> None:
    """See ControllerServer."""


def _methods(handlers: Mapping[str, Handler], guard: Guard | None) -> "grpc.GenericRpcHandler[Any, Any]":
    unknown = handlers.keys() - {method.name for method in INTERFACE.methods}
    if unknown:
        raise ValueError(f"not in the interface: {sorted(unknown)}")
    return grpc.method_handlers_generic_handler(
        INTERFACE.full_name,
        {m.name: _method(m, handlers[m.name], guard) for m in INTERFACE.methods if m.name in handlers},
    )


def _method(method: MethodDescriptor, handler: Handler, guard: Guard | None) -> "grpc.RpcMethodHandler[bytes, Message]":
    return grpc.unary_unary_rpc_method_handler(
        guarded(method.name, handler, GetMessageClass(method.input_type).FromString, guard),
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )
