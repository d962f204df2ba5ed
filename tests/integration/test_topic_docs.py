"""The commands of docs/topics.md, taken out of the page and run on a real system."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from support.cloud_events import check_cloud_event
from support.controller import Controller, config, controller, unique
from support.documents import DOCS, Schemas
from support.kafka import produce, read
from support.transactions import Transactions

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.model import decode_record
from sluice.domain.stream.events import StreamCreated
from sluice.engine.partition import partition_of
from sluice.kafka.dead_letters import failed_record_of
from sluice.kafka.topics import (
    DEAD_LETTERS,
    JOURNAL,
    REQUESTS_CLUSTER,
    REQUESTS_STREAMS,
    RETENTION,
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
    SNAPSHOTS,
    STATISTICS,
    STATISTICS_WINDOWS,
    TOPICS,
)

pytestmark = pytest.mark.integration

STREAM = "orders"
REPORTED = (SCALE, RETENTION, SCALE_MEMORY, RETENTION_MEMORY, STATISTICS, STATISTICS_WINDOWS, SNAPSHOTS)
COMES_S = 60.0
RUNS_S = 120.0

_BLOCK = re.compile(r"^```sh( follow)?\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_FOUND = [(bool(follow), command) for follow, command in _BLOCK.findall((DOCS / "topics.md").read_text())]

WRITING = [command for _, command in _FOUND if " -P " in command]
FOLLOWING = [command for follows, command in _FOUND if follows]
READING = [command for follows, command in _FOUND if not follows and command not in WRITING]


def title(command: str) -> str:
    """The tool, the topic and the number of a command in the page."""
    number = [found for _, found in _FOUND].index(command)
    topic = re.search(r"sluice\.[a-z.-]+", command)
    return f"{number}-{command.split()[0]}-{topic[0] if topic else 'topics'}"


class Story(NamedTuple):
    """A stream with which everything was done that the page has commands for; `request` is the one that created it."""

    scope: str
    request: str
    gateway: Controller
    environment: dict[str, str]

    @property
    def key(self) -> str:
        return f"{self.scope}/{STREAM}"


@pytest.fixture(scope="module")
def story(system: System) -> Iterator[Story]:
    assert shutil.which("kcat"), "kcat is missing, which the commands of docs/topics.md need: apt-get install kcat"
    scope, bootstrap = unique("docs"), system.kafka_bootstrap
    with controller(system.grpc_address) as gateway:
        assert gateway.create_scope(scope) == "SUCCESS"
        assert gateway.create_scope(scope) == "SCOPE_EXISTS"
        retention = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=1 << 40)
        assert gateway.status("createStream", config(scope, STREAM, 2, retentionPolicy=retention)) == "SUCCESS"
        transactions = Transactions(gateway, scope, STREAM)
        committed, aborted = transactions.open(), transactions.open()
        assert transactions.commit(committed) == transactions.abort(aborted) == "SUCCESS"
        transactions.await_state(committed, "COMMITTED")
        produce(bootstrap, REQUESTS_STREAMS.name, f"{scope}/{STREAM}", b"not a request")
        eventually(lambda: _kept(bootstrap, scope), COMES_S, "what is no request is a dead letter")
        request = _created_by(bootstrap, f"stream:{scope}/{STREAM}")
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KAFKA": bootstrap,
            "STREAM": f"{scope}/{STREAM}",
            "REQUEST": request,
            "SLUICE_KAFKA_BOOTSTRAP": bootstrap,
            "SLUICE_API": system.rest_url,
        }
        yield Story(scope, request, gateway, environment)


def _created_by(bootstrap: str, aggregate: str) -> str:
    """The request that the creation of a stream was replied to."""
    records = (decode_record(message.value() or b"") for message in read(bootstrap, JOURNAL.name))
    return next(
        entry.request
        for record in records
        for entry in record.entries
        if entry.request and any(isinstance(e, StreamCreated) and e.aggregate == aggregate for e in entry.events)
    )


def _kept(bootstrap: str, scope: str) -> bool:
    return any((message.key() or b"").decode().startswith(scope) for message in read(bootstrap, DEAD_LETTERS.name))


def shell(command: str, story: Story, **more: str) -> str:
    """What a command prints; it must end well and complain of nothing."""
    ended = subprocess.run(
        ["bash", "-c", command],
        env={**story.environment, **more},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=RUNS_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_the_page_has_commands_of_each_kind() -> None:
    for commands in (READING, FOLLOWING):
        assert {command.split()[0] for command in commands} >= {"kcat", "sluice"}
    assert len(WRITING) == 1
    for topic in TOPICS:
        assert f"## {topic.name}\n" in (DOCS / "topics.md").read_text()


@pytest.fixture(scope="module")
def shown(story: Story) -> Iterator[dict[str, Future[str]]]:
    """What each command shows in the end. Most of the time they wait, so they run side by side."""
    with ThreadPoolExecutor(len(READING)) as pool:
        yield {command: pool.submit(_shown, command, story) for command in READING}


def _shown(command: str, story: Story) -> str:
    def holds_what_it_is_for() -> str:
        output = shell(command, story)
        if "$STREAM" in command and "uniq -c" not in command:
            assert STREAM in output and story.scope in output
        if "$REQUEST" in command:
            assert story.request in output
        return output.strip()

    # What is periodic comes in its time.
    return eventually(holds_what_it_is_for, COMES_S, command)


@pytest.mark.parametrize("command", READING, ids=title)
def test_a_command_shows_what_it_is_for(shown: dict[str, Future[str]], command: str) -> None:
    assert shown[command].result(RUNS_S)


def test_the_kinds_of_what_happened_are_counted(shown: dict[str, Future[str]]) -> None:
    (counting,) = [command for command in READING if "uniq -c" in command]
    counts = {kind: int(count) for count, kind in re.findall(r'(\d+) "type":"(\w+)"', shown[counting].result(RUNS_S))}
    # What came out of date and was decided again is there twice.
    assert counts["StreamCreated"] >= 1
    assert counts["TransactionOpened"] >= 2 and counts["TransactionReady"] >= 2


def test_a_request_is_found_from_its_beginning_to_its_answer(shown: dict[str, Future[str]]) -> None:
    (tracing,) = [command for command in READING if "$REQUEST" in command and command.startswith("for topic")]
    kinds = re.findall(r'"type":"(\w+)"', shown[tracing].result(RUNS_S))
    assert kinds[0] == "CreateStream"
    about = [kind for kind in kinds if kind in ("CreateStream", "StreamCreationStarted", "StreamCreated")]
    assert about[-1] == "StreamCreated"


@pytest.mark.parametrize("command", FOLLOWING, ids=title)
def test_a_command_that_follows_shows_what_comes(story: Story, tmp_path: Path, command: str) -> None:
    output = tmp_path / "output"
    with following(command, story, output):

        def seen() -> bool:
            # Repeatedly, because nothing shows when it has begun to read.
            tag = pb.Tags(tag=[uuid4().hex])
            assert story.gateway.status("updateStream", config(story.scope, STREAM, 2, tags=tag)) == "SUCCESS"
            return "StreamUpdated" in output.read_text()

        eventually(seen, COMES_S, command)
        assert story.key in output.read_text()


@contextmanager
def following(command: str, story: Story, output: Path) -> Iterator[None]:
    """Have a command run and write to a file."""
    with output.open("wb") as file:
        running = subprocess.Popen(
            ["bash", "-c", command],
            env={**story.environment, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(RUNS_S)


def test_a_command_that_asks_is_done(system: System, story: Story) -> None:
    name, request = "by-hand", f"by-hand-{uuid4().hex}"
    assert story.gateway.create_stream(story.scope, name) == "SUCCESS"
    shell(WRITING[0], story, STREAM=f"{story.scope}/{name}", REQUEST=request)
    partition = partition_of(f"{story.scope}/{name}", system.settings.partitions)

    def answers() -> list[str]:
        records = (decode_record(m.value() or b"") for m in read(system.kafka_bootstrap, JOURNAL.name, [partition]))
        entries = (entry for record in records for entry in record.entries)
        return [entry.reply.status for entry in entries if entry.request == request and entry.reply]

    assert eventually(answers, COMES_S, "the request gets its reply") == ["SUCCESS"]
    assert story.gateway.delete(story.scope, name) == "SUCCESS"


def test_records_are_cloud_events_that_follow_their_schemas(system: System, story: Story) -> None:
    schemas, kinds = Schemas(), set()
    # Whatever is there is enough: the deadline of each topic was that of the commands above.
    for topic in TOPICS:
        count = topic.partitions or system.settings.partitions
        partitions = {partition_of(key, count) for key in (story.scope, story.key)}
        for message in read(system.kafka_bootstrap, topic.name, partitions):
            key, value = (message.key() or b"").decode(errors="replace"), message.value() or b""
            if key.partition("/")[0] != story.scope or not message.headers():
                continue
            attributes = check_cloud_event(failed_record_of(message).headers, key, value)
            assert schemas.errors("Headers.json", attributes) == []
            if topic is DEAD_LETTERS:
                assert schemas.errors("DeadLetterHeaders.json", attributes) == []
                continue
            if topic is JOURNAL:
                path = "Record.json"
            elif topic in REPORTED:
                path = f"reports/{attributes['ce_type']}.json"
            else:
                path = "Request.json"
            assert schemas.errors(path, json.loads(value)) == [], (topic.name, value)
            kinds.add(attributes["ce_type"])
    assert kinds >= {
        "CreateStream",
        "StreamCreationStarted",
        "StreamCreated",
        "Refusal",
        "CommitTransaction",
        "RetentionReport",
    }
    beats = read(system.kafka_bootstrap, REQUESTS_CLUSTER.name)
    assert beats
    for message in beats[-5:]:
        check_cloud_event(failed_record_of(message).headers, "cluster", message.value() or b"")
