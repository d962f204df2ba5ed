"""The AsyncAPI document: as the topics are declared, valid, and true of the examples it shows."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from support.documents import AGAIN, DOCS, ROOT

from sluice.catalog.asyncapi import document, messages_of
from sluice.catalog.schemas import COMMANDS, REPORTS
from sluice.kafka.topics import TOPICS, Topic

META_SCHEMA = ROOT / "tests" / "contract" / "asyncapi-3.0.0.json"
NAMES = [topic.name for topic in TOPICS]


@cache
def written() -> dict[str, Any]:
    # The loader in C where there is one: the other takes seconds.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load((DOCS / "asyncapi.yaml").read_text(), Loader=loader)
    return loaded


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_the_file_is_that_of_the_code() -> None:
    assert written() == document(), AGAIN


def test_it_is_valid() -> None:
    validator = Draft7Validator(json.loads(META_SCHEMA.read_text()))
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(written())] == []


def test_the_validator_would_notice() -> None:
    validator = Draft7Validator(json.loads(META_SCHEMA.read_text()))
    small = {"asyncapi": "3.0.0", "info": written()["info"]}
    assert list(validator.iter_errors(small)) == []
    operations = {"x": {"action": "shout", "channel": {"$ref": "#/channels/sluice.scale"}}}
    assert list(validator.iter_errors({**small, "operations": operations}))


def test_every_reference_leads_somewhere() -> None:
    found = set(references(written()))
    assert found
    for reference in found:
        part: Any = written()
        for name in reference.removeprefix("#/").split("/"):
            assert name in part, reference
            part = part[name]
        assert part, reference


def test_the_channels_are_the_topics() -> None:
    assert list(written()["channels"]) == NAMES


@pytest.mark.parametrize("topic", TOPICS, ids=NAMES)
def test_a_channel_is_as_its_topic_is_declared(topic: Topic) -> None:
    channel = written()["channels"][topic.name]
    kafka = channel["bindings"]["kafka"]
    assert channel["address"] == kafka["topic"] == topic.name
    config = {name: str(value) for name, value in kafka["topicConfiguration"].items() if name != "cleanup.policy"}
    assert config | {"cleanup.policy": topic.cleanup} == topic.config()
    assert kafka["topicConfiguration"]["cleanup.policy"] == [topic.cleanup]
    assert topic.partitions in (None, kafka["partitions"])
    assert list(channel["messages"]) == messages_of(topic)
    assert channel["messages"], "nothing is said of what it holds"
    for name in channel["messages"]:
        assert written()["components"]["messages"][name]["bindings"]["kafka"]["key"]["type"] == "string"


def test_who_writes_and_reads_a_topic_is_an_operation_each() -> None:
    wanted = {(topic.name, "send", service) for topic in TOPICS for service in topic.written_by}
    wanted |= {(topic.name, "receive", service) for topic in TOPICS for service in topic.read_by}
    found = {
        (operation["channel"]["$ref"].removeprefix("#/channels/"), operation["action"], operation["tags"][0]["name"])
        for operation in written()["operations"].values()
    }
    assert found == wanted
    assert len(written()["operations"]) == len(wanted)


def test_every_message_travels_in_a_channel() -> None:
    travelling = {name for topic in TOPICS for name in messages_of(topic)}
    assert travelling == written()["components"]["messages"].keys()
    assert {kind.__name__ for kind in (*COMMANDS, *REPORTS)} < travelling


@pytest.mark.parametrize("name", list(document()["components"]["messages"]))
def test_the_examples_of_a_message_follow_what_is_said_of_it(name: str) -> None:
    message = written()["components"]["messages"][name]
    assert message["examples"]
    for part in ("payload", "headers"):
        whole = {"components": written()["components"], "allOf": [message[part]]}
        validator = Draft7Validator(whole)
        for example in message["examples"]:
            assert [error.message for error in validator.iter_errors(example[part])] == [], (name, part)
