"""Delegation tokens as a segment store verifies them (security 4.3)."""

import base64
import hashlib
import hmac
import json
from typing import Any

from sluice.security.resources import Permission

_NO_RESOURCES = {"sub", "aud", "iat", "exp"}


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def claims_in(token: str, key: str) -> dict[str, Any]:
    """The claims of a token that is signed with the key."""
    header, body, signature = token.split(".")
    assert json.loads(_decoded(header))["alg"] == "HS512"
    signed = hmac.new(key.encode(), f"{header}.{body}".encode(), hashlib.sha512).digest()
    assert hmac.compare_digest(signed, _decoded(signature)), "the token is signed with another key"
    return dict(json.loads(_decoded(body)))


def resources_in(token: str, key: str) -> dict[str, str]:
    """What a token permits on what."""
    return {name: value for name, value in claims_in(token, key).items() if name not in _NO_RESOURCES}


def is_permitted(token: str, key: str, segment: str, needed: Permission) -> bool:
    """Whether a store would carry out a command on a segment, at a time at which the token counts."""
    for name, value in resources_in(token, key).items():
        reduced = name.replace("prn::", "").replace("/scope:", "").replace("stream:", "")
        opens = (
            reduced in ("*", segment)
            or segment.startswith(f"{reduced}/")
            or (reduced.endswith("/") and segment.startswith(reduced))
        )
        if opens and Permission[value] >= needed:
            return True
    return False
