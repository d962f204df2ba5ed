"""The guard at the boundary of gRPC and HTTP: finds out who calls, and lets pass who may.

There is none where authentication is off and no quota is set. Belongs to the event loop.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api_gateway.edge.security.quotas import Quotas
from api_gateway.edge.security.rules import Rule
from sluice.security.caller import CALLER, Authenticator, Caller


class Guard:
    """`readers_write`: who may READ may also write the streams of its own reader groups.

    Without an authenticator nobody is asked for credentials, and the quotas of scopes are all that counts.
    """

    def __init__(self, authenticator: Authenticator | None, readers_write: bool, quotas: Quotas | None = None) -> None:
        self._authenticator = authenticator
        self._readers_write = readers_write
        self._quotas = quotas

    @property
    def wants_credentials(self) -> bool:
        """Whether callers must say who they are."""
        return self._authenticator is not None

    async def admit(self, rule: Rule, request: Any, authorization: str | None) -> Caller | None:
        """Who calls, or None where the rule needs nobody.

        Raises UnauthenticatedError, QuotaExceededError, and as `Rule.check` does.
        """
        caller = None
        if self._authenticator is not None:
            caller = await self._authenticator.caller(authorization)
            if self._quotas is not None:
                self._quotas.take_of_user(_principal(caller))
            rule.check(caller, request, self._readers_write)
        if self._quotas is not None and self._quotas.of_scopes:
            self._quotas.take_on_scope(rule.scope(request))
        return caller

    @contextmanager
    def serving(self, caller: Caller | None) -> Iterator[None]:
        """A call of the caller is in progress inside. Raises QuotaExceededError."""
        if self._quotas is None:
            with calling(caller):
                yield
            return
        with self._quotas.calling(_principal(caller)), calling(caller):
            yield


def _principal(caller: Caller | None) -> str:
    return caller.principal if caller is not None else ""


@contextmanager
def calling(caller: Caller | None) -> Iterator[None]:
    """Whatever runs inside runs on behalf of this caller."""
    before = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(before)
