"""What may be changed about a message, and what may not."""

from copy import deepcopy
from typing import Any

import pytest

from sluice.catalog.compatibility import breaks
from sluice.catalog.schemas import Schema, components

Path = tuple[str | int, ...]

TODAY = components()


def changed(*changes: tuple[Path, Any]) -> dict[str, Schema]:
    """The messages of today with other values at some places; None takes away what is there."""
    named = deepcopy(TODAY)
    for path, value in changes:
        part: Any = named
        for name in path[:-1]:
            part = part[name]
        if value is None:
            del part[path[-1]]
        else:
            part[path[-1]] = value
    return named


def required(name: str, *fields: str) -> tuple[Path, list[str]]:
    return (name, "required"), [*TODAY[name]["required"], *fields]


STREAM_SCALED: Path = ("StreamScaled", "properties")
SEGMENT = TODAY["Segment"]["prefixItems"]

BREAKING = {
    "a message goes": ([(("PingTransaction",), None)], "PingTransaction is gone"),
    "a field goes": ([((*STREAM_SCALED, "sealed_sizes"), None)], "sealed_sizes is gone"),
    "an optional field goes": ([(("TransactionCommitting", "properties", "writer"), None)], "writer is gone"),
    "a field becomes required": ([required("StreamSealStarted", "at")], "at has become required"),
    "a new field is required": (
        [((*STREAM_SCALED, "new"), {"type": "string"}), required("StreamScaled", "new")],
        "new has become required",
    ),
    "a field may be left out": ([(("Request", "required"), ["id", "at", "command"])], "by need not be there"),
    "another type": ([(("Heartbeat", "properties", "service"), {"type": "integer"})], "type was 'string'"),
    "another type of values": (
        [((*STREAM_SCALED, "sealed_sizes", "additionalProperties"), {"type": "string"})],
        "additionalProperties: type was 'integer'",
    ),
    "another thing": (
        [(("StreamScaleStarted", "properties", "replacement", "$ref"), "#/Segment")],
        "$ref was '#/Replacement'",
    ),
    "null is no longer taken": (
        [(("StreamConfig", "properties", "retention"), {"$ref": "#/RetentionPolicy"})],
        "StreamConfig.retention was one of",
    ),
    "an alternative goes": (
        [(("Request", "properties", "command", "anyOf"), [{"$ref": "#/CreateStream"}])],
        "is no longer #/CreateTable",
    ),
    "another default": (
        [(("ReaderGroupConfig", "properties", "refresh_ms", "default"), 5000)],
        "default was 3000 and is 5000",
    ),
    "a value goes": ([(("ScaleType", "enum"), ["FIXED_NUM_SEGMENTS"])], "lost 'BY_RATE"),
    "only some values": ([(("Reply", "properties", "status", "enum"), ["SUCCESS"])], "took any value"),
    "a longer tuple": ([(("Segment", "prefixItems"), [*SEGMENT, {"type": "string"}])], "had 3 elements and has 4"),
    "an unforeseen keyword": ([(("Reply", "not"), {"type": "null"})], "no rule compares"),
}


@pytest.mark.parametrize(("changes", "says"), BREAKING.values(), ids=BREAKING.keys())
def test_that_would_not_be_understood(changes: list[tuple[Path, Any]], says: str) -> None:
    found = breaks(TODAY, changed(*changes))
    assert found
    assert any(says in sentence for sentence in found), found


ALLOWED = {
    "nothing": [],
    "a new message": [(("StreamMirrored",), {"type": "object", "properties": {}, "required": []})],
    "a new field that may be left out": [((*STREAM_SCALED, "note"), {"type": "string", "default": ""})],
    "another value": [(("DecisionKind", "enum"), ["scale", "retention", "mirror"])],
    "another alternative": [
        (("StreamConfig", "properties", "retention", "anyOf"), [
            {"$ref": "#/RetentionPolicy"}, {"$ref": "#/TableConfig"}, {"type": "null"},
        ])
    ],
    "other words": [(("Reply", "description"), "Something else.")],
}  # fmt: skip


@pytest.mark.parametrize("changes", ALLOWED.values(), ids=ALLOWED.keys())
def test_that_is_understood(changes: list[tuple[Path, Any]]) -> None:
    assert breaks(TODAY, changed(*changes)) == []
