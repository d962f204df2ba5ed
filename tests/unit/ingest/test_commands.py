"""The command as a person gives it: what is refused before anything begins, `status` and `reset`, the summary."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.ports import free_port
from typer.testing import CliRunner

from distributed_ingest.commands import app
from distributed_ingest.http import name_of
from distributed_ingest.job import Definition, Job, register
from distributed_ingest.summary import Summary
from distributed_ingest.tally import Counts, Tally
from sluice.pravega import ConnectionFailure, Failure, InMemorySegmentStore
from sluice_cli import session
from sluice_cli.api import Api
from sluice_cli.output import Output
from sluice_client import Client, open_client
from sluice_coordination import Leases, LeaseSettings, open_store

Ingest = Callable[..., tuple[int, str, str]]
STREAMS = {"demo/lines": "ACTIVE", "demo/sealed": "SEALED"}


def answer(request: httpx.Request) -> httpx.Response:
    scope, name = request.url.path.removeprefix("/sluice/v1/scopes/").split("/streams/")
    if f"{scope}/{name}" not in STREAMS:
        problem = {"title": "No", "status": 404, "detail": f"stream {scope}/{name} does not exist"}
        return httpx.Response(404, json={**problem, "reason": "STREAM_NOT_FOUND"})
    return httpx.Response(200, json={"scope": scope, "name": name, "state": STREAMS[f"{scope}/{name}"]})


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ingest:
    monkeypatch.setattr(session, "open_api", lambda base: Api(base, transport=httpx.MockTransport(answer)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in [name for name in os.environ if name.startswith("SLUICE_INGEST_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["folder", "/", "lines"], 2, "is no stream"),
        (["folder", "/", "demo/none"], 1, "stream demo/none does not exist"),
        (["folder", "/", "demo/sealed"], 1, "the stream demo/sealed is SEALED"),
        (["folder", "/no/such", "demo/lines"], 1, "the folder /no/such cannot be read: No such file or directory"),
        (["folder", "/", "demo/lines", "--records", "items"], 2, "one of lines, whole"),
        (["folder", "/", "demo/lines", "--key", "field"], 2, "no rule for routing keys"),
        (["folder", "/", "demo/lines", "--key", "record"], 2, "only the records of Kafka"),
        (["folder", "/", "demo/lines", "--lease", "10ms"], 2, "too short"),
        (["folder", "/", "demo/lines", "--lease", "0s"], 2, "no time to wait"),
        (["folder", "/", "demo/lines", "--window", "0"], 2, "no size"),
        (["folder", "/", "demo/lines", "--name", "a/b"], 2, "cannot name a job"),
        (["folder", "/", "demo/lines", "--store", "ftp://x"], 2, "no document store is known"),
        (["folder", "/", "demo/lines", "--store", "redis://127.0.0.1:1"], 3, "Another store: --store"),
        (["kafka", "topic", "demo/lines", "--from", "middle"], 2, "one of start, end"),
        (["http", "ftp://x", "demo/lines"], 2, "cannot be polled"),
        (["http", "demo/lines"], 2, "Missing argument"),
        (["tcp", "host", "demo/lines"], 2, "no address"),
        (["udp", "host", "demo/lines"], 2, "no address"),
        (["syslog", "host", "demo/lines"], 2, "no address"),
        (["http-listener", "host", "demo/lines"], 2, "no address"),
        (["rabbitmq", "q", "demo/lines", "--url", "amqp://127.0.0.1:1/"], 3, "cannot read amqp://127.0.0.1:1/ q"),
        (["s3", "bucket", "demo/lines"], 2, "names no bucket"),
        (["s3", "s3://b", "demo/lines", "--endpoint", "http://127.0.0.1:1"], 3, "cannot read s3://b"),
        (["status"], 2, "whose jobs?"),
        (["status", "none"], 1, "there is no job none"),
        (["reset", "none"], 1, "there is no job none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused(ingest: Ingest, arguments: list[str], code: int, said: str) -> None:
    ended, out, error = ingest(*arguments)
    assert (ended, out) == (code, ""), error
    assert said in error and "Traceback" not in error


def test_kafka_that_is_away(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed_ingest.kafka.ANSWER_S", 0.2)
    ended, _, error = ingest("kafka", "topic", "demo/lines", "--kafka", "127.0.0.1:1")
    assert ended == 3 and "cannot reach Kafka at 127.0.0.1:1" in error


def test_nothing_to_do_is_done(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    ended, out, _ = ingest("folder", str(tmp_path / "inbox"), "demo/lines", "--once", "--json", "--lease", "1s")
    found = json.loads(out)
    assert ended == 0 and found["finished"] and found["records"] == 0 and found["sources"] == []
    assert found["job"].startswith("folder-demo-lines-") and found["stoppedBy"] is None
    name = found["job"]
    assert json.loads(ingest("status", name, "--json")[1])["origins"] == [str(tmp_path / "inbox")]
    again = ingest("folder", str(tmp_path), "demo/lines", "--once", "--name", name)
    assert again[0] == 1 and f"the job {name} is another one" in again[2]


def test_once_ends_with_an_error_if_an_address_never_answers(ingest: Ingest) -> None:
    url = f"http://127.0.0.1:{free_port()}/data"
    options = ("--once", "--json", "--every", "10ms", "--lease", "1s")
    ended, out, error = ingest("http", url, "demo/lines", *options)
    (missed,) = json.loads(out)["missed"]
    assert re.fullmatch(f"{url}: no usable answer \\d+ times in a row, the last time: All connection .* failed", missed)
    assert ended == 3 and missed in " ".join(error.split()) and not json.loads(out)["finished"]


@pytest.mark.parametrize("once", [["--once"], []], ids=["once", "on and on"])
def test_a_stream_that_is_deleted_meanwhile_ends_the_job(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: list[str]
) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a").write_text("one\n")
    # In this cluster the stream is not there.
    monkeypatch.setattr("distributed_ingest.launch.open_client", lambda _: open_client("memory:"))
    ended, out, error = ingest("folder", str(tmp_path / "inbox"), "demo/lines", "--lease", "1s", "--json", *once)
    refused = "the stream demo/lines takes nothing any more: The stream does not exist"
    assert ended == 1 and refused in " ".join(error.split())
    assert json.loads(out)["refused"].startswith(refused) and not json.loads(out)["finished"]


def test_once_gives_up_when_nothing_moves(ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed_ingest.settle.LONGEST_S", 0.1)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a").write_text("one\n")

    @asynccontextmanager
    async def away(_controller: str) -> AsyncIterator[Client]:
        async with open_client("memory:") as client:
            await client.controller.create_scope("demo")
            await client.controller.create_stream("demo", "lines")
            assert isinstance(client.store, InMemorySegmentStore)
            client.store.fault = refuse
            yield client

    def refuse(_moment: str, _request: str, segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED, segment)

    monkeypatch.setattr("distributed_ingest.launch.open_client", away)
    options = ("--once", "--patience", "1s", "--lease", "1s", "--json")
    ended, out, error = ingest("folder", str(tmp_path / "inbox"), "demo/lines", *options)
    assert (ended, json.loads(out)["missed"]) == (3, ["nothing has moved for 1 s, with 0 of 4 bytes through"])
    assert "nothing has moved for 1 s" in error


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("NO_PROXY", "localhost,fd00::/8"),
        ("HTTPS_PROXY", "http://me:se/cret@proxy:80"),
        ("http_proxy", "ftp://proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_by_its_variable(
    ingest: Ingest, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    ended, _, error = ingest("http", "http://127.0.0.1:1/", "demo/lines", "--once")
    assert ended == 2 and f"a proxy cannot be used as {variable} says" in " ".join(error.split())
    assert "Traceback" not in error and "cret" not in error


def test_a_node_that_knows_only_store_and_job_begins_from_the_jobs_document(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controllers: list[str] = []

    @asynccontextmanager
    async def cluster(controller: str) -> AsyncIterator[Client]:
        controllers.append(controller)
        async with open_client("memory:") as client:
            await client.controller.create_scope("demo")
            await client.controller.create_stream("demo", "lines")
            yield client

    monkeypatch.setattr("distributed_ingest.launch.open_client", cluster)
    inbox, store = (
        tmp_path / "inbox",
        ("--store", f"file:{tmp_path / 'store.json'}", "--once", "--json", "--lease", "1s"),
    )
    inbox.mkdir()
    (inbox / "a.log").write_text("one\ntwo\n")
    command = (
        "folder",
        str(inbox),
        "demo/lines",
        "--pattern",
        "*.log",
        "--controller",
        "tcp://there:1",
        "--name",
        "job",
    )
    assert ingest(*command, *store)[0] == 0
    (inbox / "b.log").write_text("three\n")
    (inbox / "b.txt").write_text("not of the job\n")
    monkeypatch.setattr(session, "open_api", lambda _base: pytest.fail("it knows of no API"))
    code, out, error = ingest("join", "job", *store)
    assert (code, json.loads(out)["records"], controllers) == (0, 1, ["tcp://there:1"] * 2), error
    code, _, error = ingest("join", "none", *store)
    assert code == 1 and "there is no job none" in error
    code, _, error = ingest("join", "job", "--key", "source", *store)
    assert code == 2 and "the job has its name and its key" in error


def test_a_job_whose_urls_are_secret_cannot_be_joined_by_its_name(ingest: Ingest, tmp_path: Path) -> None:
    url = f"http://me:hunter2@127.0.0.1:{free_port()}/data"
    ingest("http", url, "demo/lines", "--once", "--every", "10ms", "--lease", "1s", "--name", "job")
    code, _, error = ingest("join", "job")
    assert code == 1 and "URLs of the job hold a secret" in error and "hunter2" not in error


def test_no_password_is_shown_or_kept(ingest: Ingest, tmp_path: Path) -> None:
    urls = [f"http://me:hunter2@127.0.0.1:{free_port()}/data", f"http://127.0.0.1:{free_port()}/?api_key=hunter2"]
    ended, out, error = ingest("http", *urls, "demo/lines", "--once", "--json", "--every", "10ms", "--lease", "1s")
    (job,) = (tmp_path / "state" / "sluice" / "ingest").glob("*.json")
    shown = ingest("status", job.stem)[1]
    assert ended == 3 and "http://***@127.0.0.1" in error and "http://***@127.0.0.1" in shown
    assert "hunter2" not in f"{out} {error} {shown} {job.read_text()}"
    for store in ("redis://me:hunter2@127.0.0.1:1", "redis://me:hunter/2@h", "opensearch://me:hunter2@127.0.0.1:1/x"):
        error = ingest("folder", "/", "demo/lines", "--store", store)[2]
        assert store.partition(":")[0] in error and "hunter" not in error


def test_a_url_has_the_same_name_with_another_password_only() -> None:
    names = [name_of(f"http://{user}@host/a") for user in ("a:one", "a:two", "b:one", "one", "two")]
    assert names[0] == names[1] and len(set(names)) == 4
    assert name_of("http://host/a?b=c") == "http://host/a?b=c"


def filled(path: Path, *, lives: bool) -> str:
    """A store with a job, and one node that lives or has left."""
    url = f"file:{path}"

    async def fill() -> None:
        async with open_store(url) as store:
            await register(store, Job("one", Definition("kafka", ("topic",), "demo/lines", "whole", "record")), {})
            await store.put("ingest/one/totals", {"records": 12_345, "bytes": 2048}, None)
            await store.put("ingest/one/progress/partition-0", {"by": "x", "position": {"next": 7}}, None)
            state = {"tasks": {key: {"function": "read"} for key in ("1-0", "1-1")}, "position": None}
            await store.put("ingest/one/board/source/kafka", {**state, "complete": False}, None)
            leases = Leases(store, LeaseSettings(), owner="here-1")
            for id in ("ingest/one/board/node/here-1", "ingest/one/board/part/kafka/1-0"):
                held_lock = await leases.take(id, None)
                assert held_lock is not None
                held_lock.report({"left": 1234, "unit": "offsets"})
                await held_lock.update({})
                if not lives:
                    await held_lock.release()

    asyncio.run(fill())
    return url


def test_status(ingest: Ingest, tmp_path: Path) -> None:
    url = filled(tmp_path / "store.json", lives=True)
    code, out, _ = ingest("status", "--store", url)
    assert (
        code == 0
        and " ".join(out.strip().split("\n")[-1].split()) == "one kafka demo/lines 1 1 1,234 offsets 12,345 2 KiB"
    )
    assert "kafka topic" in ingest("status", "one", "--store", url)[1]
    found = json.loads(ingest("status", "one", "--store", url, "--json")[1])
    assert found["positions"] == {"partition-0": {"next": 7}} and found["nodes"] == ["here-1"]
    own = {"task": "kafka/1-0", "node": "here-1", "lag": {"left": 1234, "unit": "offsets"}}
    assert found["tasks"] == [own, {"task": "kafka/1-1", "node": "", "lag": None}]
    said = " ".join(ingest("status", "one", "--store", url)[1].split())
    assert "1 under way, 1 waiting" in said and "kafka/1-0 here-1 1,234 offsets kafka/1-1 waits -" in said


def test_status_is_shown_again_until_ctrl_c(ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, pauses = filled(tmp_path / "store.json", lives=True), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("distributed_ingest.inspection.time.sleep", pause)
    code, out, _ = ingest("status", "--watch", "--store", url)
    assert code == 0 and out.count("demo/lines") == 2 and pauses == [2.0, 2.0]


def test_reset(ingest: Ingest, tmp_path: Path) -> None:
    url = filled(tmp_path / "store.json", lives=True)
    code, _, error = ingest("reset", "one", "--store", url)
    assert code == 1 and "nodes take part in one: here-1" in error
    assert ingest("reset", "one", "--store", url, "--force")[:2] == (0, "forgotten one, 6 documents\n")
    assert ingest("reset", "one", "--store", url)[0] == 1
    url = filled(tmp_path / "other.json", lives=False)
    assert ingest("reset", "one", "--store", url)[0] == 0


def test_a_job_that_left_records_out_ends_with_1(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(summary: Summary) -> int:
        monkeypatch.setattr("distributed_ingest.run.Run.run", lambda _run: summary)
        return ingest("folder", "/", "demo/lines", *(["--once"] if summary.stopped_by else []))[0]

    assert ended(summary()) == 0
    assert ended(summary(Counts(5, 50, skipped=1))) == 1
    assert ended(summary(stopped_by="SIGINT")) == 130
    assert ended(summary(stopped_by="SIGTERM")) == 143


def summary(counts: Counts | None = None, stopped_by: str = "", origins: int = 1) -> Summary:
    job, tally = Job("one", Definition("folder", ("/",), "demo/lines", "lines", "none")), Tally()
    for number in range(origins):
        tally.add(f"{number}.log", counts or Counts(3, 3000))
    return Summary(job, "here-1", 2.0, tally, tally.total, False, stopped_by)


def test_the_summary_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = summary(Counts(1000, 2048, 2, 1), origins=25)
    drawn.draw(Output(json=False), None)
    said = capsys.readouterr().out
    for text in ("25,000 records, 50 KiB, in 2.0 s", "12,500 records/s, 25 KiB/s", "and 5 more", "50, see"):
        assert text in said
    document: dict[str, Any] = drawn.document()
    assert document["records"] == 25_000 and len(document["sources"]) == 25 and document["recordsPerS"] == 12_500
