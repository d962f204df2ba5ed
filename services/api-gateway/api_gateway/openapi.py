"""The description of what is served, at /openapi.json, complete enough to generate clients from.

FastAPI describes what its routes say; added here is what is true of all of them: what a refusal looks like, what the
guard before them refuses, and that nothing is ever refused with 422.
"""

import asyncio
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from api_gateway.console.page_files import SAFE_HEADERS, PageFile, file_answer, file_of
from api_gateway.edge.rest.boundary import PROBLEM_TYPE, Problem
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.rules import Rule
from api_gateway.settings import Serves

_ABOUT = """\
The interfaces of Sluice, a controller of Pravega, over HTTP.

`/v1`, `/ping` and `/prometheus` are the admin REST API of Pravega's own controller: refusals have no body.
`/sluice/v1` is Sluice's own: refusals are problems of RFC 9457, lists come in pages, and what changes something is
answered with the header `Sluice-Request`, the id of the request in topics and journal.
"""

_FILES = "docs-files"
_SCRIPT, _STYLE, _ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"

TAGS = (
    ("scopes", "Scopes, in which everything has its name."),
    ("streams", "Streams: configuration, state and what is being done with them."),
    ("segments", "Segments of streams, and scaling by hand."),
    ("decisions", "Why streams were scaled and truncated, and what another policy would have done."),
    ("transactions", "Transactions of a stream."),
    ("reader groups", "Reader groups."),
    ("key-value tables", "Key-value tables."),
    ("workflows", "Long operations that are under way."),
    ("cluster", "Segment stores and our own services."),
    ("dead letters", "Records that could not be handled."),
    ("journal", "What happened."),
    ("requests", "What became of requests."),
    ("Pravega", "The admin REST API of Pravega."),
    ("Pravega health", "Health as Pravega reports it."),
)


PATHS = {
    "documentation": "/docs",
    "openapi": "/openapi.json",
    "sluice": "/sluice/v1",
    "pravega": "/v1",
    "alive": "/livez",
    "ready": "/readyz",
    "metrics": "/metrics",
    "page": "/ui/",
}
"""What is served, for a caller who has the address alone."""


def describe(app: FastAPI, rules: Mapping[str, Rule | None], serves: Serves, *, has_page: bool) -> None:
    """Have the application describe itself: at /openapi.json for programs, at /docs for users; at / where all that is.

    `rules` are those of its routes, by method and path. It takes a second to put together, which a thread does at the
    first request.
    """

    has = {"pravega": serves.pravega, "sluice": serves.console, "page": has_page}
    paths = {name: path for name, path in PATHS.items() if has.get(name, True)}

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _description(app, rules)
        return app.openapi_schema

    async def index(_request: Request) -> Response:
        return JSONResponse({"name": app.title, "version": app.version, "paths": paths})

    async def for_programs(_request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(app.openapi))

    async def for_people(_request: Request) -> Response:
        page = get_swagger_ui_html(
            openapi_url="openapi.json",
            title=app.title,
            swagger_js_url=f"{_FILES}/{_SCRIPT}",
            swagger_css_url=f"{_FILES}/{_STYLE}",
            swagger_favicon_url=f"{_FILES}/{_ICON}",
        )
        page.headers.update({**SAFE_HEADERS, "Content-Security-Policy": "frame-ancestors 'none'"})
        return page

    app.openapi = described  # type: ignore[method-assign]
    app.router.routes += [
        Route("/", index),
        Route("/openapi.json", for_programs),
        Route("/docs", for_people),
        Mount(f"/{_FILES}", routes=[Route("/{file}", _file_of_page)]),
    ]


@cache
def _files_of_page() -> dict[str, PageFile]:
    """What the page at /docs loads, by name: it works where there is no internet. Blocks for a moment."""
    folder = files("fastapi_offline") / "static"
    return {name: file_of(name, (folder / name).read_bytes()) for name in (_SCRIPT, _STYLE, _ICON)}


async def _file_of_page(request: Request) -> Response:
    found = (await asyncio.to_thread(_files_of_page)).get(request.path_params["file"])
    if found is None:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    return file_answer(request, found, {**SAFE_HEADERS, "Cache-Control": "max-age=3600"})


_REFUSED = {
    "401": "Where callers are asked who they are: there are no credentials, or wrong ones.",
    "403": "The caller may not do this.",
    "429": "A user or a scope has more calls than its quota. Try again later.",
}


_SCHEMES = {"basic": {"type": "http", "scheme": "basic"}, "bearer": {"type": "http", "scheme": "bearer"}}
"""How callers say who they are, where they are asked."""


def _refused(path: str) -> dict[str, Any]:
    """What the guard before a call refuses, in the form of the interface."""
    problem = {"content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {
        status: {"description": why, **(problem if path.startswith(PATHS["sluice"]) else {})}
        for status, why in _REFUSED.items()
    }


def _description(app: FastAPI, rules: Mapping[str, Rule | None]) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    used = {tag for operations in schema["paths"].values() for one in operations.values() for tag in one["tags"]}
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS if name in used]
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    guard: Guard | None = app.state.guard
    wants_credentials = guard is not None and guard.wants_credentials
    if wants_credentials:
        schema["components"]["securitySchemes"] = _SCHEMES
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)
            if (rule := rules[f"{method.upper()} {path}"]) is not None:
                operation["responses"] |= _refused(path)
                if wants_credentials:
                    # An empty one at the end says that credentials may be left out.
                    operation["security"] = [{name: []} for name in _SCHEMES] + [{}] * rule.is_for_everyone
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    return schema
