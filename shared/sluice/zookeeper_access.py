"""How kazoo connects to ZooKeeper: plainly, or with TLS and SASL of what watched files hold when it connects."""

import socket
import ssl
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from sluice.security.watched import Watched
from sluice.service_context import as_this_service


class ZooKeeperAccess(SequentialThreadingHandler):  # type: ignore[misc]
    """A handler of kazoo's for one client: it connects with the newest context, and has `sasl` hold the password."""

    def __init__(self, tls: Watched[ssl.SSLContext] | None, user: str, password: Watched[str] | None) -> None:
        super().__init__()
        self._tls = tls
        self._password = password
        self.sasl: dict[str, str] | None = (
            {"mechanism": "DIGEST-MD5", "username": user} if password is not None else None
        )
        """What kazoo logs in with, right after it connected."""

    def spawn(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """See SequentialThreadingHandler: all threads of a client begin here."""
        return super().spawn(as_this_service(func), *args, **kwargs)

    def create_connection(
        self, address: Any, hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> Any:
        """See SequentialThreadingHandler. What kazoo would make a context of is not used."""
        if self.sasl is not None and self._password is not None:
            self.sasl["password"] = self._password.current
        connected = socket.create_connection(address, timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return connected
        try:
            return self._tls.current.wrap_socket(connected, server_hostname=hostname)
        except OSError:
            connected.close()
            raise
