"""Tokens of an OpenID Connect issuer: which are right, whom they prove, what they permit, and where keys come from."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from support.certificates import Authority

from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.security import keys as key_module
from api_gateway.edge.security.bearer import LEEWAY_S, BearerHandler
from api_gateway.edge.security.keys import FetchedKeys, FileKeys, KeySet, fetcher, key_set
from sluice.security.accounts import read_accounts
from sluice.security.caller import UnauthenticatedError
from sluice.security.contexts import ClientTls
from sluice.security.resources import ROOT, Permission
from sluice.security.tls import following_client
from sluice.security.watched import SecurityConfigError, Watched

ISSUER = "https://keycloak.example/realms/pravega"
AUDIENCE = "pravega-controller"
DEADLINE_S = 30.0
SCOPE = "prn::/scope:s"
READ, READ_UPDATE, NONE = Permission.READ, Permission.READ_UPDATE, Permission.NONE


@cache
def elliptic(_name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def classic() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def published(*names: str) -> bytes:
    """The key set with the public keys of these names; `rsa` is a classic one."""
    found = []
    for name in names:
        key = (
            RSAAlgorithm.to_jwk(classic().public_key(), as_dict=True)
            if name == "rsa"
            else ECAlgorithm.to_jwk(elliptic(name).public_key(), as_dict=True)
        )
        found.append({**key, "kid": name, "use": "sig", "alg": "RS256" if name == "rsa" else "ES256"})
    return json.dumps({"keys": found}).encode()


def token(key: str = "k1", kid: str | None = None, **changed: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "typ": "Bearer",
        "exp": int(time.time()) + 60,
        "sub": "0815",
        "preferred_username": "maria",
        "authorization": {"permissions": [{"rsname": f"{SCOPE}*", "scopes": ["READ"]}]},
        **changed,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    private, algorithm = (classic(), "RS256") if key == "rsa" else (elliptic(key), "ES256")
    return jwt.encode(claims, private, algorithm, headers={"kid": kid or key})


class Fixed:
    def __init__(self, *names: str) -> None:
        self.keys: KeySet = key_set(published(*names))

    async def find(self, id: str | None) -> jwt.PyJWK | None:
        return key_module.find_in(self.keys, id)


@pytest.fixture
def handler() -> BearerHandler:
    return BearerHandler(ISSUER, AUDIENCE, Fixed("k1", "rsa"))


@pytest.mark.parametrize("key", ["k1", "rsa"])
async def test_a_token_of_the_issuer_proves_its_user(handler: BearerHandler, key: str) -> None:
    for _ in range(2):
        caller = await handler.caller(token(key, aud=["account", AUDIENCE]))
        assert caller.principal == "maria"
        assert [caller.permission_on(one) for one in (f"{SCOPE}/stream:a", ROOT)] == [READ, NONE]


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://else.example"},
        {"iss": None},
        {"aud": "account"},
        {"aud": None},
        {"exp": int(time.time()) - LEEWAY_S - 5},
        {"exp": None},
        {"nbf": int(time.time()) + 86_400},
        {"typ": "ID"},
        {"preferred_username": None, "sub": None},
        {"preferred_username": ["maria"], "sub": ""},
        {"kid": "k2"},
        {"key": "k2", "kid": "k1"},
        {"key": "k2"},
    ],
)
async def test_a_token_that_is_not_right_in_all_is_refused(handler: BearerHandler, wrong: dict[str, Any]) -> None:
    with pytest.raises(UnauthenticatedError):
        await handler.caller(token(**wrong))


def forged(algorithm: str, secret: str) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60, "sub": "x"}
    return jwt.encode(claims, secret, algorithm, headers={"kid": "k1"})


@pytest.mark.parametrize(
    "made",
    [
        lambda: forged("none", ""),
        lambda: forged("HS256", "s" * 64),
        lambda: "",
        lambda: "a.b.c",
        lambda: "ä",
        lambda: "x" * 70_000,
    ],
)
async def test_what_the_issuer_cannot_have_signed_is_refused(handler: BearerHandler, made: Callable[[], str]) -> None:
    with pytest.raises(UnauthenticatedError):
        await handler.caller(made())


async def test_a_remembered_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    handler = BearerHandler(ISSUER, AUDIENCE, Fixed("k1"), clock=lambda: now)
    short = token(exp=int(time.time()) + 20)
    await handler.caller(short)
    now = 20 + LEEWAY_S + 1
    later = time.time() + now
    monkeypatch.setattr("jwt.api_jwt.datetime", _Later(later))
    with pytest.raises(UnauthenticatedError):
        await handler.caller(short)


class _Later:
    def __init__(self, at: float) -> None:
        self._at = at

    def now(self, tz: Any) -> Any:
        from datetime import datetime

        return datetime.fromtimestamp(self._at, tz)


@pytest.mark.parametrize(
    ("claims", "principal"),
    [({}, "maria"), ({"preferred_username": None, "client_id": "app"}, "app"), ({"preferred_username": None}, "0815")],
)
async def test_the_principal_is_the_first_name_there_is(
    handler: BearerHandler, claims: dict[str, Any], principal: str
) -> None:
    assert (await handler.caller(token(**claims))).principal == principal


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ([], NONE),
        ([{"rsname": SCOPE, "scopes": ["READ"]}, {"rsname": "prn::*", "scopes": ["READ_UPDATE"]}], READ_UPDATE),
        ([{"rsname": "prn::*", "scopes": ["READ_UPDATE", "READ"]}, {"rsname": SCOPE, "scopes": ["READ"]}], READ_UPDATE),
        ([{"rsname": SCOPE, "scopes": ["READ", "other"]}, {"rsname": "prn::/(((", "scopes": ["READ_UPDATE"]}], READ),
        ([{"rsname": SCOPE}, {"rsname": SCOPE, "scopes": []}, {"rsname": SCOPE, "scopes": ["NONE"]}], NONE),
        ([{"rsname": "Default Resource", "scopes": ["READ"]}, {"scopes": ["READ"]}, None, "x"], NONE),
        ("x", NONE),
        (None, NONE),
    ],
)
async def test_the_highest_permission_of_a_token_counts(
    handler: BearerHandler, permissions: Any, expected: Permission
) -> None:
    caller = await handler.caller(token(authorization={"permissions": permissions}))
    assert caller.permission_on(SCOPE) is expected


async def test_the_account_of_the_principals_name_counts_where_it_shall(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_text(f"maria:x:{SCOPE},READ_UPDATE\n")
    handler = BearerHandler(ISSUER, AUDIENCE, Fixed("k1"), Watched("accounts", [file], read_accounts))
    assert (await handler.caller(token())).permission_on(SCOPE) is READ_UPDATE
    assert (await handler.caller(token(preferred_username="x"))).permission_on(SCOPE) is NONE


# Keys


async def test_keys_of_a_file_are_those_it_has_now(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(published("k1"))
    watched = Watched("keys", [file], key_set)
    keys = FileKeys(watched)
    assert await keys.find("k1") and await keys.find(None) and not await keys.find("k2")
    file.write_bytes(published("k2", "rsa"))
    watched.look()
    assert await keys.find("k2") and not await keys.find("k1") and not await keys.find(None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": []}',
        b'{"keys": [1]}',
        b'{"keys": [{"kty": "oct"}]}',
        b'{"keys": [{"kty": "RSA", "n": "AQ", "e": "AQAB", "alg": "none"}]}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"}]}',
        published("k1").replace(b'"sig"', b'"enc"'),
    ],
)
def test_what_is_no_set_of_public_keys_is_refused(content: bytes) -> None:
    with pytest.raises(SecurityConfigError, match="JSON Web Key Set"):
        key_set(content)


class Issuer:
    """Serves keys over HTTP on the loopback interface."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, bytes] = {}
        self.requested: list[str] = []
        issuer = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requested.append(self.path)
                body = issuer.answers.get(self.path)
                if body is not None and body.startswith(b"http"):
                    self.send_response(302)
                    self.send_header("Location", body.decode())
                    self.end_headers()
                    return
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_arguments: Any) -> None:
                """Not on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


def trusting(ca: Path | None = None) -> Watched[ssl.SSLContext]:
    return following_client("the issuer", ClientTls("CA", str(ca or "")))


async def test_keys_are_where_the_issuer_says(issuer: Issuer) -> None:
    issuer.answers["/.well-known/openid-configuration"] = json.dumps(
        {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/certs"}
    ).encode()
    issuer.answers["/certs"] = published("k1")
    keys = FetchedKeys(fetcher(issuer.url, "", trusting()))
    assert await keys.find("k1") and keys.problem() is None
    assert issuer.requested == ["/.well-known/openid-configuration", "/certs"]


async def not_known(keys: FetchedKeys) -> None:
    """Whoever calls may come back: that is not to say that the token is wrong."""
    with pytest.raises(OverloadedError, match="not known at the moment"):
        await keys.find("k1")


@pytest.mark.parametrize("described", [{"issuer": "https://else"}, {"issuer": None}, {}, []])
async def test_a_description_of_another_issuer_is_refused(issuer: Issuer, described: Any) -> None:
    if isinstance(described, dict):
        described["jwks_uri"] = f"{issuer.url}/certs"
    issuer.answers["/.well-known/openid-configuration"] = json.dumps(described).encode()
    keys = FetchedKeys(fetcher(issuer.url, "", trusting()))
    await not_known(keys)
    assert "issuer" in (keys.problem() or "")
    assert "/certs" not in issuer.requested


@pytest.mark.parametrize("answer", [b"http://example.org/", b"x" * (1024 * 1024 + 1), None])
async def test_keys_that_cannot_be_had_are_reported(issuer: Issuer, answer: bytes | None) -> None:
    if answer is not None:
        issuer.answers["/certs"] = answer
    keys = FetchedKeys(fetcher(ISSUER, f"{issuer.url}/certs", trusting()))
    await not_known(keys)
    assert "cannot be fetched" in (keys.problem() or "")
    assert issuer.requested == ["/certs"]


async def test_the_issuer_is_trusted_by_the_authorities_in_the_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("issuer")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Authority(tmp_path, "other").file.read_bytes())
    issuer = Issuer(tls)
    issuer.answers["/certs"] = published("k1")
    now = 0.0
    trusted = trusting(ca)
    keys = FetchedKeys(fetcher(ISSUER, f"{issuer.url}/certs", trusted), lambda: now)
    await not_known(keys)
    assert "CERTIFICATE_VERIFY_FAILED" in (keys.problem() or "")
    ca.write_bytes(authority.file.read_bytes())
    trusted.look()
    now += key_module.PAUSE_S
    assert await keys.find("k1") and keys.problem() is None
    issuer.close()


@pytest.mark.parametrize("url", ["http://keycloak.example/certs", "file:///etc/passwd", "https://", "https://["])
def test_keys_are_not_fetched_over_what_protects_nothing(url: str) -> None:
    with pytest.raises(SecurityConfigError):
        fetcher(ISSUER, url, trusting())


class Changing:
    """Keys that change, and a clock that is set."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.fetched = 0
        self.now = 1000.0
        self.keys = FetchedKeys(self.fetch, lambda: self.now)

    def fetch(self) -> KeySet:
        self.fetched += 1
        if not self.names:
            raise OSError("away")
        return key_set(published(*self.names))


