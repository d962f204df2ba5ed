"""What one caller can take of the gRPC server before it is known who calls: options of gRPC's core.

The core cuts what goes beyond: a connection too many is closed, a message or headers too large are RESOURCE_EXHAUSTED,
calls too many on a connection wait at the client. It cannot bound connections by address (docs/security.md).
"""

from api_gateway.settings import GatewaySettings

HANDSHAKE_S = 10
"""How long a connection may take until it speaks HTTP/2, TLS included."""

PING_S = 60
PING_ANSWER_S = 20
"""A client that does not answer a ping in time is gone, or does not read: its connection is cut."""

MIN_PING_S = 10
"""Clients may ping as often as this, with calls or without. Java clients of Pravega do so every 6 minutes."""


def channel_options(settings: GatewaySettings) -> list[tuple[str, int]]:
    """The options of the server."""
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        # Between the two, the core would refuse some calls by chance.
        ("grpc.max_metadata_size", settings.max_header_bytes),
        ("grpc.absolute_max_metadata_size", settings.max_header_bytes),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.max_concurrent_streams", settings.max_calls_per_connection),
        # With it a client that is at its limit is refused most of its calls, instead of having them wait.
        ("grpc.http.overload_protection", 0),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
        ("grpc.keepalive_time_ms", PING_S * 1000),
        ("grpc.keepalive_timeout_ms", PING_ANSWER_S * 1000),
        ("grpc.http2.ping_timeout_ms", PING_ANSWER_S * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # A ping comes sooner behind one that was late on its way.
        ("grpc.http2.min_ping_interval_without_data_ms", int(MIN_PING_S / 2 * 1000)),
        *_age(settings),
    ]


def _age(settings: GatewaySettings) -> list[tuple[str, int]]:
    if not settings.connection_age_s:
        return []
    return [
        ("grpc.max_connection_age_ms", int(settings.connection_age_s * 1000)),
        # Whatever is in progress has its answer by then.
        ("grpc.max_connection_age_grace_ms", int((settings.request_timeout_s + settings.store_timeout_s) * 1000)),
    ]
