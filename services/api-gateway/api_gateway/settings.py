"""The settings of the gateway, from the environment with the prefix SLUICE_."""

from sluice.settings import ServiceSettings


class GatewaySettings(ServiceSettings):
    """Clients get the published address to connect to; by default the port is the one listened on.

    `health_port` is that of all that is served over HTTP, the REST interfaces included; `store_timeout_s` bounds each
    question to a segment store. `max_pending` bounds the requests that wait for a reply, `max_calls` all calls of gRPC
    in progress, reads included, and `max_http_calls` those of the REST interfaces.

    With `auth_enabled` callers are asked who they are: by Pravega's password file `auth_accounts`, and by OpenID
    Connect tokens of `auth_oidc_issuer` for `auth_oidc_audience`. The issuer's keys come from `auth_oidc_jwks`, a file
    or a URL, else from where the issuer says; `auth_oidc_ca` is a file of the authorities that its certificate may be
    of. With `auth_oidc_accounts` the ACL of the account with the principal's name counts, not the token's permissions.
    `auth_reader_groups_with_read`: who may READ a scope may make reader groups in it, and write their state.
    """

    health_port: int = 10080
    grpc_port: int = 9090
    grpc_published_host: str = "127.0.0.1"
    grpc_published_port: int | None = None
    max_pending: int = 10_000
    max_calls: int = 20_000
    max_http_calls: int = 1_000
    request_timeout_s: float = 120
    store_timeout_s: float = 10
    stop_grace_s: float = 3

    auth_enabled: bool = False
    auth_accounts: str = ""
    auth_oidc_issuer: str = ""
    auth_oidc_audience: str = "pravega-controller"
    auth_oidc_jwks: str = ""
    auth_oidc_ca: str = ""
    auth_oidc_accounts: bool = False
    auth_reader_groups_with_read: bool = True

    @property
    def grpc_endpoint(self) -> str:
        """host:port of the gRPC interface, as clients reach it."""
        return f"{self.grpc_published_host}:{self.grpc_published_port or self.grpc_port}"

    @property
    def rest_endpoint(self) -> str:
        """host:port of the HTTP interface, as operators and tools reach it."""
        return f"{self.grpc_published_host}:{self.health_port}"
