"""Who calls: the handlers that the settings name, found by the method in the header `authorization`.

Made by `authentication_of`, closed by the gateway. Belongs to the event loop.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from api_gateway.security.basic import BasicHandler
from api_gateway.security.bearer import BearerHandler
from api_gateway.security.keys import FetchedKeys, FileKeys, Keys, fetcher, key_set
from api_gateway.security.plugins import site_handlers
from api_gateway.settings import GatewaySettings
from sluice.security.accounts import Account, read_accounts
from sluice.security.caller import Caller
from sluice.security.lint import lint_accounts
from sluice.security.watched import SecurityConfigError, Watched

log = logging.getLogger(__name__)

_BLANKS = re.compile(r"\s+", re.ASCII)


class Handler(Protocol):
    """Proves callers of one method; `name` is the method, in the case in which it is sent."""

    name: str

    async def caller(self, token: str) -> Caller:
        """Who a token proves to call. Raises UnauthenticatedError; OverloadedError if that cannot be found out now."""


class Handlers:
    """The Authenticator of these handlers; of two for a method the first one counts."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._by_method: dict[str, Handler] = {}
        for handler in handlers:
            if self._by_method.setdefault(handler.name, handler) is not handler:
                log.warning("a handler is not used: there is another one of its name", extra={"handler": handler.name})

    @property
    def methods(self) -> list[str]:
        return list(self._by_method)

    async def caller(self, authorization: str | None) -> Caller | None:
        """See Authenticator."""
        if authorization is None:
            return None
        method, *token = _BLANKS.split(authorization, maxsplit=1)
        handler = self._by_method.get(method)
        return await handler.caller(token[0]) if handler is not None and token else None


class Authentication:
    """What the gateway needs to know who calls. `watched` are the files to look at again and again."""

    def __init__(
        self,
        authenticator: Handlers,
        watched: list[Watched[Any]],
        problems: Iterable[Callable[[], str | None]],
        close: Iterable[Callable[[], None]],
    ) -> None:
        self.authenticator = authenticator
        self.watched = watched
        self._problems = [*problems, *(one.problem for one in watched)]
        self._close = list(close)

    def problem(self) -> str | None:
        """What is not as its newest version says, for readiness; None if nothing is."""
        return "; ".join(found for found in (problem() for problem in self._problems) if found) or None

    def close(self) -> None:
        """End what runs beside the event loop."""
        for close in self._close:
            close()


def authentication_of(settings: GatewaySettings) -> Authentication | None:
    """None where authentication is off. Raises SecurityConfigError for settings and files that cannot be used."""
    if not settings.auth_enabled:
        _refuse_forgotten(settings)
        return None
    watched: list[Watched[Any]] = []
    handlers: list[Handler] = []
    problems: list[Callable[[], str | None]] = []
    close: list[Callable[[], None]] = []
    accounts = None
    if settings.auth_accounts:
        accounts = Watched("password file", [Path(settings.auth_accounts)], _accounts)
        watched.append(accounts)
        basic = BasicHandler(accounts)
        handlers.append(basic)
        close.append(basic.close)
    if settings.auth_oidc_issuer:
        keys = _keys(settings, watched)
        problems.append(keys.problem)
        mapped = _mapped(settings, accounts)
        handlers.append(BearerHandler(settings.auth_oidc_issuer, settings.auth_oidc_audience, keys, mapped))
    elif settings.auth_oidc_jwks or settings.auth_oidc_accounts or settings.auth_oidc_ca:
        raise SecurityConfigError("settings SLUICE_AUTH_OIDC_… are given, and SLUICE_AUTH_OIDC_ISSUER is not")
    handlers += site_handlers(settings.model_dump())
    if not handlers:
        raise SecurityConfigError(
            "SLUICE_AUTH_ENABLED is set and nobody could call: give SLUICE_AUTH_ACCOUNTS or SLUICE_AUTH_OIDC_ISSUER"
        )
    authenticator = Handlers(handlers)
    return Authentication(authenticator, watched, problems, close)


def _refuse_forgotten(settings: GatewaySettings) -> None:
    given = [name for name in ("auth_accounts", "auth_oidc_issuer") if getattr(settings, name)]
    if given and "auth_enabled" not in settings.model_fields_set:
        raise SecurityConfigError(
            f"SLUICE_{given[0].upper()} is given, and SLUICE_AUTH_ENABLED is not: set it to true, or to false"
        )


def _accounts(content: bytes) -> Mapping[str, Account]:
    found = read_accounts(content)
    for finding in lint_accounts(content):
        log.warning("in the password file: %s", finding)
    return found


def _keys(settings: GatewaySettings, watched: list[Watched[Any]]) -> Keys:
    source = settings.auth_oidc_jwks
    if not settings.auth_oidc_audience:
        raise SecurityConfigError("SLUICE_AUTH_OIDC_AUDIENCE is empty: tokens for anybody would do")
    if not source or "://" in source:
        return FetchedKeys(fetcher(settings.auth_oidc_issuer, source, settings.auth_oidc_ca))
    file = Watched("keys of the OIDC issuer", [Path(source)], key_set)
    watched.append(file)
    return FileKeys(file)


def _mapped(
    settings: GatewaySettings, accounts: Watched[Mapping[str, Account]] | None
) -> Watched[Mapping[str, Account]] | None:
    if settings.auth_oidc_accounts and accounts is None:
        raise SecurityConfigError("SLUICE_AUTH_OIDC_ACCOUNTS is set, and SLUICE_AUTH_ACCOUNTS is not given")
    return accounts if settings.auth_oidc_accounts else None
