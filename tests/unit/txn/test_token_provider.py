"""Tokens for Faust's client of Kafka, from a provider behind TLS."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import faust.auth
import pytest
from aiohttp import web
from support.certificates import Authority

from sluice.kafka_config.conf import read_conf
from sluice.kafka_config.security import TokenLogin
from sluice.security.tls import PROTOCOLS, serving_context, watched_identity
from txn_manager.statistics.app import credentials
from txn_manager.statistics.token_provider import TokenProvider

SECRET = "p4ss"


class Provider:
    """Gives numbered tokens of `life_s`; remembers what it was asked for."""

    def __init__(self) -> None:
        self.life_s = 3600.0
        self.forms: list[dict[str, str]] = []

    async def grant(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"] != aiohttp.encode_basic_auth("sluice", SECRET):
            return web.Response(status=401)
        self.forms.append({key: str(value) for key, value in (await request.post()).items()})
        granted = json.dumps({"access_token": f"token {len(self.forms)}", "expires_in": self.life_s})
        return web.Response(body=granted.encode("utf-8-sig"), content_type="application/json")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def endpoint(provider: Provider, authority: Authority) -> AsyncIterator[str]:
    pair = authority.issue("provider")
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    app = web.Application()
    app.router.add_post("/token", provider.grant)
    runner = web.AppRunner(app)
    await runner.setup()
    assert runner.server is not None
    server = await asyncio.get_running_loop().create_server(
        runner.server, "127.0.0.1", 0, ssl=serving_context(identity)
    )
    yield f"https://localhost:{server.sockets[0].getsockname()[1]}/token"
    server.close()
    await runner.cleanup()


def login(endpoint: str, authority: Authority, secret: str = SECRET) -> TokenLogin:
    return TokenLogin("sluice", secret, endpoint, "kafka", authority.file.read_text())


async def test_a_token_serves_for_most_of_its_life(endpoint: str, provider: Provider, authority: Authority) -> None:
    tokens = TokenProvider(login(endpoint, authority))
    assert [await tokens.token(), await tokens.token()] == ["token 1", "token 1"]
    assert provider.forms == [{"grant_type": "client_credentials", "scope": "kafka"}]
    provider.life_s = 0.0
    brief = TokenProvider(login(endpoint, authority))
    assert [await brief.token(), await brief.token()] == ["token 2", "token 3"]


async def test_a_provider_that_refuses_or_is_not_trusted_gives_no_token(
    endpoint: str, authority: Authority, tmp_path: Path
) -> None:
    with pytest.raises(aiohttp.ClientResponseError, match="401") as refused:
        await TokenProvider(login(endpoint, authority, "wrong")).token()
    assert "wrong" not in str(refused.value)
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await TokenProvider(login(endpoint, Authority(tmp_path, "stranger"))).token()


def test_faust_is_given_the_provider() -> None:
    conf = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "sluice",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.token.endpoint.url": "http://provider/token",
    }
    found = credentials(read_conf(json.dumps(conf)))
    assert isinstance(found, faust.auth.OAuthCredentials)
    assert isinstance(found.oauth_cb, TokenProvider) and found.ssl_context is not None
