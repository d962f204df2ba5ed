"""The commands of the connection itself (segment-store-wire-protocol 1.3 and 1.4). They have no request id."""

from sluice.pravega.wire.command import Command, code
from sluice.pravega.wire.fields import I32

WIRE_VERSION = 17
OLDEST_COMPATIBLE_VERSION = 5


@code(-127)
class Hello(Command, frozen=True, gc=False):
    """The versions a side can speak; each side sends one first."""

    high_version: I32
    low_version: I32


@code(100)
class KeepAlive(Command, frozen=True, gc=False):
    """Echoed by the store, which proves that it still reads."""
