"""The guard at the boundary of gRPC and HTTP: finds out who calls, and lets pass who may.

There is none where authentication is off. Belongs to the event loop.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api_gateway.security.rules import Rule
from sluice.security.caller import CALLER, Authenticator, Caller


class Guard:
    """`readers_write`: who may READ may also write the streams of its own reader groups."""

    def __init__(self, authenticator: Authenticator, readers_write: bool) -> None:
        self._authenticator = authenticator
        self._readers_write = readers_write

    async def admit(self, rule: Rule, request: Any, authorization: str | None) -> Caller | None:
        """Who calls, or None where the rule needs nobody. Raises UnauthenticatedError, and as `Rule.check` does."""
        caller = await self._authenticator.caller(authorization)
        rule.check(caller, request, self._readers_write)
        return caller


@contextmanager
def calling(caller: Caller | None) -> Iterator[None]:
    """Whatever runs inside runs on behalf of this caller."""
    before = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(before)
