"""The AsyncAPI 3.0 document: every topic as a channel, who sends and receives there, every message.

It is made from the declaration of the topics and from the types of the messages. An operation is named for the service
whose view it is described from.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import Any

from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.schemas import (
    COMMANDS,
    EVENTS,
    REPORTS,
    SETTLEMENTS,
    Schema,
    components,
    draft_07,
    map_refs,
    summary,
)
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.snapshots import SnapshotConfirmation, SnapshotManifest
from sluice.insight.statistics import StatisticsProgress, StreamStatistics, WindowStatistics
from sluice.kafka.dead_letters import DeadLetterSettled
from sluice.kafka.topics import (
    DEAD_LETTERS,
    JOURNAL,
    RETENTION,
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
    SNAPSHOT_CHUNKS,
    SNAPSHOTS,
    STATISTICS,
    STATISTICS_WINDOWS,
    TOPICS,
    Topic,
    topics_of,
)
from sluice.policies.memory import StreamMemory
from sluice.settings import ServiceSettings

_KAFKA = "0.5.0"
"""The version of the Kafka binding."""

Document = dict[str, Any]


def document() -> Document:
    """The whole document, ready to be written as YAML or JSON."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Sluice",
            "version": version("sluice-streams"),
            "description": (
                "What the services of Sluice send each other over Kafka. Values are JSON, headers carry the attributes "
                "of CloudEvents 1.0 in binary mode, keys are hashed with murmur2, so that a key has the same partition "
                "in every keyed topic."
            ),
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": "{bootstrap}",
                "protocol": "kafka",
                "description": "Any broker of the deployment.",
                "variables": {"bootstrap": {"default": "127.0.0.1:9092", "description": "SLUICE_KAFKA_BOOTSTRAP"}},
            }
        },
        "channels": {topic.name: _channel(topic) for topic in TOPICS},
        "operations": {name: operation for topic in TOPICS for name, operation in _operations(topic)},
        "components": {"messages": _messages(), "schemas": _schemas()},
    }


def messages_of(topic: Topic) -> list[str]:
    """The names of the messages that a topic holds."""
    if topic is JOURNAL:
        return ["JournalRecord"]
    if topic is DEAD_LETTERS:
        return ["DeadLetter", DeadLetterSettled.__name__]
    if topic is SNAPSHOT_CHUNKS:
        return ["SnapshotChunk"]
    if (reports := _REPORTS.get(topic.name)) is not None:
        return [report.__name__ for report in reports]
    return [command.__name__ for command in COMMANDS if topic in topics_of(command)]


_REPORTS: dict[str, tuple[type, ...]] = {
    SCALE.name: (ScaleReport,),
    RETENTION.name: (RetentionReport,),
    SCALE_MEMORY.name: (StreamMemory,),
    RETENTION_MEMORY.name: (StreamMemory,),
    STATISTICS.name: (StreamStatistics, StatisticsProgress),
    STATISTICS_WINDOWS.name: (WindowStatistics, StatisticsProgress),
    SNAPSHOTS.name: (SnapshotManifest, SnapshotConfirmation),
}


def _channel(topic: Topic) -> Document:
    config = topic.config()
    return {
        "address": topic.name,
        "title": topic.holds,
        "description": f"{topic.holds[0].upper()}{topic.holds[1:]}. Key: {topic.key}. Kept: {kept(topic)}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages_of(topic)},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                # Where that is up to the deployment, as many as it has unless set otherwise.
                "partitions": topic.partitions or ServiceSettings.model_fields["partitions"].default,
                "topicConfiguration": {
                    **config,
                    "cleanup.policy": [topic.cleanup],
                    "retention.ms": topic.retention_ms,
                    "retention.bytes": int(config["retention.bytes"]),
                    "max.message.bytes": int(config["max.message.bytes"]),
                },
                "bindingVersion": _KAFKA,
            }
        },
    }


def kept(topic: Topic) -> str:
    """For how long a topic retains records, in words."""
    if topic.bound_by:
        return topic.bound_by
    days = topic.retention_ms // (24 * 3600 * 1000)
    return f"{days} days" if days != 1 else "1 day"


