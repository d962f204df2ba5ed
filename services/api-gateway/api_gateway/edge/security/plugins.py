"""Handlers of a site's own: entry points of the group `sluice.auth_handlers`.

An entry point names a class. It is made once, with the settings of the gateway by name, and has what `SiteHandler`
says. A handler that cannot be loaded or made refuses the start of the gateway: a site that needs it would be closed
to all who use it, without a word.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Protocol

from sluice.exceptions import in_words
from sluice.security.caller import Caller, UnauthenticatedError
from sluice.security.resources import Permission
from sluice.security.watched import SecurityConfigError

log = logging.getLogger(__name__)

GROUP = "sluice.auth_handlers"
ANSWER_S = 10.0
"""A handler that takes longer has refused."""


class SiteHandler(Protocol):
    """A handler of credentials, as a site writes it."""

    name: str
    """The word before the token in the header: a handler of `Basic` gets what follows it."""

    async def authenticate(self, token: str) -> str | None:
        """The principal whom a token proves, None if it proves nobody. May raise UnauthenticatedError."""

    def authorize(self, resource: str, principal: str) -> Permission:
        """The highest permission of a principal on a resource. Called on the event loop: it must not wait."""


class PluginHandler:
    """A site's handler behind the interface of all handlers."""

    def __init__(self, handler: SiteHandler) -> None:
        self.name = handler.name
        self._handler = handler

    async def caller(self, token: str) -> Caller:
        """See Handler."""
        try:
            async with asyncio.timeout(ANSWER_S):
                principal = await self._handler.authenticate(token)
        except UnauthenticatedError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a site's handler raises is a refusal
            # Its text may have the token in it.
            log.warning("a handler failed", extra={"handler": self.name, "error": type(error).__name__})
            raise UnauthenticatedError from None
        if not principal:
            raise UnauthenticatedError
        return Caller(principal, partial(self._authorize, principal))

    def _authorize(self, principal: str, resource: str) -> Permission:
        return Permission(self._handler.authorize(resource, principal))


def site_handlers(settings: Mapping[str, Any]) -> Iterator[PluginHandler]:
    """The handlers that are installed, in the order of their entry points. Raises SecurityConfigError."""
    for entry in entry_points(group=GROUP):
        try:
            handler = entry.load()(settings)
            if not isinstance(handler.name, str) or not handler.name:
                raise TypeError("it has no name")
            if not callable(handler.authenticate) or not callable(handler.authorize):
                raise TypeError("it lacks authenticate or authorize")
        except Exception as error:
            reason = in_words(error)
            raise SecurityConfigError(f"the handler {entry.name} ({entry.value}) does not start: {reason}") from error
        yield PluginHandler(handler)
