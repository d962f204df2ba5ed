"""An in-memory gateway as the operator of custom resources calls it, from threads; and what its definitions fill in."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import yaml
from unit.gateway.rest.world import World

from sluice_cli.api import Api

DEFINITIONS = {
    one["spec"]["names"]["plural"]: one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for one in yaml.safe_load_all(
        (Path(__file__).resolve().parents[2] / "deploy/k8s/components/custom-resources/definitions.yaml").read_text()
    )
}


class OnLoop(httpx.BaseTransport):
    """To an application of a loop that runs in another thread."""

    def __init__(self, world: World, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = httpx.ASGITransport(world.app)
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        asynchronous = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read(), extensions=request.extensions
        )
        answer = await self._inner.handle_async_request(asynchronous)
        content = b"".join([chunk async for chunk in answer.aiter_raw()])
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


def api_of(world: World, loop: asyncio.AbstractEventLoop) -> Api:
    """To be called from other threads than the loop's, which is that of the gateway."""
    return Api("http://gateway", transport=OnLoop(world, loop))


def filled(plural: str, **spec: Any) -> dict[str, Any]:
    """A spec as the API server keeps it."""
    found: dict[str, Any] = _filled(DEFINITIONS[plural], spec)
    return found


def _filled(schema: Any, value: Any) -> Any:
    for name, inner in schema.get("properties", {}).items():
        if "default" in inner:
            value = {name: inner["default"], **value}
        if name in value:
            value = {**value, name: _filled(inner, value[name])}
    return value
