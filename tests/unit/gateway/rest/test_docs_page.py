"""The page that describes the interfaces loads everything from the gateway."""

import re

from unit.gateway.rest.world import World


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
