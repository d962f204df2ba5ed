"""Lists by the begin of a name, page by page."""

from typing import Any

import pytest
from unit.gateway.rest.test_sluice_streams import S, problem
from unit.gateway.rest.world import World

NAMES = ("a", "ab", "aba", "abc", "ac", "b", "ab.d", "AB")
TABLE: dict[str, Any] = {"partitionCount": 1, "primaryKeyLength": 8}


async def listed(world: World, path: str, **query: Any) -> list[str]:
    return [item["name"] for item in await world.all_items(path, **query)]


@pytest.mark.parametrize(
    ("kind", "body"),
    [("streams", {}), ("tables", TABLE), ("readergroups", {"config": {"streams": {"sc/st": {}}}})],
)
async def test_what_is_in_a_scope(world: World, stream: str, kind: str, body: Any) -> None:
    path = f"{S}/scopes/sc/{kind}"
    for name in NAMES:
        assert (await world.call("PUT", f"{path}/{name}", body)).status_code == 201, name
    assert await listed(world, path, prefix="ab") == ["ab", "ab.d", "aba", "abc"]
    assert await listed(world, path, prefix="abc") == ["abc"]
    assert await listed(world, path, prefix="zz") == []
    assert set(await listed(world, path, prefix="")) >= set(NAMES)
    assert problem(await world.call("GET", f"{S}/scopes/no/{kind}")) == (404, "SCOPE_NOT_FOUND")


async def test_scopes(world: World) -> None:
    for name in NAMES:
        await world.call("PUT", f"{S}/scopes/{name}")
    assert await listed(world, f"{S}/scopes") == sorted([*NAMES, "_system"])
    assert await listed(world, f"{S}/scopes", prefix="ab") == ["ab", "ab.d", "aba", "abc"]
    assert problem(await world.call("GET", f"{S}/scopes", prefix="a/b")) == (400, None)
