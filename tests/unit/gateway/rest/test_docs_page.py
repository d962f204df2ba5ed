"""The page that describes the interfaces loads everything from the gateway; who has its address alone finds it."""

import re
from importlib.metadata import version

import httpx
from unit.gateway.rest.world import World

from sluice.telemetry.health import HttpServer


async def test_everything_on_the_page_comes_from_the_gateway(world: World) -> None:
    page = await world.call("GET", "/docs")
    assert page.status_code == 200
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {name.rpartition(".")[2] for name in named} == {"js", "css", "png"}
    assert "//" not in "".join(named)
    for name in (*named, *re.findall(r"url: '([^']+)'", page.text)):
        answer = await world.call("GET", f"/{name}")
        assert answer.status_code == 200, name
        assert answer.content


async def test_the_page_is_in_no_frame_and_its_files_are_what_they_say(world: World) -> None:
    page = await world.call("GET", "/docs")
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    answers = [page, *[await world.call("GET", f"/docs-files/{n}") for n in ("swagger-ui-bundle.js", "favicon.png")]]
    assert [answer.headers["x-content-type-options"] for answer in answers] == ["nosniff"] * 3
    kinds = [answer.headers["content-type"].partition(";")[0] for answer in answers]
    assert kinds == ["text/html", "text/javascript", "image/png"]
    for none in ("redoc.standalone.js", "%2e%2e/routes.py", ""):
        assert (await world.call("GET", f"/docs-files/{none}")).status_code == 404


async def test_the_root_says_what_is_served_and_which_version(world: World) -> None:
    root, description = await world.get("/"), await world.get("/openapi.json")
    assert root["version"] == description["info"]["version"] == version("sluice-streams-cli")
    for name in ("documentation", "openapi", "alive", "ready", "metrics"):
        assert (await world.call("GET", root["paths"][name])).status_code == 200, name
    for name in ("sluice", "pravega"):
        assert (await world.call("GET", f"{root['paths'][name]}/scopes")).status_code == 200, name


async def test_every_answer_says_which_version_has_given_it(world: World, unused_tcp_port: int) -> None:
    server = HttpServer(world.app, "127.0.0.1", unused_tcp_port)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{unused_tcp_port}") as client:
            answers = [await client.get(path) for path in ("/livez", "/sluice/v1/scopes", "/nowhere")]
    finally:
        await server.stop()
    assert [answer.headers.get_list("server") for answer in answers] == [
        [f"Sluice/{version('sluice-streams-cli')}"]
    ] * 3
