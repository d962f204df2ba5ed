"""What is asked of `sluice dev`."""

import msgspec

HOST = "127.0.0.1"


class NotMadeError(Exception):
    """A scope or a stream to begin with was refused."""


class StreamToBegin(msgspec.Struct, frozen=True):
    scope: str
    name: str
    segments: int = 1


class DevOptions(msgspec.Struct, frozen=True):
    """Port 0 is a free one. Scopes and streams are there to begin with; a stream's scope is, too.

    Clients come to the `published` host, without one to the `host` that is listened on; all addresses need
    one. Of the requests to the segment store a share of `failing` ends with its connection, and each takes up to
    `slow_s`; one container after another is away for up to `moving_s`; all of that once all is ready. The load of a
    segment is looked at every `load_interval_s`; a stream is not scaled within `cooldown_s` of its last scale. A
    `secure` one has TLS, users and tokens.
    """

    host: str = HOST
    grpc_port: int = 9090
    rest_port: int = 10080
    store_port: int = 12345
    scopes: tuple[str, ...] = ()
    streams: tuple[StreamToBegin, ...] = ()
    load_interval_s: float = 5.0
    cooldown_s: float = 10.0
    published: str = ""
    failing: float = 0.0
    slow_s: float = 0.0
    moving_s: float = 0.0
    secure: bool = False
