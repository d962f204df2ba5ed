"""TypeScript's names for what the gateway's interface answers, from its own description.

An answer leaves out what is null, so what may be null may be missing here, and everything else is there.
"""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from api_gateway.app import build_app
from api_gateway.console.rest import PREFIX

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def rendered() -> str:
    """A module of declarations: a type for each schema of the description, by its name."""
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    described = build_app(process, connections=1).openapi()
    schemas = sorted(described["components"]["schemas"].items())
    types = [f"export type {_name(name)} = {_type(schema)};\n" for name, schema in schemas]
    return "".join([*types, f"export interface Answers {{{'; '.join(_answers(described['paths']))}}}\n"])


def _answers(paths: dict[str, Any]) -> Iterator[str]:
    """What each GET of our own interface answers whose path has no name in it, by the path behind `/sluice/v1/`."""
    for path, operations in paths.items():
        if path.startswith(PREFIX) and "{" not in path and "get" in operations:
            for media in operations["get"]["responses"]["200"].get("content", {}).values():
                yield f"{json.dumps(path.removeprefix(PREFIX + '/'))}: {_type(media['schema'])}"


def _name(schema: str) -> str:
    return schema.replace("-", "_")


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            return " | ".join(_type(one) for one in schema[alternatives] if one.get("type") != "null")
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
        return f"Array<{_type(schema.get('items', {}))}>"
    if kind == "object":
        return _object(schema)
    return _PLAIN.get(kind, "any") if isinstance(kind, str) else "any"


def _object(schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties", {})
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'any'}>"
    fields = schema["properties"].items()
    return f"{{{'; '.join(f'{json.dumps(name)}{_missing(one)}: {_type(one)}' for name, one in fields)}}}"


def _missing(schema: dict[str, Any]) -> str:
    return "?" if any(one.get("type") == "null" for one in schema.get("anyOf", ())) else ""
