"""Who calls: the handlers that the settings name, found by the method in the header `authorization`.

Made by `authentication_of`, closed by the gateway. Belongs to the event loop.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from api_gateway.edge.security.basic import BasicHandler
from api_gateway.edge.security.bearer import BearerHandler
from api_gateway.edge.security.keys import FetchedKeys, FileKeys, Keys, fetcher, key_set
from api_gateway.edge.security.plugins import site_handlers
from api_gateway.settings import GatewaySettings
from sluice.security.accounts import Account, read_accounts
from sluice.security.caller import Caller
from sluice.security.contexts import ClientTls
from sluice.security.lint import lint_accounts
from sluice.security.tls import following_client
from sluice.security.watched import SecurityConfigError, Watched

log = logging.getLogger(__name__)

OIDC_KEYS = "keys of the OIDC issuer"
"""What readiness calls them."""

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
    """What the gateway needs to know who calls, as its settings say. Raises SecurityConfigError.

    `watched` are the files to be followed, `fetched` the keys that come from the issuer of tokens.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self.watched: list[Watched[Any]] = []
        self.fetched: FetchedKeys | None = None
        self._basic: BasicHandler | None = None
        handlers = [*self._handlers(), *site_handlers(settings.model_dump())]
        if not handlers:
            raise SecurityConfigError(
                "SLUICE_AUTH_ENABLED is set and nobody could call: give SLUICE_AUTH_ACCOUNTS or SLUICE_AUTH_OIDC_ISSUER"
            )
        self.authenticator = Handlers(handlers)

    def close(self) -> None:
        """End what runs beside the event loop."""
        if self._basic is not None:
            self._basic.close()

    def _handlers(self) -> Iterator[Handler]:
        settings, accounts = self._settings, None
        if settings.auth_accounts:
            accounts = Watched("password file", [Path(settings.auth_accounts)], _accounts)
            self.watched.append(accounts)
            self._basic = BasicHandler(accounts)
            yield self._basic
        if settings.auth_oidc_issuer:
            if not settings.auth_oidc_audience:
                raise SecurityConfigError("SLUICE_AUTH_OIDC_AUDIENCE is empty: tokens for anybody would do")
            if settings.auth_oidc_accounts and accounts is None:
                raise SecurityConfigError("SLUICE_AUTH_OIDC_ACCOUNTS is set, and SLUICE_AUTH_ACCOUNTS is not given")
            mapped = accounts if settings.auth_oidc_accounts else None
            yield BearerHandler(settings.auth_oidc_issuer, settings.auth_oidc_audience, self._keys(), mapped)
        elif settings.auth_oidc_jwks or settings.auth_oidc_accounts or settings.auth_oidc_ca:
            raise SecurityConfigError("settings SLUICE_AUTH_OIDC_… are given, and SLUICE_AUTH_OIDC_ISSUER is not")

    def _keys(self) -> Keys:
        source = self._settings.auth_oidc_jwks
        if source and "://" not in source:
            file = Watched(OIDC_KEYS, [Path(source)], key_set)
            self.watched.append(file)
            return FileKeys(file)
        tls = following_client("the OIDC issuer", ClientTls("SLUICE_AUTH_OIDC_CA", self._settings.auth_oidc_ca))
        self.watched.append(tls)
        self.fetched = FetchedKeys(fetcher(self._settings.auth_oidc_issuer, source, tls))
        return self.fetched


def authentication_of(settings: GatewaySettings) -> Authentication | None:
    """None where authentication is off. Raises SecurityConfigError for settings and files that cannot be used."""
    if settings.auth_enabled:
        return Authentication(settings)
    given = [name for name in ("auth_accounts", "auth_oidc_issuer") if getattr(settings, name)]
    if given and "auth_enabled" not in settings.model_fields_set:
        raise SecurityConfigError(
            f"SLUICE_{given[0].upper()} is given, and SLUICE_AUTH_ENABLED is not: set it to true, or to false"
        )
    return None


def _accounts(content: bytes) -> Mapping[str, Account]:
    found = read_accounts(content)
    for finding in lint_accounts(content):
        log.warning("in the password file: %s", finding)
    return found
