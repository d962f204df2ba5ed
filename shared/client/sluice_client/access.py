"""How a client gets in: who it says it is, and whose certificates it trusts. Nothing here changes later."""

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import grpc
import msgspec

from sluice.addresses import address_of, host_and_port
from sluice.security.contexts import ClientTls, client_context
from sluice.security.credentials import CA_VARIABLE, Credentials, credentials_of
from sluice.security.hiding import shown
from sluice.security.watched import SecurityConfigError, Watched

_PLAIN, _SECURED = "tcp", "tls"


class Access(msgspec.Struct, frozen=True):
    """Credentials, None for none, and `ca`: a file of authorities in PEM, empty for those of the machine.

    Credentials are sent over unsecured connections, too, as Pravega's clients do. Host names are always verified.
    """

    credentials: Credentials | None = None
    ca: str = ""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """What `SLUICE_USER`, `SLUICE_PASSWORD_FILE`, `SLUICE_CA` say, or `pravega_client_auth_…`.

        Raises ValueError for half of it.
        """
        try:
            return cls(credentials_of(environment), environment.get(CA_VARIABLE, ""))
        except SecurityConfigError as error:
            raise ValueError(str(error)) from error

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with every call to the controller."""
        return (("authorization", self.credentials.header),) if self.credentials is not None else ()

    def to_controller(self) -> grpc.ChannelCredentials:
        """How a channel is secured. Raises ValueError."""
        self.to_stores()
        file = self.ca or ssl.get_default_verify_paths().cafile
        return grpc.ssl_channel_credentials(Path(file).read_bytes() if file else None)

    def to_stores(self) -> Watched[ssl.SSLContext]:
        """How connections to segment stores are secured. Raises ValueError."""
        tls = ClientTls("authorities", self.ca)
        try:
            return Watched("TLS to segment stores", [Path(self.ca)] if self.ca else [], lambda *_: client_context(tls))
        except SecurityConfigError as error:
            raise ValueError(str(error)) from error


OPEN_ACCESS = Access()
"""No credentials, and the authorities of the machine."""


def host_in(address: str) -> str:
    """`host:port` of an address. Raises ValueError for one that is no controller's."""
    scheme, separator, rest = address.rpartition("://")
    try:
        if separator and scheme not in (_PLAIN, _SECURED):
            raise ValueError(scheme)
        return address_of(*host_and_port(rest))
    except ValueError:
        raise ValueError(f"not the address of a controller: {shown(address)!r}") from None


def is_secured(address: str) -> bool:
    """Whether an address asks for TLS."""
    return address.startswith(f"{_SECURED}://")
