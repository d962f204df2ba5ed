"""Credentials of the method Bearer: an OpenID Connect token, as Pravega's clients get it from Keycloak.

The clients exchange theirs for a ticket of the audience `pravega-controller`, a signed token that says in
`authorization.permissions` what its holder may do: each has the name of a resource, read as a pattern of an ACL, and
scopes, of which READ and READ_UPDATE count. Of all that match a resource the highest permission counts, for they come
in no order. With `accounts` the ACL of the account with the principal's name counts instead.

The principal is `preferred_username`, else `client_id`, else `sub`. Belongs to the event loop; no token is logged.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from api_gateway.edge.security.keys import Keys
from api_gateway.edge.security.remembered import Remembered
from sluice.security.accounts import Account
from sluice.security.acl import Acl, BadPatternError, Entry, compile_pattern
from sluice.security.caller import Caller, UnauthenticatedError
from sluice.security.resources import Permission
from sluice.security.watched import Watched

log = logging.getLogger(__name__)

LEEWAY_S = 10
MAX_REMEMBERED = 10_000
REMEMBERED_S = 60.0
MAX_TOKEN_CHARS = 64 * 1024

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_PRINCIPALS = ("preferred_username", "client_id", "sub")
_PERMISSIONS = {one.name: one for one in (Permission.READ, Permission.READ_UPDATE)}


class BearerHandler:
    """Proves callers by the tokens of one issuer."""

    name = "Bearer"

    def __init__(
        self,
        issuer: str,
        audience: str,
        keys: Keys,
        accounts: Watched[Mapping[str, Account]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._accounts = accounts
        self._remembered = Remembered[tuple[str, Acl]](MAX_REMEMBERED, REMEMBERED_S, clock)

    async def caller(self, token: str) -> Caller:
        """See Handler."""
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise UnauthenticatedError
        digest = self._remembered.digest(token)
        known = self._remembered.get(digest)
        if known is None:
            claims = await self._claims(token)
            known = principal_of(claims), Acl(entries_of(claims))
            # An expired token is refused although it was right a moment ago.
            self._remembered.put(digest, known, seconds=max(1.0, claims["exp"] + LEEWAY_S - time.time()))
        principal, acl = known
        if self._accounts is not None:
            account = self._accounts.current.get(principal)
            return Caller(principal, _nothing if account is None else account.acl.permission_on)
        return Caller(principal, acl.permission_on)

    async def _claims(self, token: str) -> Mapping[str, Any]:
        """What a token claims, if all of it is right. Raises UnauthenticatedError."""
        try:
            id = jwt.get_unverified_header(token).get("kid")
            key = await self._keys.find(id if isinstance(id, str) else None)
            if key is None or key.algorithm_name not in _ALGORITHMS:
                raise jwt.InvalidKeyError("its key is not known")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
            # Keycloak's tokens say what they are for; one that proves a login to a client is no permit.
            if claims.get("typ", "Bearer") != "Bearer":
                raise jwt.InvalidTokenError("it is not for calls")
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            log.debug("a token is refused", extra={"reason": type(error).__name__})
            raise UnauthenticatedError from None
        return claims


def principal_of(claims: Mapping[str, Any]) -> str:
    """Who a token is about. Raises UnauthenticatedError if it does not say."""
    for name in _PRINCIPALS:
        found = claims.get(name)
        if isinstance(found, str) and found:
            return found
    raise UnauthenticatedError


def entries_of(claims: Mapping[str, Any]) -> list[Entry]:
    """What a token permits, the higher permissions first; what cannot be understood permits nothing."""
    authorization = claims.get("authorization")
    permissions = authorization.get("permissions") if isinstance(authorization, dict) else None
    found = []
    for one in permissions if isinstance(permissions, list) else ():
        name, scopes = (one.get("rsname"), one.get("scopes")) if isinstance(one, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(scopes, list):
            continue
        permission = max((_PERMISSIONS.get(str(scope), Permission.NONE) for scope in scopes), default=Permission.NONE)
        try:
            compile_pattern(name)
        except BadPatternError:
            continue
        if permission > Permission.NONE:
            found.append((permission, name))
    found.sort(reverse=True)
    return [Entry(number, name, name, permission) for number, (permission, name) in enumerate(found, 1)]


def _nothing(_resource: str) -> Permission:
    return Permission.NONE
