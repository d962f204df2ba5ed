"""What a service may write, as it is published: the JSON schemas of docs/schemas and the declaration of the topics."""

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
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
    STATISTICS,
    STATISTICS_WINDOWS,
    TOPICS,
    topic_of,
)
from sluice_local.home import CLONE

FOLDER = CLONE / "docs" / "schemas"

_TOPICS = {topic.name: topic for topic in TOPICS}
_VALUES = {
    JOURNAL.name: "Record.json",
    SCALE.name: "reports/ScaleReport.json",
    RETENTION.name: "reports/RetentionReport.json",
    **dict.fromkeys((SCALE_MEMORY.name, RETENTION_MEMORY.name), "reports/StreamMemory.json"),
}
_BASE = "file:///schemas/"


def check(message: Message, source: str, partitions: int) -> None:
    """Raise AssertionError unless the record is one that `source` (service/instance) may write, where it stands."""
    topic, key, value = _TOPICS[message.topic() or ""], (message.key() or b"").decode(), message.value() or b""
    where = f"{topic.name}/{message.partition()}@{message.offset()}: {value!r}"
    # The first header of a name counts.
    headers = {name: _text(text) for name, text in reversed(message.headers() or [])}
    service = source.partition("/")[0]
    assert service in topic.written_by, f"written by {source}, not by {topic.written_by}: {where}"
    if topic is not STATISTICS_WINDOWS:
        # What stands there is the change log of a table: in the partition of what changed it.
        assert message.partition() == partition_of(key, topic.partitions or partitions), f"not its key's: {where}"
    if topic.name == DEAD_LETTERS.name:
        _fits("DeadLetterHeaders.json", headers, where)
        assert headers["sluice_service"].partition("/")[0] == service, f"given up by another than {source}: {where}"
        return
    _fits("Headers.json", headers, where)
    if topic in (SCALE_MEMORY, RETENTION_MEMORY) and not value:
        assert headers["ce_source"] == source and headers["ce_subject"] == key, f"{headers}: {where}"
        return
    body = msgspec.json.decode(value)
    if topic in (STATISTICS, STATISTICS_WINDOWS):
        _fits(f"reports/{headers['ce_type']}.json", body, where)
    else:
        _fits(_VALUES.get(topic.name, "Request.json"), body, where)
    assert headers["ce_source"] == body["by"] == source, f"from {headers['ce_source']}, {body['by']}: {where}"
    assert headers["ce_id"] == body["id"] and headers.get("ce_subject", "") == key, f"{headers}: {where}"
    if "command" in body:
        assert headers["ce_type"] == body["command"]["type"], f"headers name another type: {where}"
        command = decode_request(value).command
        allowed = {topic_of(command).name} | ({COMMIT.name} if isinstance(command, c.CheckLease) else set())
        assert topic.name in allowed and command.key == key, f"in a topic or under a key of others: {where}"


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _fits(schema: str, value: Any, where: str) -> None:
    for error in _validator(schema).iter_errors(value):
        raise AssertionError(f"{schema}: {error.json_path}: {error.message}: {where}")


@cache
def _validator(path: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": _BASE + path}, registry=_registry())


@cache
def _registry() -> Registry[Any]:
    """All published schemas under their paths, with nothing beside what they name."""
    found = {p.relative_to(FOLDER).as_posix(): msgspec.json.decode(p.read_bytes()) for p in FOLDER.rglob("*.json")}
    assert found, f"there are no schemas in {FOLDER.relative_to(CLONE)}"
    # Headers are a map that others may add to: those of a dead letter stand beside the ones that it had.
    closed = {path: schema if path.endswith("Headers.json") else _closed(schema) for path, schema in found.items()}
    resources = ((_BASE + path, DRAFT202012.create_resource(schema)) for path, schema in closed.items())
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
