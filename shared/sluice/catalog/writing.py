"""The files that are made from the catalogue: what they hold, writing them, and the frozen form of the messages."""

import json
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sluice.catalog import examples
from sluice.catalog.asyncapi import document
from sluice.catalog.compatibility import breaks
from sluice.catalog.examples import Example
from sluice.catalog.pages import refreshed
from sluice.catalog.schemas import Schema, components, files

ASYNCAPI = "asyncapi.yaml"
SCHEMAS = "schemas"
PAGES = ("topics.md", "kafka-access.md")

FROZEN_SCHEMAS = "schemas.json"
FROZEN_EXAMPLES = "examples.json"

_MADE = "# Made from the code by `python -m sluice.catalog docs`; not to be edited.\n"


class IncompatibleError(Exception):
    """The messages have changed so that older and newer services would not understand each other."""


class _Frozen(msgspec.Struct, frozen=True):
    """An example as it is stored: headers as text, the value in Base64."""

    topic: str
    key: str
    headers: tuple[tuple[str, str], ...]
    value: bytes


class _Plain(yaml.SafeDumper):
    """Without anchors: what is alike is written again, so that each part can be read by itself."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the interface of the library
        return True


def contents(folder: Path) -> dict[Path, str]:
    """The text of each file of the documentation in `folder` that is made from the code."""
    text = yaml.dump(document(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    made = {folder / ASYNCAPI: _MADE + text}
    made |= {folder / SCHEMAS / path: _json(schema) for path, schema in files().items()}
    pages = (folder / name for name in PAGES)
    return made | {page: refreshed(page.read_text()) for page in pages if page.exists()}


def stray(folder: Path) -> list[Path]:
    """Schemas of messages that are no more."""
    made = {folder / SCHEMAS / path for path in files()}
    return sorted(path for path in (folder / SCHEMAS).rglob("*.json") if path not in made)


def write(folder: Path) -> list[Path]:
    """Write what has changed and remove what is no more; return which files those are."""
    changed = []
    for path, text in contents(folder).items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(path)
    for path in stray(folder):
        path.unlink()
        changed.append(path)
    return changed


def frozen_schemas(folder: Path) -> dict[str, Schema]:
    """The messages as they were frozen, by the name of their type."""
    return msgspec.json.decode((folder / FROZEN_SCHEMAS).read_bytes(), type=dict[str, Schema])


def frozen_examples(folder: Path) -> list[Example]:
    """Records as they were written then."""
    frozen = msgspec.json.decode((folder / FROZEN_EXAMPLES).read_bytes(), type=list[_Frozen])
    return [Example(e.topic, e.key, [*e.headers], e.value) for e in frozen]


def freeze(folder: Path) -> list[Path]:
    """Make the present messages the ones that later ones are held against; raises IncompatibleError."""
    schemas, records = folder / FROZEN_SCHEMAS, folder / FROZEN_EXAMPLES
    if schemas.exists():
        broken = breaks(frozen_schemas(folder), components())
        if broken:
            raise IncompatibleError("\n".join(broken))
    folder.mkdir(parents=True, exist_ok=True)
    schemas.write_text(_json(_bare(components())))
    lines = [msgspec.json.encode(_frozen(example)).decode() for example in examples.all_examples()]
    records.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return [schemas, records]


def _frozen(example: Example) -> _Frozen:
    headers = tuple((name, example.header(name)) for name, _ in example.headers)
    return _Frozen(example.topic, example.key, headers, example.value)


def _bare(schema: Any) -> Any:
    """Without descriptions: those may change."""
    if isinstance(schema, dict):
        return {
            key: _bare(value) for key, value in schema.items() if not (key == "description" and isinstance(value, str))
        }
    return [_bare(part) for part in schema] if isinstance(schema, list) else schema


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