def _operations(topic: Topic) -> Iterable[tuple[str, Document]]:
    for action, verb, services in (("send", "writes", topic.written_by), ("receive", "reads", topic.read_by)):
        for service in services:
            yield (
                f"{service}.{action}.{topic.name}",
                {
                    "action": action,
                    "title": f"{service} {verb} {topic.name}",
                    "tags": [{"name": service}],
                    "channel": {"$ref": f"#/channels/{topic.name}"},
                    "messages": [{"$ref": f"#/channels/{topic.name}/messages/{name}"} for name in messages_of(topic)],
                },
            )


def _messages() -> Document:
    """By name: each command in its envelope, each report, the record of the journal, the dead letter."""
    found = examples.all_examples()
    messages: Document = {}
    for kind in COMMANDS:
        payload = {"allOf": [_ref("Request"), {"properties": {"command": _ref(kind.__name__)}}]}
        messages[kind.__name__] = _message(kind.__name__, summary(kind), payload, _first(found, kind.__name__))
    for kind in (*REPORTS, *SETTLEMENTS):
        messages[kind.__name__] = _message(
            kind.__name__, summary(kind), _ref(kind.__name__), _first(found, kind.__name__)
        )
    types = [kind.__name__ for kind in EVENTS]
    records = [example for example in found if example.topic == JOURNAL.name]
    shown = [next(example for example in records if example.type == name) for name in _SHOWN_RECORDS]
    messages["JournalRecord"] = {
        **_message(
            "JournalRecord",
            "A batch of entries: events that became true together, or a reply.",
            _ref("Record"),
            shown,
        ),
        "headers": _headers({"type": "string", "enum": [*types, "Refusal", "Hold"]}),
    }
    given_up = [example for example in found if "sluice_topic" in dict(example.headers)]
    messages["DeadLetter"] = {
        "name": "DeadLetter",
        "title": "DeadLetter",
        "summary": "A record that could not be handled, as it was, with the reason in its headers.",
        "contentType": "application/octet-stream",
        "headers": {"allOf": [_ref("Headers"), _ref("DeadLetterHeaders")]},
        "payload": {"description": "The value of the record, whatever it was."},
        "bindings": _key(DEAD_LETTERS),
        "examples": [_shown(example) for example in given_up],
    }
    messages["SnapshotChunk"] = {
        "name": "SnapshotChunk",
        "title": "SnapshotChunk",
        "summary": "A part of a partition's state: the snapshot's id, the number of the chunk, bytes.",
        "contentType": "application/x-msgpack",
        "headers": _headers({"type": "string", "enum": ["SnapshotChunk"]}),
        "payload": {"type": "array", "description": "MessagePack; the bytes, here as base64, are for Sluice alone."},
        "bindings": _key(SNAPSHOT_CHUNKS),
        "examples": [_shown(example) for example in found if example.type == "SnapshotChunk"],
    }
    return messages


_SHOWN_RECORDS = ("ScopeCreated", "StreamCreationStarted", "StreamScaleStarted", "TransactionCommitting", "Refusal")


def _first(found: list[Example], kind: str) -> list[Example]:
    return [next(example for example in found if example.type == kind)]


def _message(name: str, about: str, payload: Schema, shown: list[Example]) -> Document:
    (topic,) = [topic for topic in TOPICS if topic.name == shown[0].topic]
    return {
        "name": name,
        "title": name,
        **({"summary": about} if about else {}),
        "contentType": "application/json",
        "headers": _headers({"type": "string", "enum": [name]}),
        "payload": payload,
        "bindings": _key(topic),
        "examples": [_shown(example) for example in shown],
    }


def _headers(kind: Schema) -> Schema:
    return {"allOf": [_ref("Headers"), {"properties": {"ce_type": kind}}]}


def _key(topic: Topic) -> Document:
    return {"kafka": {"key": {"type": "string", "description": topic.key}, "bindingVersion": _KAFKA}}


def _shown(example: Example) -> Document:
    headers = {name: example.header(name) for name, _ in example.headers}
    return {"name": example.type, "headers": headers, "payload": example.json()}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


@cache
def _schemas() -> Document:
    return {
        name: draft_07(map_refs(schema, lambda of: f"#/components/schemas/{of}"))
        for name, schema in components().items()
    }
