"""`python -m api_gateway`."""

import os

from api_gateway.settings import GatewaySettings
from sluice.settings import settings_of

NO_CIPHER_OF_TLS_1_2 = "ECDHE-PSK-AES128-CBC-SHA"
"""One for which a server needs no certificate but a secret, which ours has not."""


def limit_protocols() -> None:
    """Have gRPC accept TLSv1.3 alone, if the settings do. It has no setting for that, and reads this when imported."""
    if "TLSv1.2" not in settings_of(GatewaySettings).tls_protocols:
        os.environ["GRPC_SSL_CIPHER_SUITES"] = NO_CIPHER_OF_TLS_1_2


if __name__ == "__main__":
    limit_protocols()
    # gRPC's core writes what callers send, not as lines of our log, and as much of it as they like.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")

    from api_gateway.main import service
    from sluice.runtime import run_service

    run_service(service())