async def test_an_unknown_key_has_the_keys_fetched_anew_once_in_a_while() -> None:
    source = Changing("k1")
    found = await asyncio.gather(*(source.keys.find(id) for id in ("k1", "k1", "k2")))
    assert found[0] and found[1] and not found[2] and source.fetched == 1
    source.now += key_module.PAUSE_S
    source.names = ("k2",)
    assert await source.keys.find("k2") and source.fetched == 2


async def test_a_key_that_came_after_the_last_fetching_is_not_refused_for_good() -> None:
    source = Changing("k1")
    assert not await source.keys.find("of a stranger")
    source.names = ("k2",)
    for _ in range(2):
        with pytest.raises(OverloadedError):
            await source.keys.find("k2")
    source.now += key_module.PAUSE_S
    assert await source.keys.find("k2") and source.fetched == 2


async def test_keys_whose_fetching_began_before_a_call_refuse_nothing_for_good() -> None:
    fetching, rotated = Event(), Event()

    def fetch() -> KeySet:
        fetching.set()
        assert rotated.wait(DEADLINE_S)
        return key_set(published("k1"))

    keys = FetchedKeys(fetch)
    first = asyncio.ensure_future(keys.find("k1"))
    assert await asyncio.to_thread(fetching.wait, DEADLINE_S)
    late = asyncio.ensure_future(keys.find("k2"))
    await asyncio.sleep(0)
    rotated.set()
    assert await first
    with pytest.raises(OverloadedError):
        await late


