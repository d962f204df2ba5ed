"""What keeps two controllers from commanding the same segment stores: none of the original may be left.

Segment stores obey whoever has a valid token (controller-metadata-store 6.5). A controller is seen by its node in
ZooKeeper; one that has lost its session, by the address that it once registered. Whether a gateway of Sluice answers
there is seen by gRPC's health service, which the original has not. Blocking.
"""

import socket
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto

import grpc

from sluice.addresses import host_and_port
from sluice.domain.host import Host
from sluice.pravega.container_map import CONTROLLERS_NODE, decode_host
from sluice.pravega.envelope import MalformedPayload
from sluice_cli.migration.raw import Nodes

ANSWER_S = 3.0
"""How long a connection, and an answer on it, may take."""

_HEALTH = "/grpc.health.v1.Health/Check"


class Server(Enum):
    """What is at an address; OTHER is all that is not known to be a gateway of Sluice."""

    NONE = auto()
    SLUICE = auto()
    OTHER = auto()


class Fences:
    """`former` is where controllers of the original have listened.

    `controller` is the address that clients call; with `tls`, if that is secured, all servers are asked.
    """

    def __init__(
        self, nodes: Nodes, former: Iterable[Host], controller: str, tls: grpc.ChannelCredentials | None
    ) -> None:
        self._nodes = nodes
        self._former = set(former)
        self._controller = controller
        self._address = controller.rpartition("://")[2]
        self._tls = tls

    def in_the_way(self) -> list[str]:
        """What stands in the way of reading for the last time, in words. Raises CommandError."""
        return [*self.controllers_left(), *self._without_sluice()]

    def controllers_left(self) -> list[str]:
        """The controllers of the original that are registered, or answer where one was."""
        found = []
        for name in self._nodes.children(CONTROLLERS_NODE):
            found.append(f"the original's controller {name} is registered")
            node = self._nodes.get(f"{CONTROLLERS_NODE}/{name}")
            with suppress(MalformedPayload):
                self._former.update([decode_host(node[0])] if node is not None else ())
        others = sorted(host for host in self._former if self._server_at(f"{host}") is Server.OTHER)
        return found + [f"{host} answers, where the original's controller was" for host in others]

    def _without_sluice(self) -> list[str]:
        if self._server_at(self._address) is Server.SLUICE:
            return []
        return [f"no gateway of Sluice answers at {self._controller}, where clients call"]

    def _server_at(self, address: str) -> Server:
        try:
            socket.create_connection(host_and_port(address), ANSWER_S).close()
        except OSError:
            return Server.NONE
        with self._channel(address) as channel:
            try:
                channel.unary_unary(_HEALTH, bytes, bytes)(b"", timeout=ANSWER_S)
            except grpc.RpcError as error:
                # So says a gateway that holds as many calls as it may.
                is_full = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                return Server.SLUICE if is_full else Server.OTHER
        return Server.SLUICE

    def _channel(self, address: str) -> grpc.Channel:
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        if self._tls is None:
            return grpc.insecure_channel(address, options)
        # The certificate of each is for the name that clients use.
        name = host_and_port(self._address)[0]
        return grpc.secure_channel(address, self._tls, [*options, ("grpc.ssl_target_name_override", name)])
