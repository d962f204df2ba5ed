"""ETag and If-Match: an update on condition changes nothing that another caller has changed."""

from typing import Any

import httpx
from unit.gateway.rest.test_sluice_others import BODY, RG
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World

from api_gateway.edge.requests import Requests
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.reader_group.commands import UpdateReaderGroup
from sluice.domain.stream.commands import UpdateStream
from sluice.domain.stream.events import StreamUpdated

TWO: dict[str, Any] = {"scaling": {"minSegments": 2}}


async def put(world: World, path: str, body: Any, etag: str) -> httpx.Response:
    return await world.client.put(path, json=body, headers={"If-Match": etag})


async def etag_of(world: World, path: str) -> str:
    return (await world.call("GET", path)).headers["etag"]


async def test_a_stream_is_updated_only_from_the_configuration_that_was_read(world: World, stream: str) -> None:
    etag = await etag_of(world, stream)
    assert etag.startswith('"') and etag.endswith('"')
    updated = await put(world, stream, {**TWO, "tags": ["mine"]}, f'"other", {etag}')
    assert updated.status_code == 200
    sent = len(world.sent)
    late = await put(world, stream, {**TWO, "tags": ["theirs"]}, etag)
    assert problem(late) == (412, "CONFIG_CHANGED")
    assert len(world.sent) == sent
    shown = await world.call("GET", stream)
    assert shown.json()["config"]["tags"] == ["mine"]
    assert shown.headers["etag"] not in (etag, "")


async def test_an_update_that_the_gateway_could_not_see_is_found_by_the_decision(world: World, stream: str) -> None:
    etag = await etag_of(world, stream)
    between_read_and_decision(world, stream)
    late = await put(world, stream, {**TWO, "tags": ["mine"]}, etag)
    assert problem(late) == (412, "CONFIG_CHANGED")
    command = world.sent[-1][1].command
    assert isinstance(command, UpdateStream) and command.expected == StreamConfig(ScalingPolicy(min_segments=2))
    assert (await world.get(stream))["config"]["tags"] == ["theirs"]


def between_read_and_decision(world: World, stream: str) -> None:
    """Have another caller update the stream once the gateway has compared ETags."""
    requests = world.parts[Requests]
    submit = requests.submit

    async def submitted(command: Any, *, id: str) -> Any:
        config = StreamConfig(ScalingPolicy(min_segments=2), tags=("theirs",))
        await world.system.append("sc/st", StreamUpdated("sc", "st", config=config))
        return await submit(command, id=id)

    requests.submit = submitted


async def test_what_is_not_configuration_leaves_the_etag(world: World, stream: str) -> None:
    etag = await etag_of(world, stream)
    assert (await world.call("PUT", RG, BODY)).status_code == 201
    split = {"sealed": [0], "ranges": [[0.0, 0.25], [0.25, 0.5]]}
    assert (await world.call("POST", f"{stream}/scale", split)).status_code == 202
    await world.until_idle("sc/st", "stream:sc/st")
    assert await etag_of(world, stream) == etag


async def test_a_stream_made_anew_has_another_etag(world: World, stream: str) -> None:
    etag = await etag_of(world, stream)
    assert (await world.call("POST", f"{stream}/seal")).status_code == 200
    assert (await world.call("DELETE", stream)).status_code == 204
    assert (await world.call("PUT", stream, TWO)).status_code == 201
    assert problem(await put(world, stream, TWO, etag)) == (412, "CONFIG_CHANGED")


async def test_a_condition_creates_nothing(world: World, scope: str) -> None:
    for path, body in ((ST, TWO), (RG, BODY)):
        assert problem(await put(world, path, body, "*")) == (412, "CONFIG_CHANGED")
    assert problem(await world.call("PUT", RG, {**BODY, "generation": 0})) == (412, "CONFIG_CHANGED")
    assert (await world.get(f"{S}/scopes/sc"))["streams"] == 0


async def test_a_reader_group_is_updated_only_from_the_configuration_that_was_read(world: World, stream: str) -> None:
    assert (await world.call("PUT", RG, BODY)).status_code == 201
    etag = await etag_of(world, RG)
    assert (await put(world, RG, BODY, etag)).json()["generation"] == 1
    assert problem(await put(world, RG, BODY, etag)) == (412, "CONFIG_CHANGED")
    assert (await put(world, RG, BODY, "*")).json()["generation"] == 2


async def test_a_reader_group_that_the_decision_finds_changed_is_412(world: World, stream: str) -> None:
    assert (await world.call("PUT", RG, BODY)).status_code == 201
    late = await put(world, RG, {**BODY, "generation": 7}, await etag_of(world, RG))
    assert problem(late) == (412, "CONFIG_CHANGED")
    assert isinstance(world.sent[-1][1].command, UpdateReaderGroup)
