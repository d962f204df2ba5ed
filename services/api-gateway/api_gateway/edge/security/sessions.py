"""Sessions of browsers: the credentials of a login, sealed into a cookie that only a gateway can open.

A gateway keeps nothing of a session. With each call it takes the credentials out of the cookie and verifies them as if
they had been sent: a changed password, a removed user or an expired token ends the session with the next call. Gateways
with the same key for tokens open each other's cookies, until they get another key; without one a session ends with the
process of its gateway.
"""

import base64
import secrets
from collections.abc import Callable
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

COOKIE = "sluice-session"
LIFE_S = 12 * 3600
MAX_CREDENTIALS = 2_800
"""Characters of the header; browsers take 4 KB of a cookie."""

_PURPOSE = b"sluice page session 1"
_NONCE = 12
_TIME = 8


class TooLargeError(Exception):
    """The credentials do not fit into a cookie."""


@lru_cache(maxsize=2)
def _cipher_of(material: bytes) -> AESGCM:
    return AESGCM(HKDF(hashes.SHA256(), 32, None, _PURPOSE).derive(material))


class Sessions:
    """Seals and opens cookies with a key that follows from `secret()` of that moment; b"" is this process's own."""

    def __init__(self, secret: Callable[[], bytes], now_s: Callable[[], float]) -> None:
        self._secret = secret
        self._own = secrets.token_bytes(32)
        self._now_s = now_s

    def seal(self, authorization: str) -> str:
        """A cookie's value for a header `authorization`. Raises TooLargeError."""
        if len(authorization) > MAX_CREDENTIALS:
            raise TooLargeError(f"the credentials have more than {MAX_CREDENTIALS} characters")
        nonce = secrets.token_bytes(_NONCE)
        content = int(self._now_s() + LIFE_S).to_bytes(_TIME) + authorization.encode()
        return base64.urlsafe_b64encode(nonce + self._cipher().encrypt(nonce, content, _PURPOSE)).decode()

    def open(self, value: str) -> str | None:
        """The header in a cookie's value; None if it is none of ours, or too old."""
        try:
            sealed = base64.urlsafe_b64decode(value.encode("ascii"))
            content = self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], _PURPOSE)
        except (ValueError, InvalidTag):
            return None
        if int.from_bytes(content[:_TIME]) < self._now_s():
            return None
        return content[_TIME:].decode()

    def _cipher(self) -> AESGCM:
        return _cipher_of(self._secret() or self._own)


def cookie_header(value: str, *, secure: bool) -> str:
    """The header that sets the cookie; an empty value ends the session."""
    life = LIFE_S if value else 0
    return f"{COOKIE}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
