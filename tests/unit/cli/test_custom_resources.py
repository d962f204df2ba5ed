"""What one look at a custom resource comes to, on an in-memory gateway with the workflows behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from support.custom_resources import DEFINITIONS, api_of, filled
from unit.gateway.rest.world import World

from api_gateway.console.rest.config_models import StreamSettings
from sluice_cli.api import Api
from sluice_cli.custom_resources import keeping
from sluice_cli.custom_resources.keeping import SETTINGS, Outcome
from sluice_cli.errors import RefusedError, UnreachableError

SCOPE = filled("scopes", scope="shop")
STREAM = filled("streams", scope="shop", stream="orders")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.start()
    yield world
    await world.stop()


@pytest.fixture
async def api(world: World) -> Api:
    return api_of(world, asyncio.get_running_loop())


async def look(what: Callable[[Api, Any], Any], api: Api, spec: Any) -> Any:
    return await asyncio.to_thread(what, api, spec)


async def created(api: Api) -> None:
    assert (await look(keeping.keep_scope, api, SCOPE)).reason == "Created"
    assert (await look(keeping.keep_stream, api, STREAM)).reason == "Created"


async def config(api: Api) -> Any:
    found = await asyncio.to_thread(api.get, "/sluice/v1/scopes/shop/streams/orders")
    return found["config"]


async def test_what_is_as_specified_is_looked_at_and_not_requested(world: World, api: Api) -> None:
    await created(api)
    sent = len(world.sent)
    assert (await look(keeping.keep_scope, api, SCOPE)).reason == "AsSpecified"
    assert (await look(keeping.keep_stream, api, STREAM)).reason == "AsSpecified"
    assert len(world.sent) == sent


@pytest.mark.parametrize(
    "settings",
    [
        {"scaling": {"type": "events", "targetRate": 100, "scaleFactor": 2, "minSegments": 2}},
        {"retention": {"type": "time", "min": 3_600_000}},
        {"tags": ["b", "a"]},
        {"rolloverSizeBytes": 1 << 20, "timestampAggregationTimeout": 5000},
    ],
)
async def test_a_spec_that_changes_is_configured_and_so_is_one_that_is_taken_back(
    api: Api, settings: dict[str, Any]
) -> None:
    await created(api)
    before, spec = await config(api), filled("streams", scope="shop", stream="orders", **settings)
    assert await look(keeping.keep_stream, api, spec) == Outcome(
        True, "Updated", f"the stream was configured anew: {', '.join(settings)}"
    )
    assert {name: (await config(api)).get(name) for name in SETTINGS} == {name: spec.get(name) for name in SETTINGS}
    assert (await look(keeping.keep_stream, api, spec)).reason == "AsSpecified"
    assert (await look(keeping.keep_stream, api, STREAM)).reason == "Updated"
    assert await config(api) == before


async def test_what_others_delete_is_made_anew(api: Api) -> None:
    await created(api)
    await look(keeping.remove_scope, api, {**SCOPE, "deletion": "DeleteAll"})
    await created(api)


async def test_a_stream_without_its_scope_is_refused_with_the_reason(api: Api) -> None:
    with pytest.raises(RefusedError) as refused:
        await look(keeping.keep_stream, api, STREAM)
    outcome = keeping.failed(refused.value)
    assert (outcome.is_ready, outcome.reason) == (False, "SCOPE_NOT_FOUND")
    assert "shop" in outcome.message


async def test_a_deletion_takes_the_stream_and_an_empty_scope_however_often_it_is_tried(api: Api) -> None:
    await created(api)
    scope, stream = {**SCOPE, "deletion": "Delete"}, {**STREAM, "deletion": "Delete"}
    with pytest.raises(RefusedError) as refused:
        await look(keeping.remove_scope, api, scope)
    assert keeping.failed(refused.value).reason == "SCOPE_NOT_EMPTY"
    for _ in range(2):
        await look(keeping.remove_stream, api, stream)
    for _ in range(2):
        await look(keeping.remove_scope, api, scope)
    await look(keeping.remove_stream, api, stream)
    with pytest.raises(RefusedError):
        await asyncio.to_thread(api.get, "/sluice/v1/scopes/shop")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RefusedError("why", status=403), "Forbidden"),
        (RefusedError("why", status=409, reason="SCOPE_NOT_EMPTY"), "SCOPE_NOT_EMPTY"),
        (UnreachableError("why"), "Unreachable"),
    ],
)
def test_what_fails_has_a_reason_in_one_word(error: Any, reason: str) -> None:
    assert keeping.failed(error) == Outcome(False, reason, "why")


def test_a_condition_keeps_the_time_since_when_it_is_so() -> None:
    def after(before: list[Any], outcome: Outcome, second: int) -> list[Any]:
        return keeping.conditions(before, outcome, second, datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC))

    first = after([], Outcome(True, "Created", "why"), 1)
    second = after(first, Outcome(True, "AsSpecified", "why"), 2)
    third = after(second, Outcome(False, "Forbidden", "why"), 3)
    assert [
        (one["reason"], one["lastTransitionTime"][-3:], one["observedGeneration"]) for (one,) in (second, third)
    ] == [
        ("AsSpecified", "01Z", 2),
        ("Forbidden", "03Z", 3),
    ]


def test_the_definition_of_streams_has_the_settings_of_the_rest_interface() -> None:
    """The same names, values that are filled in, and bounds."""
    described = StreamSettings.model_json_schema()
    of_rest = {name: _plain(one, described["$defs"]) for name, one in described["properties"].items()}
    own = DEFINITIONS["streams"]["properties"]
    assert set(of_rest) == set(SETTINGS) == set(own) - {"scope", "stream", "deletion"}
    for name in SETTINGS:
        assert _plain(own[name], {}) == of_rest[name], name
    defaults = StreamSettings.model_validate({}).model_dump(by_alias=True)
    assert {name: STREAM.get(name) for name in SETTINGS} == defaults


_KEPT = ("type", "minimum", "maximum", "enum", "maxItems", "maxLength", "required")
_OF_FORMATS = {("maximum", 2**31 - 1), ("maximum", 2**63 - 1)}
"""Said by the format of a number."""


def _plain(schema: Any, named: Any) -> Any:
    """What a schema says of a value, without words, defaults, and what is another dialect of the same."""
    (schema,) = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    schema = {**named.get(schema.get("$ref", "").rpartition("/")[2], {}), **schema}
    said = {name: schema[name] for name in _KEPT if name in schema}
    found: Any = {n: v for n, v in said.items() if isinstance(v, list) or (n, v) not in _OF_FORMATS}
    if "properties" in schema:
        found["properties"] = {name: _plain(one, named) for name, one in schema["properties"].items()}
    if "items" in schema:
        found["items"] = _plain(schema["items"], named)
    return found
