"""Tokens of an OAuth provider for aiokafka, which asks for one whenever it connects."""

import ssl
import time
from typing import Any

import aiohttp
from aiokafka.abc import AbstractTokenProvider

from sluice.kafka_config.security import TokenLogin

REQUEST_S = 10.0
USED_UP = 0.8
"""The part of a token's life after which a new one is fetched."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Fetches a token of the client credentials, and keeps it for most of its life. Belongs to one event loop."""

    def __init__(self, login: TokenLogin) -> None:
        self._login = login
        self._token = ""
        self._until = 0.0

    async def token(self) -> str:
        """See AbstractTokenProvider. Raises aiohttp.ClientError if the provider gives none."""
        if time.monotonic() >= self._until:
            granted = await self._fetch()
            self._token = granted["access_token"]
            self._until = time.monotonic() + USED_UP * granted.get("expires_in", 0)
        return self._token

    async def _fetch(self) -> dict[str, Any]:
        login = self._login
        form = {"grant_type": "client_credentials", **({"scope": login.scope} if login.scope else {})}
        client = {"Authorization": aiohttp.encode_basic_auth(login.client_id, login.secret)}
        trusted = ssl.create_default_context(cadata=login.authorities)
        timeout = aiohttp.ClientTimeout(REQUEST_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.post(login.endpoint, data=form, headers=client, ssl=trusted) as answer,
        ):
            granted: dict[str, Any] = await answer.json(encoding="utf-8-sig")
            return granted
