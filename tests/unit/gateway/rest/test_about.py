"""What a gateway says of itself and of its caller, and the sessions of browsers."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import CLUSTER_NAME, World
from unit.gateway.security.support import ALL, READ, READ_UPDATE, Callers
from unit.gateway.system import CONTAINERS, PARTITIONS

from api_gateway.console.page_files import page_files
from api_gateway.edge.security.browsers import Browsers
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.sessions import COOKIE, LIFE_S, Sessions
from api_gateway.main import sessions_of
from api_gateway.settings import GatewaySettings, PageMode

S = "/sluice/v1"
NOW_S = 1_700_000_000.0


class Time:
    def __init__(self) -> None:
        self.now_s = NOW_S


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def callers() -> Callers:
    return Callers(admin={ALL: READ_UPDATE}, reader={"prn::/": READ})


@pytest.fixture
async def secured(callers: Callers, time: Time) -> AsyncIterator[World]:
    world = World(guard=Guard(callers, readers_write=True), sessions=Sessions(lambda: b"a key", lambda: time.now_s))
    await world.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        world.client = client
        yield world
    await world.stop()


async def login(world: World, user: str, **headers: str) -> httpx.Response:
    return await world.client.post(f"{S}/session", headers={"Authorization": f"Basic {user}", **headers})


async def test_a_gateway_says_what_it_is(world: World) -> None:
    found = await world.get(f"{S}/about")
    assert {name: found[name] for name in ("cluster", "page", "mode", "partitions", "containers")} == {
        "cluster": CLUSTER_NAME,
        "page": page_files().version,
        "mode": "on",
        "partitions": PARTITIONS,
        "containers": CONTAINERS,
    }
    assert found["now"] > 0 and found["version"]


async def test_without_authentication_everyone_may_everything(world: World) -> None:
    every = dict.fromkeys(("root", "cluster", "workflows", "deadLetters"), "READ_UPDATE")
    assert await world.get(f"{S}/me") == {"authentication": False, "rights": every, "readOnly": False}
    assert problem(await world.call("POST", f"{S}/session")) == (404, None)


async def test_who_has_not_logged_in_has_no_rights(secured: World) -> None:
    found = await secured.get(f"{S}/me")
    assert found["authentication"] and "principal" not in found and set(found["rights"].values()) == {"NONE"}
    assert problem(await secured.call("POST", f"{S}/session")) == (401, None)
    assert problem(await login(secured, "stranger")) == (401, None)


async def test_a_session_stands_for_its_credentials(secured: World) -> None:
    answer = await login(secured, "reader")
    assert answer.status_code == 204
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={LIFE_S}"} == set(attributes)
    assert "reader" not in answer.headers["set-cookie"]
    found = await secured.get(f"{S}/me")
    assert (found["principal"], found["rights"]["root"], found["rights"]["cluster"]) == ("reader", "READ", "NONE")
    assert problem(await secured.call("PUT", f"{S}/scopes/sc")) == (403, None)
    assert (await secured.call("DELETE", f"{S}/session")).status_code == 204
    assert not secured.client.cookies
    assert "principal" not in await secured.get(f"{S}/me")


async def test_a_session_over_tls_stays_there(secured: World) -> None:
    answer = await login(secured, "reader", Origin="https://gateway")
    assert answer.headers["set-cookie"].endswith("; Secure")


async def test_credentials_that_are_sent_go_before_those_of_the_session(secured: World) -> None:
    await login(secured, "reader")
    answer = await secured.client.get(f"{S}/me", headers={"Authorization": "Basic admin"})
    assert answer.json()["principal"] == "admin"


async def test_a_session_ends_when_its_credentials_count_no_more(secured: World, callers: Callers) -> None:
    await login(secured, "reader")
    del callers.permissions["reader"]
    assert problem(await secured.call("GET", f"{S}/scopes")) == (401, None)


async def test_a_session_whose_credentials_count_no_more_can_be_ended(secured: World, callers: Callers) -> None:
    await login(secured, "reader")
    del callers.permissions["reader"]
    assert (await secured.call("DELETE", f"{S}/session")).status_code == 204
    assert not secured.client.cookies


async def test_a_session_ends_after_its_time(secured: World, time: Time) -> None:
    await login(secured, "reader")
    time.now_s += LIFE_S + 1
    assert problem(await secured.call("GET", f"{S}/scopes")) == (401, None)


async def test_gateways_with_one_key_share_sessions_and_others_do_not(secured: World) -> None:
    await login(secured, "reader")
    cookie = secured.client.cookies[COOKIE]
    assert Sessions(lambda: b"a key", lambda: NOW_S).open(cookie) == "Basic reader"
    for secret in (b"another key", b""):
        assert Sessions(lambda secret=secret: secret, lambda: NOW_S).open(cookie) is None  # type: ignore[misc]
    for wrong in ("", "x", cookie[:-4], cookie.swapcase(), "ü"):
        assert Sessions(lambda: b"a key", lambda: NOW_S).open(wrong) is None


def test_gateways_with_one_key_file_share_sessions_until_it_holds_another_key(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("one")
    settings = GatewaySettings(kafka_bootstrap="none", auth_enabled=True, token_key_file=str(file))
    signers = [settings.token_signer(lambda: 0) for _ in range(2)]
    a, b = (sessions_of(settings, signer) for signer in signers)
    assert a is not None and b is not None
    cookie = a.seal("Basic reader")
    assert b.open(cookie) == "Basic reader"
    file.write_text("other")
    for signer in signers:
        assert signer.watched is not None
        signer.watched.look()
    assert b.open(cookie) is None and b.open(a.seal("Basic reader")) == "Basic reader"


async def test_credentials_that_fit_into_no_cookie_are_refused(secured: World, callers: Callers) -> None:
    callers.permissions["x" * 3_000] = {ALL: READ}
    assert problem(await login(secured, "x" * 3_000)) == (413, None)


async def test_of_everything_a_caller_follows_what_it_may_read(secured: World, callers: Callers) -> None:
    path = f"{S}/events?count=1"
    assert problem(await secured.call("GET", path)) == (401, None)
    await login(secured, "reader")
    for of in ("", "&of=cluster,stream:sc/st,rates:sc/st"):
        answer = await secured.call("GET", f"{path}{of}")
        assert answer.status_code == 200 and answer.text.startswith("event: hello\n"), of


async def test_where_pages_may_only_read_a_page_can_still_log_in(callers: Callers) -> None:
    world = World(
        guard=Guard(callers, readers_write=True),
        browsers=Browsers(mode=PageMode.READ_ONLY),
        sessions=Sessions(lambda: b"", lambda: NOW_S),
    )
    await world.start()
    own = {"Origin": "http://gateway"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        world.client = client
        assert (await login(world, "admin", **own)).status_code == 204
        assert (await world.get(f"{S}/me"))["readOnly"]
        refused = await client.put(f"{S}/scopes/sc", headers=own)
        assert problem(refused) == (403, None) and "SLUICE_PAGE" in refused.json()["detail"]
        assert not world.sent, "nothing was requested"
        assert (await client.put(f"{S}/scopes/sc")).status_code == 201, "what is no page may"
    await world.stop()
