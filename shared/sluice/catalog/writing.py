"""The files that are made from the catalogue: what they hold, and writing them."""

import json
from pathlib import Path
from typing import Any

import yaml

from sluice.catalog.asyncapi import document
from sluice.catalog.pages import refreshed
from sluice.catalog.schemas import files

ASYNCAPI = "asyncapi.yaml"
SCHEMAS = "schemas"
PAGES = ("topics.md", "kafka-access.md")

_MADE = "# Made from the code by `python -m sluice.catalog docs`; not to be edited.\n"


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


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
