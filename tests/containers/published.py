"""What a service may write, as it is published: the JSON schemas of docs/schemas and the declaration of the topics."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from confluent_kafka import Message
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from sluice.domain.transaction import commands as c
from sluice.engine.partition import partition_of
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import (
    COMMIT,
    DEAD_LETTERS,
    JOURNAL,
    RETENTION,
    SCALE,
    STATISTICS,
    STATISTICS_WINDOWS,
    TOPICS,
    topic_of,
)
from sluice_local.settings import CLONE

FOLDER = CLONE / "docs" / "schemas"

_TOPICS = {topic.name: topic for topic in TOPICS}
_VALUES = {
    JOURNAL.name: "Record.json",
    SCALE.name: "reports/ScaleReport.json",
    RETENTION.name: "reports/RetentionReport.json",
}
_BASE = "file:///schemas/"


class NotPublishedError(AssertionError):
    """A record is not what was published, or not by whom."""


def check(message: Message, source: str, partitions: int) -> None:
    """Raise NotPublishedError unless the record is one that `source` (service/instance) may write, where it stands."""
    topic = _TOPICS[message.topic() or ""]
    headers, key = headers_of(message), (message.key() or b"").decode()
    _holds(source.partition("/")[0] in topic.written_by, message, f"written by {source}, not by {topic.written_by}")
    if topic is not STATISTICS_WINDOWS:
        # What stands there is the change log of a table: in the partition of what changed it.
        is_in_place = message.partition() == partition_of(key, topic.partitions or partitions)
        _holds(is_in_place, message, "not its key's partition")
    if topic.name == DEAD_LETTERS.name:
        _fits("DeadLetterHeaders.json", headers, message)
        by = headers["sluice_service"]
        _holds(by.partition("/")[0] == source.partition("/")[0], message, f"given up by {by}, not by {source}")
        return
    _fits("Headers.json", headers, message)
    value = msgspec.json.decode(message.value() or b"")
    if topic in (STATISTICS, STATISTICS_WINDOWS):
        _fits(f"reports/{headers['ce_type']}.json", value, message)
    else:
        _fits(_VALUES.get(topic.name, "Request.json"), value, message)
    _holds(headers["ce_source"] == value["by"] == source, message, f"from {headers['ce_source']}, {value['by']}")
    _holds(headers["ce_id"] == value["id"] and headers.get("ce_subject", "") == key, message, "headers say otherwise")
    if "command" in value:
        _holds(headers["ce_type"] == value["command"]["type"], message, "headers name another type")
        command = decode_request(message.value() or b"").command
        places = {topic_of(command).name} | ({COMMIT.name} if isinstance(command, c.CheckLease) else set())
        _holds(
            topic.name in places and command.key == key, message, "in a topic or under a key where it does not belong"
        )


def headers_of(message: Message) -> dict[str, str]:
    """The headers as text; the first of a name counts."""
    found: dict[str, str] = {}
    for name, value in cast_pairs(message.headers()):
        found.setdefault(name, value.decode() if isinstance(value, bytes) else str(value))
    return found


def cast_pairs(headers: Any) -> list[tuple[str, bytes | str | None]]:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])


def _holds(condition: bool, message: Message, why: str) -> None:
    if not condition:
        raise NotPublishedError(f"{_place(message)}: {why}: {message.value()!r}")


def _fits(schema: str, value: Any, message: Message) -> None:
    for error in _validator(schema).iter_errors(value):
        raise NotPublishedError(f"{_place(message)}: {schema}: {error.json_path}: {error.message}")


def _place(message: Message) -> str:
    return f"{message.topic()}/{message.partition()}@{message.offset()}"


@cache
def _validator(path: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": _BASE + path}, registry=_registry())


@cache
def _registry() -> Registry[Any]:
    """All published schemas under their paths, with nothing beside what they name."""
    found = {p.relative_to(FOLDER).as_posix(): msgspec.json.decode(p.read_bytes()) for p in FOLDER.rglob("*.json")}
    if not found:
        raise NotPublishedError(f"there are no schemas in {FOLDER.relative_to(CLONE)}")
    # Headers are a map that others may add to: those of a dead letter stand beside the ones that it had.
    told = {path: schema if path.endswith("Headers.json") else _closed(schema) for path, schema in found.items()}
    resources = ((_BASE + path, DRAFT202012.create_resource(schema)) for path, schema in told.items())
    return Registry[Any]().with_resources(resources)


def _closed(schema: Any) -> Any:
    """The schema for what is written now: readers let pass what they do not know, but writers must not add to it."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
