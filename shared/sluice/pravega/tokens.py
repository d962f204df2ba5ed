"""The delegation tokens that go with commands to segment stores which verify them (security 4.4 and 4.7).

Each command is given its token when it is made; "" is none.
"""

import base64
import json
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from sluice.security.tokens import NO_SIGNER, TokenSigner

RENEWED_S = 5.0
"""So long before it expires a token is replaced, as Pravega's clients do."""

_MAX_KEPT = 10_000


class Tokens(Protocol):
    """What has the right token for a command on a segment."""

    async def for_request(self, segment: str) -> str:
        """The token of a command that a reply ends."""

    async def for_append(self, segment: str) -> str:
        """The token of a writer's set-up.

        If it expires, the store closes the connection at that moment, with all that is under way on it.
        """


class OwnTokens:
    """Those of a service or tool that has the signing key: a new one each second (`sluice.security.tokens`)."""

    def __init__(self, signer: TokenSigner) -> None:
        self._signer = signer

    async def for_request(self, _segment: str) -> str:
        return self._signer.master()

    async def for_append(self, segment: str) -> str:
        return self._signer.appending_to(segment)


FetchToken = Callable[[str, bool], Awaitable[str]]
"""The token for a segment, to append to it or not; what it raises comes out of the call that needs the token."""


class FetchedTokens:
    """Those of a client, one of each kind for each stream: kept until shortly before they expire, or are forgotten."""

    def __init__(self, fetch: FetchToken) -> None:
        self._fetch = fetch
        self._kept: dict[tuple[str, bool], tuple[str, float]] = {}

    async def for_request(self, segment: str) -> str:
        return await self._token(segment, False)

    async def for_append(self, segment: str) -> str:
        return await self._token(segment, True)

    def forget(self, segment: str) -> None:
        """A store did not take what came with the token."""
        for is_append in (False, True):
            self._kept.pop((_stream_of(segment), is_append), None)

    async def _token(self, segment: str, is_append: bool) -> str:
        kind = (_stream_of(segment), is_append)
        token, expires_at = self._kept.get(kind, ("", -math.inf))
        if expires_at <= time.time() + RENEWED_S:
            token = await self._fetch(segment, is_append)
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[kind] = (token, expiry_of(token))
        return token


def expiry_of(token: str) -> float:
    """When a token expires, in seconds of the epoch; infinity if it says nothing of that."""
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return math.inf


def _stream_of(segment: str) -> str:
    return segment.rpartition("/")[0]


NO_TOKENS: Tokens = OwnTokens(NO_SIGNER)
"""For segment stores that do not verify."""
