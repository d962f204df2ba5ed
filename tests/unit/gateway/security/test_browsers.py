"""Which calls of browsers are refused: those of foreign pages, and those to a name that is not this gateway's."""

import httpx
import pytest
from unit.gateway.rest.world import World

from api_gateway.edge.security.browsers import Browsers, Calls, browsers_of
from api_gateway.settings import GatewaySettings, PageMode

OPEN = Browsers()
HERE = browsers_of(GatewaySettings(host="127.0.0.1", page_hosts="sluice.example"))
NETWORK = browsers_of(GatewaySettings(host="0.0.0.0", page_hosts=" Sluice.example, "))
SECURED = browsers_of(GatewaySettings(host="0.0.0.0", auth_enabled=True))


def status(browsers: Browsers, host: str, origin: str | None = None, path: str = "/sluice/v1/scopes") -> int | None:
    headers = {"host": host} if origin is None else {"host": host, "origin": origin}
    refusal = browsers.refusal(path, headers)
    return refusal.status if refusal is not None else None


@pytest.mark.parametrize("browsers", [OPEN, HERE, NETWORK, SECURED])
@pytest.mark.parametrize(
    ("host", "origin", "refused"),
    [
        ("127.0.0.1:10080", None, None),
        ("127.0.0.1:10080", "http://127.0.0.1:10080", None),
        ("localhost:10080", "http://localhost:10080", None),
        ("[::1]:10080", "http://[::1]:10080", None),
        ("127.0.0.1:10080", "http://127.0.0.1:3000", 403),
        ("127.0.0.1:10080", "https://evil.example", 403),
        ("127.0.0.1:10080", "null", 403),
        ("127.0.0.1:10080", "", 403),
        ("127.0.0.1:10080", "file://127.0.0.1:10080", 403),
    ],
)
def test_a_page_of_another_origin_may_send_nothing(
    browsers: Browsers, host: str, origin: str | None, refused: int | None
) -> None:
    assert status(browsers, host, origin) == refused


@pytest.mark.parametrize(
    ("browsers", "of_programs", "of_its_page"),
    [(HERE, 421, 421), (NETWORK, None, 403), (SECURED, None, None)],
)
def test_a_name_that_a_website_could_point_here_is_not_known(
    browsers: Browsers, of_programs: int | None, of_its_page: int | None
) -> None:
    assert status(browsers, "rebound.example:10080") == of_programs
    assert status(browsers, "rebound.example:10080", "http://rebound.example:10080") == of_its_page


@pytest.mark.parametrize("browsers", [HERE, NETWORK])
def test_a_name_that_is_given_is_known_behind_a_proxy_too(browsers: Browsers) -> None:
    assert status(browsers, "sluice.example") is None
    assert status(browsers, "SLUICE.example", "https://sluice.example") is None
    assert status(browsers, "127.0.0.1:10080", "https://sluice.example") is None


def test_a_name_that_is_given_with_its_port_is_that_port_alone() -> None:
    browsers = browsers_of(GatewaySettings(host="0.0.0.0", page_hosts="sluice.example:8443"))
    assert status(browsers, "10.0.0.7:10080", "https://sluice.example:8443") is None
    assert status(browsers, "10.0.0.7:10080", "https://sluice.example") == 403


def test_probes_reach_a_gateway_by_any_name() -> None:
    for path in ("/livez", "/readyz", "/metrics", "/ping"):
        assert status(HERE, "gateway-0.sluice.svc", path=path) is None


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"host": "127.0.0.1"}, PageMode.ON),
        ({"host": "localhost"}, PageMode.ON),
        ({"host": "::1"}, PageMode.ON),
        ({"host": "0.0.0.0"}, PageMode.READ_ONLY),
        ({"host": "gateway.example"}, PageMode.READ_ONLY),
        ({"host": "0.0.0.0", "auth_enabled": True}, PageMode.ON),
        ({"host": "0.0.0.0", "page": "on"}, PageMode.ON),
        ({"host": "127.0.0.1", "page": "off"}, PageMode.OFF),
    ],
)
def test_pages_may_change_something_where_callers_are_known_or_on_this_machine(
    settings: dict[str, object], mode: PageMode
) -> None:
    assert browsers_of(GatewaySettings.model_validate(settings)).mode is mode


async def test_a_form_of_another_site_changes_nothing() -> None:
    world = World(browsers=Browsers(own=frozenset({"gateway"}), must_know=Calls.ALL))
    await world.start()
    foreign = {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        ours = await client.post("/sluice/v1/scopes/sc/streams/st/seal", headers=foreign)
        pravegas = await client.post("/v1/scopes", headers=foreign, content=b'{"scopeName": "sc"}')
        assert (ours.status_code, pravegas.status_code) == (403, 403)
        assert "evil.example" in ours.json()["detail"] and pravegas.content == b""
        rebound = await client.get("/sluice/v1/scopes", headers={"Host": "evil.example"})
        assert rebound.status_code == 421
        assert not world.sent
        assert (await client.put("/sluice/v1/scopes/sc")).status_code == 201
    await world.stop()
