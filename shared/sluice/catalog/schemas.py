"""The messages as JSON Schema 2020-12, made from the types that encode and decode them.

One schema per type. What a type refers to stands in a schema of its own; the files refer to each other by relative
path, so a folder of them can be used as it is.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

import msgspec

from sluice.domain.commands import Command
from sluice.domain.events import Event
from sluice.domain.model import JournalRecord
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.snapshots import SnapshotConfirmation, SnapshotManifest
from sluice.insight.statistics import StatisticsProgress, StreamStatistics, WindowStatistics
from sluice.kafka.dead_letters import DeadLetterSettled
from sluice.kafka.requests import Request
from sluice.policies.memory import StreamMemory

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

COMMANDS: tuple[type, ...] = get_args(Command)
EVENTS: tuple[type, ...] = get_args(Event)
REPORTS: tuple[type, ...] = (
    ScaleReport,
    RetentionReport,
    StreamStatistics,
    StatisticsProgress,
    WindowStatistics,
    SnapshotManifest,
    SnapshotConfirmation,
    StreamMemory,
)
ENVELOPES: tuple[type, ...] = (Request, JournalRecord)
SETTLEMENTS: tuple[type, ...] = (DeadLetterSettled,)

_NAMED = "#/"


def headers_schema() -> Schema:
    """The headers of every record: CloudEvents attributes in the binary mode of its Kafka binding."""
    return {
        "title": "Headers",
        "description": "CloudEvents 1.0 in the binary content mode of the Kafka protocol binding; values are UTF-8.",
        "type": "object",
        "properties": {
            "ce_specversion": {"type": "string", "enum": ["1.0"]},
            "ce_type": {"type": "string", "minLength": 1, "description": "What the record says or asks for."},
            "ce_id": {
                "type": "string",
                "minLength": 1,
                "description": "The id in the value: of a record, a report, or a request wherever it is passed on.",
            },
            "ce_source": {"type": "string", "format": "uri-reference", "description": "service/instance"},
            "ce_time": {"type": "string", "format": "date-time", "description": "The sender's time."},
            "ce_subject": {"type": "string", "minLength": 1, "description": "The key; left out if that is empty."},
            "content-type": {"type": "string", "minLength": 1},
        },
        "required": ["ce_specversion", "ce_type", "ce_id", "ce_source", "ce_time", "content-type"],
    }


def dead_letter_headers_schema() -> Schema:
    """What a dead letter has beside the headers of the record it was."""
    return {
        "title": "DeadLetterHeaders",
        "description": "Where a record stood that could not be handled, and why; beside its own attributes.",
        "type": "object",
        "properties": {
            "sluice_reason": {"type": "string"},
            "sluice_service": {"type": "string", "description": "Who gave it up."},
            "sluice_topic": {"type": "string"},
            "sluice_partition": {"type": "string", "pattern": "^[0-9]+$"},
            "sluice_offset": {"type": "string", "pattern": "^[0-9]+$"},
            "sluice_segment": {"type": "string", "description": "Instead of a topic: the segment it was read from."},
        },
        "required": ["sluice_reason", "sluice_service", "sluice_offset"],
        "anyOf": [{"required": ["sluice_topic", "sluice_partition"]}, {"required": ["sluice_segment"]}],
    }


def components() -> dict[str, Schema]:
    """The schemas of all messages and of what they are made of, by the name of the type; `$ref` is "#/" and a name."""
    types: list[Any] = [*ENVELOPES, *COMMANDS, *EVENTS, *REPORTS, *SETTLEMENTS]
    _, found = msgspec.json.schema_components(types, ref_template=_NAMED + "{name}")
    schemas = {
        _short(name): map_refs(_tidied(schema), lambda of: _NAMED + _short(of)) for name, schema in found.items()
    }
    named = dict(sorted(schemas.items()))
    return {**named, "Headers": headers_schema(), "DeadLetterHeaders": dead_letter_headers_schema()}


def files() -> dict[str, Schema]:
    """The schemas by the path of their file in `docs/schemas`."""
    named = components()
    paths = {name: _path(name) for name in named}
    written = {}
    for name, schema in named.items():
        refer = _relative(PurePosixPath(paths[name]), paths)
        written[paths[name]] = {"$schema": DIALECT, **map_refs(schema, refer)}
    return written


def map_refs(schema: Any, refer: Callable[[str], str]) -> Any:
    """The schema with `refer(name)` for each reference to a component."""
    if isinstance(schema, Mapping):
        return {
            key: refer(value.removeprefix(_NAMED)) if key == "$ref" else map_refs(value, refer)
            for key, value in schema.items()
        }
    if isinstance(schema, list):
        return [map_refs(part, refer) for part in schema]
    return schema


def draft_07(schema: Any) -> Any:
    """The same for readers of Draft 7, which AsyncAPI builds on: tuples are described differently there."""
    if isinstance(schema, Mapping):
        adapted = {key: draft_07(value) for key, value in schema.items()}
        if "prefixItems" in adapted:
            rest = adapted.pop("items", None)
            adapted["items"] = adapted.pop("prefixItems")
            if rest is not None:
                adapted["additionalItems"] = rest
        return adapted
    return [draft_07(part) for part in schema] if isinstance(schema, list) else schema


def summary(kind: type) -> str:
    """The first sentence of a type's description, "" if it says nothing beyond its name."""
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    return "" if text.startswith(kind.__name__ + "(") else text


def _short(name: str) -> str:
    """The name of a generic type without its parameters: there is one of each."""
    return name.partition("_sluice.")[0]


def _tidied(schema: Any) -> Any:
    """Without the line breaks of docstrings, and without `discriminator`, which JSON Schema does not know."""
    if isinstance(schema, Mapping):
        retained = {key: _tidied(value) for key, value in schema.items() if key != "discriminator"}
        if isinstance(retained.get("description"), str):
            retained["description"] = " ".join(retained["description"].split())
        if isinstance(retained.get("title"), str):
            retained["title"] = retained["title"].partition("[")[0]
        return retained
    return [_tidied(part) for part in schema] if isinstance(schema, list | tuple) else schema


_FOLDERS: tuple[tuple[str, Iterable[type]], ...] = (
    ("commands", COMMANDS),
    ("events", EVENTS),
    ("reports", REPORTS),
    ("", (*ENVELOPES, *SETTLEMENTS)),
)


def _path(name: str) -> str:
    if name in ("Headers", "DeadLetterHeaders"):
        return f"{name}.json"
    folder = next((folder for folder, kinds in _FOLDERS if name in {kind.__name__ for kind in kinds}), "types")
    return f"{folder}/{name}.json" if folder else f"{name}.json"


def _relative(file: PurePosixPath, paths: Mapping[str, str]) -> Callable[[str], str]:
    def refer(name: str) -> str:
        up = "../" * (len(file.parts) - 1)
        return up + paths[name]

    return refer
