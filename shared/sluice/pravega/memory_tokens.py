"""Which delegation tokens a segment store in memory takes: as a real one verifies them (security 4.3 and 4.4)."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluice.pravega.memory import Append
from sluice.pravega.wire import appends, segments
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.refusals import TOKEN_EXPIRED
from sluice.security.resources import Permission

TOKEN_CHECK_FAILED = 0
"""`AuthTokenCheckFailed.error_code` of a token that does not permit the command, whenever it comes."""

_DIGESTS = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_REMOVED = ("prn::", "/scope:", "stream:")
"""What stands in the name of a resource, and not in that of its segments."""


class TokenVerifier:
    """Has the key that the tokens are signed with."""

    def __init__(self, key: bytes, now_s: Callable[[], float] = time.time) -> None:
        self._key = key
        self._now_s = now_s

    def refusal(self, request: Command) -> int | None:
        """The `error_code` with which a store refuses the token of a request; None if it carries it out."""
        needed = list(_needed(request))
        if not needed:
            return None
        claims = self._claims(getattr(request, "token", ""))
        if claims is None:
            return TOKEN_CHECK_FAILED
        if "exp" in claims and self._now_s() > claims["exp"]:
            return TOKEN_EXPIRED
        permitted = all(_is_permitted(claims, segment, permission) for segment, permission in needed)
        return None if permitted else TOKEN_CHECK_FAILED

    def _claims(self, token: str) -> Mapping[str, Any] | None:
        """Those of a token that is signed with the key."""
        signed, _, signature = token.rpartition(".")
        try:
            header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
            digest = hmac.digest(self._key, signed.encode(), _DIGESTS[header["alg"]])
            return dict(claims) if hmac.compare_digest(digest, _decoded(signature)) else None
        except (ValueError, KeyError, TypeError):
            return None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _needed(request: Command) -> Iterator[tuple[str, Permission]]:
    """The segments on which a request needs a permission; appends are covered by their writer's set-up."""
    if isinstance(request, appends.SetupAppend):
        yield request.segment, Permission.READ_UPDATE
    elif isinstance(request, segments.MergeSegments):
        yield request.source, Permission.READ
    elif isinstance(request, segments.MergeSegmentsBatch):
        yield request.segment, Permission.READ_UPDATE
        yield from ((source, Permission.READ) for source in request.sources)
    elif not isinstance(request, Append | segments.CreateTransientSegment):
        yield getattr(request, "segment", ""), Permission.READ


def _is_permitted(claims: Mapping[str, Any], segment: str, needed: Permission) -> bool:
    """What says nothing of a resource names no permission either."""
    return any(
        Permission.__members__.get(str(granted), Permission.NONE) >= needed and _opens(resource, segment)
        for resource, granted in claims.items()
    )


def _opens(resource: str, segment: str) -> bool:
    for removed in _REMOVED:
        resource = resource.replace(removed, "")
    begin = resource if resource.endswith("/") else f"{resource}/"
    return resource in ("*", segment) or segment.startswith(begin)
