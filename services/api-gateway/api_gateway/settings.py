"""The settings of the gateway, from the environment with the prefix SLUICE_."""

import ipaddress
from enum import StrEnum

from pydantic import Field

from sluice.addresses import LOOPBACK, address_of
from sluice.security.tls import Identity, watched_identity
from sluice.security.watched import Watched
from sluice.settings import Count, HostName, PolicySettings, Port, Seconds, SecondsOrZero


class Serves(StrEnum):
    """What a process serves."""

    ALL = "all"
    PRAVEGA = "pravega"
    CONSOLE = "console"

    @property
    def pravega(self) -> bool:
        """Pravega's interfaces: gRPC, and REST at /v1."""
        return self is not Serves.CONSOLE

    @property
    def console(self) -> bool:
        """What operators use: REST at /sluice/v1, and the page."""
        return self is not Serves.PRAVEGA


class PageMode(StrEnum):
    """What the page is served for."""

    OFF = "off"
    READ_ONLY = "read-only"
    ON = "on"


class GatewaySettings(PolicySettings):
    """Clients get the published address to connect to; by default the port is the one listened on.

    `serves` says what this process is for: `pravega`, the interfaces of Pravega's controller; `console`, what operators
    use, /sluice/v1 and the page, in a process that no client of Pravega waits for; or `all`.

    `health_port` is that of all that is served over HTTP, the REST interfaces included; `store_timeout_s` bounds each
    question to a segment store. `max_pending` bounds the requests that wait for a reply, a quarter of them of one user
    and a tenth on one stream, and `max_calls` all calls of gRPC in progress, reads included. Of `max_http_connections`
    half may have a call in progress, a fifth a body on its way, and a fifth a feed of events.

    With `auth_enabled` callers are asked who they are: by Pravega's password file `auth_accounts`, and by OpenID
    Connect tokens of `auth_oidc_issuer` for `auth_oidc_audience`. The issuer's keys come from `auth_oidc_jwks`, a file
    or a URL, else from where the issuer says; `auth_oidc_ca` is a file of the authorities that its certificate may be
    of. With `auth_oidc_accounts` the ACL of the account with the principal's name counts, not the token's permissions.
    `auth_reader_groups_with_read`: who may READ a scope may make reader groups in it, and write their state.

    What follows bounds what one caller can take, with credentials or without. `max_message_bytes` is that of a message
    of gRPC; `max_connections` bounds the connections to the gRPC port, `max_calls_per_connection` the calls in progress
    on one. A connection older than `connection_age_s` takes no new calls, so that clients spread over the gateways; its
    calls get the time that a reply may take; 0: it may live for ever. `max_calls_per_user` bounds the calls in progress
    of one user. `quota_per_user_s` and `quota_per_scope_s` are calls a second of one user and on one scope at this
    gateway, on average over `quota_burst_s`; 0: as many as come.

    `page` says what the operators' page may do: `off`, `read-only` or `on`. Left out, it is `on` where callers are
    authenticated or only this machine reaches the port, else `read-only`. `page_hosts` are the names, with commas
    between them, under which browsers reach the gateway beside its addresses. On `page_port`, if it is given, the same
    is served as on `health_port`: browsers open no port 10080.

    `show_data` says whether the console shows events and entries to who may read them; left out, it does where callers
    are authenticated or only this machine reaches the port.
    """

    serves: Serves = Serves.ALL
    health_port: Port = 10080
    grpc_port: Port = 9090
    grpc_published_host: HostName = "127.0.0.1"
    grpc_published_port: Port | None = None
    max_pending: Count = 10_000
    max_calls: Count = 20_000
    request_timeout_s: Seconds = 120
    store_timeout_s: Seconds = 10
    stop_grace_s: SecondsOrZero = 3
    max_message_bytes: int = Field(default=4 * 1024 * 1024, ge=64 * 1024)
    max_connections: int = Field(default=10_000, ge=1)
    max_calls_per_connection: int = Field(default=1_000, ge=1)
    connection_age_s: float = Field(default=3_600, ge=0)
    max_calls_per_user: int = Field(default=10_000, ge=1)
    quota_per_user_s: float = Field(default=0, ge=0)
    quota_per_scope_s: float = Field(default=0, ge=0)
    quota_burst_s: float = Field(default=5, gt=0, le=3600)

    page: PageMode | None = None
    page_hosts: str = ""
    page_port: Port | None = None
    show_data: bool | None = None

    auth_enabled: bool = False
    auth_accounts: str = ""
    auth_oidc_issuer: str = ""
    auth_oidc_audience: str = "pravega-controller"
    auth_oidc_jwks: str = ""
    auth_oidc_ca: str = ""
    auth_oidc_accounts: bool = False
    auth_reader_groups_with_read: bool = True

    def security(self) -> dict[str, str]:
        """See ServiceSettings; by which methods callers are authenticated is added when that is known."""
        quotas = f"{self.quota_per_user_s:g} a user, {self.quota_per_scope_s:g} a scope"
        more = {"callers": "not authenticated", "quotas_per_s": quotas, "page": self.page_mode.value}
        return {**super().security(), **more}

    def identity(self) -> Watched[Identity] | None:
        """See ServiceSettings; clients look for the published host in the certificate."""
        return watched_identity(
            self.tls_certificate,
            self.tls_key,
            self.tls_protocols,
            self.grpc_published_host,
            "SLUICE_GRPC_PUBLISHED_HOST",
        )

    @property
    def http_ports(self) -> tuple[int, ...]:
        """See ServiceSettings."""
        return (*super().http_ports, *(() if self.page_port is None else (self.page_port,)))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the ports."""
        if self.host == LOOPBACK:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def page_mode(self) -> PageMode:
        """What the page may do."""
        if not self.serves.console:
            return PageMode.OFF
        if self.page is not None:
            return self.page
        return PageMode.ON if self._knows_callers else PageMode.READ_ONLY

    @property
    def shows_data(self) -> bool:
        """Whether the console shows what streams and tables hold."""
        return self._knows_callers if self.show_data is None else self.show_data

    @property
    def _knows_callers(self) -> bool:
        return self.auth_enabled or self.is_loopback

    @property
    def page_host_names(self) -> tuple[str, ...]:
        """The names in `page_hosts`."""
        return tuple(filter(None, (name.strip() for name in self.page_hosts.split(","))))

    @property
    def grpc_endpoint(self) -> str:
        """host:port of the gRPC interface, as clients reach it."""
        return address_of(self.grpc_published_host, self.grpc_published_port or self.grpc_port)

    @property
    def rest_endpoint(self) -> str:
        """host:port of the HTTP interface, as operators and tools reach it."""
        return address_of(self.grpc_published_host, self.health_port)