async def test_a_fetching_that_does_not_end_keeps_no_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_module, "WAIT_S", 0.01)
    answered = Event()

    def fetch() -> KeySet:
        assert answered.wait(DEADLINE_S)
        return key_set(published("k1"))

    keys = FetchedKeys(fetch)
    try:
        await asyncio.wait_for(not_known(keys), DEADLINE_S / 2)
        assert "has not sent its keys" in (keys.problem() or "")
        monkeypatch.setattr(key_module, "MAX_WAITING", 0)
        with pytest.raises(OverloadedError, match="too many calls wait"):
            await keys.find("k1")
    finally:
        answered.set()
    monkeypatch.undo()
    assert await keys.find("k1")


async def test_a_key_that_is_none_is_refused_at_once_when_it_comes_again() -> None:
    source = Changing("k1")
    assert await source.keys.find("k2") is None
    assert await source.keys.find("k2") is None and source.fetched == 1
    with pytest.raises(OverloadedError):
        await source.keys.find("k3")


async def fetching_done() -> None:
    (fetching,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("fetch"))
    await fetching


async def test_a_fetching_that_failed_is_tried_again_after_a_pause() -> None:
    source = Changing("k1")
    assert await source.keys.find("k1")
    source.names = ()
    source.now += key_module.PAUSE_S
    with pytest.raises(OverloadedError):
        await source.keys.find("k2")
    source.names = ("k1",)
    assert await source.keys.find("k1") and source.fetched == 2, "too soon"
    source.now += key_module.PAUSE_S
    assert await source.keys.find("k1") and source.keys.problem() is not None
    await fetching_done()
    assert source.fetched == 3 and source.keys.problem() is None


async def test_a_key_that_was_withdrawn_goes_however_long_no_one_called() -> None:
    source = Changing("k1")
    assert await source.keys.find("k1")
    source.names = ("k2",)
    source.now += key_module.MAX_AGE_S + 1
    assert not await source.keys.find("k1") and await source.keys.find("k2") and source.fetched == 2


async def test_keys_that_are_old_stay_in_use_while_their_issuer_is_away() -> None:
    source = Changing("k1")
    assert await source.keys.find("k1")
    source.names = ()
    source.now += key_module.MAX_AGE_S + 1
    assert await source.keys.find("k1")
    assert source.fetched == 2 and "away" in (source.keys.problem() or "") and await source.keys.find("k1")
    source.names = ("k2",)
    source.now += key_module.PAUSE_S
    assert await source.keys.find("k2") and source.keys.problem() is None
    source.now += key_module.PAUSE_S
    assert not await source.keys.find("k1")
