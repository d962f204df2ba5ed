"""Delegation tokens: what segment stores ask for once they verify, signed with the key that they have as well.

Compact JWS, HS512 (security 4.1). Each claim names a resource and what its holder may do there. No message makes a
token void for segment stores: it ends by its `exp`, or when all stores and services get another key.

The services' own tokens open everything, so each lives for minutes, and each command has that of its second: a new key
counts at once. What opens a segment for appends has no `exp`, because a store closes the connection, with all that is
under way on it, when that has come (security 4.7). It opens that one segment instead.
"""

import base64
import binascii
import hmac
import json
import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from sluice.security.resources import Permission, stream_resource
from sluice.security.watched import SecurityConfigError, Watched

log = logging.getLogger(__name__)

NO_EXPIRY = -1
"""The time to live of a token without `exp`. Clients in Rust and Python cannot use those."""

OWN_TTL_S = 600
"""How long a token of a service's own counts: far more than a command is under way, or clocks differ."""

_WELL_KNOWN = b"secret"
_HEADER = b"eyJhbGciOiJIUzUxMiJ9."
_encode = json.JSONEncoder(separators=(",", ":")).encode
_SYSTEM = stream_resource("_system", "")
_OPEN_IN_SYSTEM = {stream_resource("_system", name) for name in ("_requeststream", "_MARK_requeststream")}
_NOT_IN_BODY = re.compile("[>?~\x7f]")


def signed(key: bytes, claims: Mapping[str, str | int]) -> str:
    """The token with these claims, in their order.

    Clients decode its body with the alphabet of plain Base64, which differs for the values 62 and 63. In ASCII only the
    low six bits of a character come to those, and of four characters: these are escaped.
    """
    text = _NOT_IN_BODY.sub(lambda found: f"\\u{ord(found[0]):04x}", _encode(claims))
    body = _HEADER + binascii.b2a_base64(text.encode(), newline=False).rstrip(b"=")
    signature = base64.urlsafe_b64encode(hmac.digest(key, body, "sha512")).rstrip(b"=")
    return (body + b"." + signature).decode()


@lru_cache(maxsize=256)
def _token(key: bytes, permission: Permission, resources: tuple[str, ...], now_s: int, ttl_s: int) -> str:
    """Signed once in a second: a token names no time that is finer."""
    claims: dict[str, str | int] = {"sub": "segmentstoreresource", "aud": "segmentstore", "iat": now_s}
    claims |= dict.fromkeys(resources, permission.name)
    if ttl_s != NO_EXPIRY:
        claims["exp"] = now_s + ttl_s
    return signed(key, claims)


class TokenSigner:
    """Signs with the key as it is now. Without a key all tokens are "", which means that none are in use.

    Clients' tokens live for `ttl_s` seconds, for ever with NO_EXPIRY.
    """

    def __init__(self, key: bytes | Watched[bytes], ttl_s: int, now_ms: Callable[[], int]) -> None:
        self._key = key
        self._ttl_s = ttl_s
        self._now_ms = now_ms

    @property
    def key(self) -> bytes:
        """As it is now; empty if there is none."""
        return self._key if isinstance(self._key, bytes) else self._key.current

    @property
    def is_on(self) -> bool:
        """Whether there is a key."""
        return self._key != b""

    @property
    def watched(self) -> Watched[bytes] | None:
        """The key, if it is a file's."""
        return self._key if isinstance(self._key, Watched) else None

    def of(self, permission: Permission, *resources: str) -> str:
        """A client's token: one permission on some resources; "" if it may be had for none of them.

        In the scope `_system` segment stores keep tables of their own, under names that streams could have, too.
        """
        open_ones = tuple(r for r in resources if not r.startswith(_SYSTEM) or r in _OPEN_IN_SYSTEM)
        return self._sign(permission, open_ones, self._ttl_s) if open_ones else ""

    def master(self) -> str:
        """A service's own token, for what it sends now."""
        return self._sign(Permission.READ_UPDATE, ("*",), OWN_TTL_S)

    def appending_to(self, segment: str) -> str:
        """A service's own token to append to one segment."""
        return self._sign(Permission.READ_UPDATE, (segment,), NO_EXPIRY)

    def _sign(self, permission: Permission, resources: tuple[str, ...], ttl_s: int) -> str:
        key = self.key
        if not key:
            return ""
        return _token(key, permission, resources, self._now_ms() // 1000, ttl_s)


NO_SIGNER = TokenSigner(b"", NO_EXPIRY, lambda: 0)
"""Where there is no key."""


def signer_of(key: str, key_file: str, ttl_s: int, now_ms: Callable[[], int]) -> TokenSigner:
    """The signer with a key, or with that in a file. Raises SecurityConfigError."""
    if key and key_file:
        raise SecurityConfigError("SLUICE_TOKEN_KEY and SLUICE_TOKEN_KEY_FILE are both set: set one of them")
    if key_file:
        return TokenSigner(Watched("signing key of tokens", [Path(key_file)], _key_in), ttl_s, now_ms)
    return TokenSigner(_checked(key.encode()), ttl_s, now_ms)


def _key_in(content: bytes) -> bytes:
    """The key in a file: its one line. Segment stores have it as text."""
    key = content.removesuffix(b"\n").removesuffix(b"\r")
    if not key:
        raise SecurityConfigError("the file of the signing key of tokens is empty")
    try:
        key.decode()
    except UnicodeDecodeError:
        raise SecurityConfigError("the signing key of tokens is not UTF-8") from None
    return _checked(key)


def _checked(key: bytes) -> bytes:
    if key == _WELL_KNOWN:
        log.warning("the signing key of tokens is the one that every segment store has unless it is given another")
    return key
