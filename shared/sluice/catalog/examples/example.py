"""What an example is: a record as it stands in its topic, made by the code that makes real ones."""

from typing import Any

import msgspec

from sluice.kafka.headers import JSON, MESSAGE_PACK, Headers, cloud_event_headers

UNKNOWN_FIELD = {"unheardOf": {"since": "a later version"}}
UNKNOWN_TYPE = "UnheardOf"


class Example(msgspec.Struct, frozen=True):
    """A record: its topic, its key, its headers in order, its value."""

    topic: str
    key: str
    headers: Headers
    value: bytes

    @property
    def type(self) -> str:
        """What the record says it is, `ce_type`."""
        return self.header("ce_type")

    def header(self, name: str) -> str:
        """A header's text. Raises KeyError if the record has no such header."""
        value = dict(self.headers)[name]
        return value.decode() if isinstance(value, bytes) else str(value)

    def json(self) -> Any:
        """The value, decoded; bytes in it as base64. Raises msgspec.DecodeError for a dead letter that is none."""
        if self.header("content-type") == MESSAGE_PACK:
            return msgspec.to_builtins(msgspec.msgpack.decode(self.value))
        return msgspec.json.decode(self.value)


def example(
    topic: str, key: str, kind: str, id: str, source: str, at: int, value: bytes, content_type: str = JSON
) -> Example:
    """`at` in epoch ms, `source` is service/instance."""
    return Example(topic, key, cloud_event_headers(kind, id, source, at, key, content_type), value)


def with_unknown_field(known: Example) -> Example:
    """The same as a later version might write it: an unknown field in each part of the value."""
    value = known.json()
    for part in _parts(value):
        part.update(UNKNOWN_FIELD)
    return msgspec.structs.replace(known, value=msgspec.json.encode(value))


def of_unknown_type(known: Example) -> Example:
    """The same, but of an unknown type. Raises ValueError where the value itself names no type."""
    value = known.json()
    typed = [part for part in _parts(value) if "type" in part]
    if not typed:
        raise ValueError(f"{known.type} does not name its type in its value")
    typed[0]["type"] = UNKNOWN_TYPE
    headers: Headers = [(name, UNKNOWN_TYPE if name == "ce_type" else text) for name, text in known.headers]
    return msgspec.structs.replace(known, headers=headers, value=msgspec.json.encode(value))


def _parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a message whose members are fields: the envelope and what it holds."""
    entries = value.get("entries", ())
    inner = [value.get("command"), value.get("policy"), value.get("sample"), *entries]
    inner += [part for entry in entries for part in (*entry.get("events", ()), entry.get("reply"), entry.get("source"))]
    return [value, *(part for part in inner if isinstance(part, dict))]
