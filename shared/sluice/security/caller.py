"""Who makes the call that is being answered: known to everything that the call leads to, without being passed on."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

import msgspec

from sluice.security.resources import Permission


class Caller(msgspec.Struct, frozen=True):
    """A caller who proved to be `principal`; `permission_on` gives the highest permission on a resource."""

    principal: str
    permission_on: Callable[[str], Permission]


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""None: nobody proved to be anybody, or nobody is asked to. Set at the boundary of gRPC and of HTTP."""


def calling_principal() -> str:
    """Who proved to make the call that is being answered; empty for nobody."""
    caller = CALLER.get()
    return caller.principal if caller is not None else ""


class UnauthenticatedError(Exception):
    """Nobody proved to be anybody, or a proof is wrong."""


class ForbiddenError(Exception):
    """The caller is known and may not do this."""


class Authenticator(Protocol):
    """Finds out who makes a call, with the handlers that the settings name."""

    async def caller(self, authorization: str | None) -> Caller | None:
        """Who the value of the header `authorization` proves to be.

        None without a header, with one word only, or with a method that no handler has: the call goes on, and fails
        where it needs a permission. Raises UnauthenticatedError where a handler refuses what it was given.
        """
