"""The public keys that sign an issuer's tokens: of a file, or fetched from the issuer.

Fetched keys are fetched anew when a token names one that is not known, after a fetching that failed, and after half an
hour; at most every 10 s. Where no one called meanwhile and they are older than an hour, a call waits for new ones, so
that a key that was withdrawn goes. Keys that came once stay in use while their issuer cannot be reached. Only keys
whose fetching began after an id was first met say that it is none: older ones may lack a new key, and a refusal is
final. They are fetched without redirects and over TLS, unless they come from this machine: who could change them on
the way could sign any token.

Concurrency: belongs to the event loop; the fetching is done in a thread, once for all who wait for it.
"""

import asyncio
import json
import logging
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt

from api_gateway.edge.errors import OverloadedError
from sluice.exceptions import in_words
from sluice.security.hiding import shown
from sluice.security.watched import SecurityConfigError, Watched

log = logging.getLogger(__name__)

MAX_UNKNOWN = 1000
MAX_WAITING = 64
MAX_AGE_S = 3600.0
PAUSE_S = 10.0
WAIT_S = 10.0
"""How long a caller waits for a fetching: an issuer that sends byte by byte could go on for ever."""

_FETCH_S = 5.0
_MAX_BYTES = 1024 * 1024
_DISCOVERY = "/.well-known/openid-configuration"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PUBLIC = ("RSA", "EC", "OKP")

KeySet = Mapping[str, jwt.PyJWK]
"""Keys by their ids."""


class Keys(Protocol):
    """The public keys of an issuer."""

    async def find(self, id: str | None) -> jwt.PyJWK | None:
        """The key of an id, or the only one there is if a token names none; None for no key of the issuer.

        Raises OverloadedError if that cannot be said now.
        """


def key_set(content: bytes) -> KeySet:
    """The public keys of a JSON Web Key Set that sign. Raises SecurityConfigError."""
    try:
        found = jwt.PyJWKSet.from_dict(json.loads(content)).keys
    except Exception as error:  # noqa: BLE001 - the library raises whatever a strange key leads to
        raise SecurityConfigError(f"the JSON Web Key Set cannot be used: {in_words(error)}") from None
    usable = {key.key_id or "": key for key in found if key.key_type in _PUBLIC and key.public_key_use in (None, "sig")}
    if not usable:
        raise SecurityConfigError("the JSON Web Key Set has no public key that signs")
    return usable


def find_in(keys: KeySet, id: str | None) -> jwt.PyJWK | None:
    """See Keys."""
    if id is not None:
        return keys.get(id)
    return next(iter(keys.values())) if len(keys) == 1 else None


class FileKeys:
    """Keys of a file, which is read again when it changes."""

    def __init__(self, file: Watched[KeySet]) -> None:
        self._file = file

    async def find(self, id: str | None) -> jwt.PyJWK | None:
        """See Keys."""
        return find_in(self._file.current, id)


class FetchedKeys:
    """Keys that `fetch` gets; it blocks, and raises what urllib raises, or SecurityConfigError."""

    def __init__(self, fetch: Callable[[], KeySet], clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: KeySet = {}
        self._fetched_at = self._tried_at = -float("inf")
        self._begun = self._newest = 0
        """How many fetchings began, and which of them the keys are of."""
        self._unknown: dict[str | None, int] = {}
        """Ids that no key had, and how many fetchings had begun when each was first met."""
        self._fetching: asyncio.Task[None] | None = None
        self._wrong: str | None = None
        self._waiting = 0

    async def find(self, id: str | None) -> jwt.PyJWK | None:
        """See Keys."""
        found = find_in(self._keys, id)
        is_due = self._wrong is None and self._clock() - self._fetched_at > MAX_AGE_S
        if found is None or is_due:
            met = self._unknown.setdefault(id, self._begun)
            if len(self._unknown) > MAX_UNKNOWN:
                del self._unknown[next(iter(self._unknown))]
            fetching = self._refresh()
            if fetching is not None:
                await self._wait_for(fetching)
            found = find_in(self._keys, id)
            if found is None and self._newest <= met:
                raise OverloadedError("the newest keys of the issuer of tokens are not known at the moment")
        elif self._wrong is not None or self._clock() - self._fetched_at > MAX_AGE_S / 2:
            self._refresh()
        return found

    async def _wait_for(self, fetching: "asyncio.Task[None]") -> None:
        """Raises OverloadedError where too many wait already: they have proved nothing yet."""
        if self._waiting >= MAX_WAITING:
            raise OverloadedError("too many calls wait for the keys of the issuer of tokens")
        self._waiting += 1
        try:
            done, _ = await asyncio.wait((fetching,), timeout=WAIT_S)
        finally:
            self._waiting -= 1
        if not done:
            self._wrong = f"the issuer of tokens has not sent its keys within {WAIT_S:g} s"

    def problem(self) -> str | None:
        """Why the newest keys are not known; None while they are."""
        return self._wrong

    def _refresh(self) -> "asyncio.Task[None] | None":
        """The fetching that is under way; None if the last one was just now."""
        if self._fetching is None and self._clock() - self._tried_at >= PAUSE_S:
            self._fetching = asyncio.create_task(self._take(), name="fetch the keys of the issuer")
        return self._fetching

    async def _take(self) -> None:
        self._tried_at = self._clock()
        self._begun += 1
        number = self._begun
        try:
            self._keys = await asyncio.to_thread(self._fetch)
            self._fetched_at, self._newest, self._wrong = self._clock(), number, None
        except (OSError, ValueError, HTTPException, SecurityConfigError) as error:
            self._wrong = f"the keys of the OIDC issuer cannot be fetched: {error}"
            log.warning("the keys of the issuer cannot be fetched", extra={"error": str(error)})
        finally:
            self._fetching = None


def fetcher(issuer: str, url: str, tls: Watched[ssl.SSLContext]) -> Callable[[], KeySet]:
    """What fetches the keys from a URL, or from where the issuer says if that is empty.

    Raises SecurityConfigError for an address that cannot be used.
    """
    _check_protected(url or issuer)

    def fetch() -> KeySet:
        https = urllib.request.HTTPSHandler(context=tls.current)
        opener = urllib.request.build_opener(_NoRedirects(), https, urllib.request.ProxyHandler({}))
        if url:
            return key_set(_get(opener, url))
        return key_set(_get(opener, _address_of_keys(issuer, _get(opener, issuer.rstrip("/") + _DISCOVERY))))

    return fetch


def _get(opener: urllib.request.OpenerDirector, address: str) -> bytes:
    _check_protected(address)
    with opener.open(address, timeout=_FETCH_S) as response:
        content: bytes = response.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SecurityConfigError(f"{shown(address)} answers with more than 1 MiB")
    return content


def _address_of_keys(issuer: str, content: bytes) -> str:
    try:
        described: Any = json.loads(content)
        found, address = described["issuer"], described["jwks_uri"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SecurityConfigError(f"{issuer}{_DISCOVERY} is no description of an issuer") from None
    if found != issuer or not isinstance(address, str):
        raise SecurityConfigError(f"{issuer}{_DISCOVERY} describes another issuer")
    return address


def _check_protected(address: str) -> None:
    try:
        parts = urlsplit(address)
        if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
            return
    except ValueError:
        raise SecurityConfigError(f"{shown(address)} is no address") from None
    how = "give an https:// address, or SLUICE_AUTH_OIDC_JWKS a file"
    raise SecurityConfigError(f"keys of tokens are not fetched from {shown(address)}: {how}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        """Leave the answer as it is: an error."""
