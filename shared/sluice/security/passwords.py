"""Passwords as Pravega stores them: PBKDF2-HMAC-SHA256, salted and written as hex (security 2.3).

Pure but for the random salt. A derivation takes about 20 ms of one core and lets other threads run meanwhile.
"""

import hashlib
import hmac
import re
import secrets
from binascii import unhexlify

import msgspec

ITERATIONS = 5_000
SALT_BYTES = 32
KEY_BYTES = 64
MAX_ITERATIONS = 1_000_000
"""A stored hash with more is refused: each check would keep a thread for seconds."""

_INNER = re.compile(r"([0-9]{1,9}):((?:[0-9a-fA-F]{2})+):((?:[0-9a-fA-F]{2})+)")


class MalformedHashError(Exception):
    """The stored hash of the password is none that Pravega writes."""


class PasswordHash(msgspec.Struct, frozen=True):
    """What is kept of a password."""

    iterations: int
    salt: bytes
    key: bytes

    def encoded(self) -> str:
        """As it stands in a password file."""
        return f"{self.iterations}:{self.salt.hex()}:{self.key.hex()}".encode().hex()


def parse_hash(stored: str) -> PasswordHash:
    """The parts of a stored hash, in either case of hex. Raises MalformedHashError."""
    try:
        # Pravega takes pairs of digits, and leaves a single character at the end out.
        found = _INNER.fullmatch(unhexlify(stored[: len(stored) // 2 * 2]).decode("ascii"))
    except ValueError:
        found = None
    if found is None or not 1 <= int(found[1]) <= MAX_ITERATIONS:
        raise MalformedHashError
    parsed = PasswordHash(int(found[1]), bytes.fromhex(found[2]), bytes.fromhex(found[3]))
    if len(parsed.key) != KEY_BYTES:
        raise MalformedHashError
    return parsed


def derive(password: str, iterations: int, salt: bytes) -> bytes:
    """The key that a password leads to. Takes 20 ms and more: nothing for an event loop."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations, KEY_BYTES)


def hash_password(password: str, salt: bytes | None = None) -> str:
    """A new stored hash, which Pravega's controller reads, too."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    return PasswordHash(ITERATIONS, salt, derive(password, ITERATIONS, salt)).encoded()


def verify(password: str, stored: str) -> bool:
    """Whether it is the password, compared in constant time. Raises MalformedHashError."""
    found = parse_hash(stored)
    return hmac.compare_digest(derive(password, found.iterations, found.salt), found.key)
