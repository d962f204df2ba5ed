"""Telemetry of HTTP requests: one observation for each, under its route's template, and its caller's trace."""

import asyncio
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from unit.telemetry.spans import CALLER, TRACE, Spans, trace_of

from sluice.telemetry import tracing
from sluice.telemetry.http import HttpTelemetry


async def greet(request: Request) -> Response:
    tracing.child("inside").end()
    return PlainTextResponse(request.path_params["name"])


async def fail(_request: Request) -> Response:
    raise ValueError("a defect")


async def hang(_request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def ready(_request: Request) -> Response:
    return PlainTextResponse("ready")


ROUTES = [Route("/greet/{name}", greet), Route("/fail", fail), Route("/hang", hang), Route("/readyz", ready)]


def client() -> httpx.AsyncClient:
    app = Starlette(routes=ROUTES)
    app.add_middleware(HttpTelemetry)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://test")


def count(method: str, path: str, status: str) -> float:
    labels = {"method": method, "path": path, "status": status}
    return REGISTRY.get_sample_value("sluice_http_seconds_count", labels) or 0.0


@pytest.mark.parametrize(
    ("method", "sent", "path", "status"),
    [
        ("GET", "/greet/anna", "/greet/{name}", "200"),
        ("POST", "/greet/anna", "/greet/{name}", "405"),
        ("GET", "/no/such/route", "unmatched", "404"),
        ("GET", "/fail", "/fail", "500"),
    ],
)
async def test_each_request_is_counted_under_its_route(method: str, sent: str, path: str, status: str) -> None:
    before = count(method, path, status)
    async with client() as http:
        assert (await http.request(method, sent)).status_code == int(status)
    assert count(method, path, status) == before + 1


async def test_an_unknown_method_makes_no_label_of_its_own() -> None:
    before = count("other", "unmatched", "404")
    async with client() as http:
        await http.request("BREW", "/coffee")
    assert count("other", "unmatched", "404") == before + 1


async def test_a_cancelled_request_is_counted_as_such() -> None:
    before = count("GET", "/hang", "CANCELLED")
    app = HttpTelemetry(Starlette(routes=ROUTES))
    scope = {"type": "http", "method": "GET", "path": "/hang", "headers": [], "query_string": b"", "root_path": ""}
    began = asyncio.Event()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Any) -> None:
        raise AssertionError("nothing is answered")

    async def ask() -> None:
        began.set()
        await app(scope, receive, send)

    task = asyncio.get_running_loop().create_task(ask())
    await began.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled() and count("GET", "/hang", "CANCELLED") == before + 1


async def test_what_is_no_http_passes_untouched() -> None:
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    await HttpTelemetry(app)({"type": "lifespan"}, nothing, nothing)
    assert seen == ["lifespan"]


async def test_a_request_goes_on_with_the_trace_of_its_caller(spans: Spans) -> None:
    async with client() as http:
        await http.get("/greet/anna", headers=CALLER)
        await http.get("/fail")
        await http.get("/readyz", headers=CALLER)
    assert len(spans.ended()) == 3, "a probe has no span"
    span = spans.ended()["GET /greet/{name}"]
    assert trace_of(span) == TRACE and not span.status.description
    assert spans.parent_of("inside") == "GET /greet/{name}"
    assert (span.attributes or {})["http.route"] == "/greet/{name}"
    assert "500" in (spans.ended()["GET /fail"].status.description or "")
