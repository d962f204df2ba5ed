"""What a rule about one operation is made of: on which resource, named by the request, the caller needs what.

Pure functions. A request is a message of gRPC, or the names in the path of an HTTP call.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from sluice.security.caller import Caller, ForbiddenError, UnauthenticatedError
from sluice.security.resources import Permission, scope_in


class Resource(msgspec.Struct, frozen=True):
    """A kind of resource, in words, and how a request names one. `of` raises BadRequestError."""

    text: str
    of: Callable[[Any], str]


class Level(msgspec.Struct, frozen=True):
    """A permission, in words, and how it follows from a request.

    `of` is also given whether readers may write the streams of their groups. Raises BadRequestError.
    """

    text: str
    of: Callable[[Any, bool], Permission]


READ = Level("READ", lambda _request, _readers_write: Permission.READ)
READ_UPDATE = Level("READ_UPDATE", lambda _request, _readers_write: Permission.READ_UPDATE)


class Rule(msgspec.Struct, frozen=True):
    """What an operation needs: `level` on each resource, or on one of them if `any_will_do`.

    Without resources it needs no permission, but credentials that are sent must be right. `entries` says what a
    listing is of: the caller, who must be known, sees only those that it may READ.
    """

    level: Level = READ
    on: tuple[Resource, ...] = ()
    any_will_do: bool = False
    entries: str = ""

    @property
    def is_for_everyone(self) -> bool:
        """Whether the guard lets a caller without credentials pass."""
        return not self.on and not self.entries

    def scope(self, request: Any) -> str:
        """The scope of what the request names first; empty for none. Raises BadRequestError."""
        return scope_in(self.on[0].of(request)) if self.on else ""

    def check(self, caller: Caller | None, request: Any, readers_write: bool) -> None:
        """Raises BadRequestError, UnauthenticatedError, ForbiddenError, in this order."""
        if self.is_for_everyone:
            return
        names = [resource.of(request) for resource in self.on]
        needed = self.level.of(request, readers_write)
        if caller is None:
            raise UnauthenticatedError
        enough = any if self.any_will_do else all
        if not enough(caller.permission_on(name) >= needed for name in names):
            raise ForbiddenError
