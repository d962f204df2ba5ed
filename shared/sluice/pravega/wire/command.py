"""What a command is: a value whose declaration is also its layout.

The annotations of a command give the wire types, in wire order. A field with a default may be absent at the end of a
frame from an older peer and then has that value (segment-store-wire-protocol, Appendix B). Where the request id stands
differs from command to command; the connection reads it from the decoded command. Commands are immutable;
the registry is filled while the modules load and only read afterwards.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, get_type_hints

import msgspec

from sluice.pravega.wire.fields import WireType

NO_REQUEST_ID = -1
"""The request id of a reply from a store too old to send it."""


class Command(msgspec.Struct, frozen=True, gc=False):
    """Anything that travels in a frame."""


class Numbered(Protocol):
    """A command with a request id: every request and its reply."""

    @property
    def request_id(self) -> int:
        """What a reply has in common with its request."""


class Layout(msgspec.Struct, frozen=True):
    """How a command is laid out: type code, class, fields in wire order, and how many of them must be there."""

    code: int
    command: type[Command]
    fields: tuple[tuple[str, WireType], ...]
    required: int


LAYOUTS: dict[type[Command], Layout] = {}
BY_CODE: dict[int, Layout] = {}

_C = TypeVar("_C", bound=Command)


def code(number: int) -> Callable[[type[_C]], type[_C]]:
    """Declares the type code of a command (segment-store-wire-protocol, Appendix A) and registers its layout."""

    def register(command: type[_C]) -> type[_C]:
        hints: dict[str, Any] = get_type_hints(command, include_extras=True)
        names = command.__struct_fields__
        fields = tuple((name, hints[name].__metadata__[0]) for name in names)
        layout = Layout(number, command, fields, len(names) - len(command.__struct_defaults__))
        LAYOUTS[command] = BY_CODE[number] = layout
        return command

    return register
