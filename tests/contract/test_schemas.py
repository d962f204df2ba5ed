"""The schemas of the messages: as the code is, and as the examples are."""

from functools import cache

import pytest
from jsonschema import Draft202012Validator
from support.documents import AGAIN, DOCS, Schemas

from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.schemas import COMMANDS, EVENTS, REPORTS, files
from sluice.catalog.writing import contents, stray
from sluice.kafka.topics import (
    DEAD_LETTERS,
    JOURNAL,
    RETENTION,
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
    SNAPSHOTS,
    STATISTICS,
    STATISTICS_WINDOWS,
)

_REPORTED = (SCALE, RETENTION, SCALE_MEMORY, RETENTION_MEMORY, STATISTICS, STATISTICS_WINDOWS, SNAPSHOTS)
REPORT_TOPICS = tuple(topic.name for topic in _REPORTED)
READABLE = [e for e in examples.all_examples() if e.header("content-type") == "application/json"]


@cache
def schemas() -> Schemas:
    return Schemas()


def schema_of(example: Example) -> str:
    """The path of the schema that the value of an example follows."""
    if example.type == "DeadLetterSettled":
        return "DeadLetterSettled.json"
    if example.topic in REPORT_TOPICS:
        return f"reports/{example.type}.json"
    return "Record.json" if example.topic == JOURNAL.name else "Request.json"


def name_of(example: Example) -> str:
    return f"{example.topic}-{example.type}"


def test_the_files_are_those_of_the_code() -> None:
    for path, text in contents(DOCS).items():
        assert path.exists(), f"{path.name} is missing: {AGAIN}"
        assert path.read_text() == text, f"{path.name} is not up to date: {AGAIN}"


def test_there_are_no_files_of_messages_that_are_no_more() -> None:
    assert stray(DOCS) == [], AGAIN


def test_every_message_has_its_file() -> None:
    wanted = {f"commands/{kind.__name__}.json" for kind in COMMANDS}
    wanted |= {f"events/{kind.__name__}.json" for kind in EVENTS}
    wanted |= {f"reports/{kind.__name__}.json" for kind in REPORTS}
    wanted |= {"Request.json", "Record.json", "Headers.json", "DeadLetterHeaders.json", "DeadLetterSettled.json"}
    assert wanted <= files().keys()
    assert {path for path in files() if not path.startswith("types/")} == wanted


@pytest.mark.parametrize("path", schemas().paths())
def test_a_schema_is_one(path: str) -> None:
    Draft202012Validator.check_schema(schemas().files[path])
    # Whatever it refers to is there: a reference to nothing raises.
    schemas().errors(path, {})


@pytest.mark.parametrize("example", READABLE, ids=name_of)
def test_an_example_follows_its_schema(example: Example) -> None:
    assert schemas().errors(schema_of(example), examples.with_unknown_field(example).json()) == []
    assert schemas().errors(schema_of(example), example.json()) == []


def test_headers_follow_their_schema() -> None:
    for example in examples.all_examples():
        headers = {name: example.header(name) for name, _ in example.headers}
        assert schemas().errors("Headers.json", headers) == [], example
        is_letter = example.topic == DEAD_LETTERS.name and example.type != "DeadLetterSettled"
        assert (schemas().errors("DeadLetterHeaders.json", headers) == []) is is_letter, example


def test_what_a_schema_does_not_know_is_refused() -> None:
    request, happened = examples.requests()[0], examples.journal_records()[0]
    assert schemas().errors("Request.json", examples.of_unknown_type(request).json())
    assert schemas().errors("Record.json", examples.of_unknown_type(happened).json())
    assert schemas().errors("Request.json", {"id": "1", "at": "now", "by": "x", "command": request.json()["command"]})
