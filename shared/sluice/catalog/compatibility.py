"""Whether messages may be changed from one form to another while readers and writers of both are about.

Readers are tolerant: they pass over fields they do not know, and a field that is left out has its default. So a change
is safe if each side still understands what the other writes:

- a field that is there stays, with its type; new fields are optional;
- an optional field does not become required, because what was written before lacks it, nor a required one optional,
  because those who read before rely on it;
- a default stays, because a field at its default is not written;
- types of messages, and values of enumerations, may come but not go. What comes, fields too, is sent once every reader
  knows it: one that does not keeps it as a dead letter, stops at an event, and drops a field.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sluice.catalog.schemas import Schema

_ABOUT = ("title", "description", "$comment", "examples")
_KEYWORDS = {
    *("type", "enum", "const", "default", "$ref", "anyOf", "items", "prefixItems", "minItems", "maxItems"),
    *("properties", "required", "additionalProperties", "format", "pattern", "minLength"),
    "contentEncoding",
}


def breaks(before: Mapping[str, Schema], now: Mapping[str, Schema]) -> list[str]:
    """What of the change would not be understood, each as a sentence; empty if everything would be."""
    found = []
    for name, schema in before.items():
        if name not in now:
            found.append(f"{name} is gone")
        else:
            found += _compare(name, schema, now[name])
    return found


def _compare(where: str, before: Schema, now: Schema) -> Iterator[str]:
    strange = {*before, *now} - _KEYWORDS - {*_ABOUT}
    if strange:
        yield f"{where} has {', '.join(sorted(strange))}, which no rule compares"
    yield from _compare_values(where, before, now)
    yield from _compare_fields(where, before, now)
    yield from _compare_alternatives(where, before, now)
    for keyword in ("items", "additionalProperties"):
        yield from _compare_parts(f"{where}, {keyword}", before.get(keyword), now.get(keyword))
    first, second = before.get("prefixItems", []), now.get("prefixItems", [])
    if len(first) != len(second):
        yield f"{where} had {len(first)} elements and has {len(second)}"
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        yield from _compare(f"{where}[{index}]", one, other)


def _compare_values(where: str, before: Schema, now: Schema) -> Iterator[str]:
    # A reference by the same name is enough: what it refers to is compared by itself.
    bounds = ("minItems", "maxItems", "minLength")
    for keyword in ("type", "$ref", "const", "format", "pattern", *bounds, "default", "contentEncoding"):
        if before.get(keyword, _compare_values) != now.get(keyword, _compare_values):
            yield f"{where}: {keyword} was {before.get(keyword, 'none')!r} and is {now.get(keyword, 'none')!r}"
    lost = [value for value in before.get("enum", ()) if value not in now.get("enum", ())]
    if lost:
        yield f"{where} lost {', '.join(map(repr, lost))}"
    if "enum" in now and "enum" not in before:
        yield f"{where} took any value and takes {now['enum']} only"


def _compare_fields(where: str, before: Schema, now: Schema) -> Iterator[str]:
    had, has = before.get("properties", {}), now.get("properties", {})
    needed, needs = set(before.get("required", ())), set(now.get("required", ()))
    for field in had:
        if field not in has:
            yield f"{where}.{field} is gone"
        else:
            yield from _compare(f"{where}.{field}", had[field], has[field])
    yield from (f"{where}.{field} has become required" for field in sorted(needs - needed))
    yield from (f"{where}.{field} need not be there any more" for field in sorted(needed - needs) if field in has)


def _compare_alternatives(where: str, before: Schema, now: Schema) -> Iterator[str]:
    """Alternatives may come, but one that was there stays as it was."""
    if ("anyOf" in before) != ("anyOf" in now):
        yield f"{where} was {_type_of(before)} and is {_type_of(now)}"
        return
    for one in before.get("anyOf", ()):
        if not any(not list(_compare(where, one, other)) for other in now["anyOf"]):
            yield f"{where} is no longer {_type_of(one)}"


def _compare_parts(where: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        yield from _compare(where, before, now)
    elif before != now:
        yield f"{where} was {before!r} and is {now!r}"


def _type_of(schema: Schema) -> str:
    if "anyOf" in schema:
        return "one of " + ", ".join(_type_of(part) for part in schema["anyOf"])
    return str(schema.get("$ref") or schema.get("type") or schema.get("enum") or schema)
