"""`sluice ingest` on the whole system: the tutorial as it stands, nodes that are killed, a file that is taken.

`INGEST_FULL=1` has 10,000 objects of S3 copied, and judges how evenly nodes share them.
"""

import asyncio
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import httpx
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from support.effort import by_hand
from support.kafka import produce
from support.objects import ACCESS, private_objects
from support.ports import free_ports
from support.pravega import manager
from support.processes import stands_still
from support.rabbitmq import private_rabbitmq

from harness import System, eventually, eventually_async
from sluice.kafka.deleting import request_deletion
from sluice_coordination import open_store

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text()
BLOCKS = re.findall(r"^```sh ?(follow|refused|many|beside|)\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
SCRIPT = Path(sys.executable).parent / "sluice"
STARTS_S = 60.0
ENDS_S = 120.0
SHORT, LONG = ("--lease", "2s"), ("--lease", "15s")
"""The lease of who is killed, so that others need not wait for long, and of those whose locks are not to be lost."""
MEDIUM = ("--lease", "6s")
"""The lease of who is killed, and whose locks are not to be lost before that."""
FULL = bool(os.environ.get("INGEST_FULL"))
OBJECTS, WINDOWS, COPIED_S = (10_000, 200, 600.0) if FULL else (240, 48, 60.0)
BOUND = 2 * (512 * 1024 + 4096)
"""A batch for each of two workers, with the line that began in it."""


class Shell:
    """Runs commands as a user would, on the system of the tests and with a state folder of their own."""

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.folder = folder
        self.scope = f"ingest{uuid4().hex[:8]}"
        self.environment = {
            **os.environ,
            "SLUICE_API": system.rest_url,
            "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
            "SLUICE_INGEST_CONTROLLER": f"tcp://{system.grpc_address}",
            "XDG_STATE_HOME": str(folder / "state"),
            "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}",
        }

    def text(self, command: str) -> str:
        """The command of the page, for this system."""
        for name, own in (
            ("demo", self.scope),
            ("/tmp/inbox", str(self.folder / "inbox")),
            ("redis://127.0.0.1:6379", f"{self.system.redis_url}?namespace={self.scope}"),
            ("http://127.0.0.1:10080", self.system.rest_url),
            ("127.0.0.1:7070", "127.0.0.1:0"),
        ):
            command = command.replace(name, own)
        return command

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", self.text(command)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_S,
        )

    def done(self, command: str) -> str:
        ended = self.run(command)
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    @contextmanager
    def running(self, *arguments: str, without: Sequence[str] = ()) -> Iterator["Running"]:
        """`without`: variables that it does not have."""
        process = subprocess.Popen(
            [SCRIPT, "ingest", *map(self.text, arguments)],
            env={name: value for name, value in self.environment.items() if name not in without},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running = Running(process)
        try:
            yield running
        finally:
            process.kill()
            running.end()

    def events(self, stream: str, wanted: set[str]) -> Counter[str]:
        """Read the stream until everything that is wanted was there, and then what is left of the slice."""
        # The client's threads end with its manager.
        streams = manager(self.system.grpc_address)
        group = streams.create_reader_group(f"all{uuid4().hex[:8]}", self.scope, stream)
        return asyncio.run(_read(group.create_reader("reader"), wanted))


async def _read(reader: Any, wanted: set[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    async with asyncio.timeout(ENDS_S):
        while not wanted <= found.keys():
            part = await reader.get_segment_slice_async()
            found.update(event.data().decode() for event in part)
            reader.release_segment(part)
    reader.reader_offline()
    return found


class Running:
    """An ingest that goes on; `said` is what it has written on stderr."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line

    def until(self, condition: Callable[[], object], what: str, within_s: float = STARTS_S) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.said
            return bool(condition())

        try:
            eventually(ready, within_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {self.said}") from error

    def stop(self, by: signal.Signals = signal.SIGTERM) -> Any:
        """End it gently; return its summary."""
        self.process.send_signal(by)
        return self.summary()

    def summary(self, code: int = 0) -> Any:
        out = self.end()
        assert self.process.returncode == code, self.said
        return json.loads(out) if out.startswith("{") else out

    def end(self) -> str:
        assert self.process.stdout is not None
        out = "" if self.process.stdout.closed else self.process.stdout.read()
        self.process.wait(ENDS_S)
        self._reader.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return out


@pytest.fixture
def shell(system: System, tmp_path: Path) -> Shell:
    return Shell(system, tmp_path)


def test_the_tutorial(shell: Shell) -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds == ["", "", "follow", "refused", "many", "", "", "", "follow", "beside"]
    first, again, follow, refused, many, status, kafka, http, tcp, beside = (command for _, command in BLOCKS)
    assert "20,000 records" in shell.done(first)
    said = shell.done(again)
    assert "0 records, 0 B" in said and json.loads(said[said.index("{") :])["records"] == 10
    inbox = shell.folder / "inbox"
    with shell.running(*follow.split()[2:]) as following:
        following.until(lambda: "Ctrl-C stops it" in following.said, "it has begun")
        second = shell.run(refused)
        assert second.returncode == 1 and second.stdout == ""
        assert re.search(rf"Error: The file is in use by another process\. \[.*json by pid {following.process.pid} on ",
                         second.stderr), second.stderr  # fmt: skip
        assert "--store redis://" in second.stderr and "Traceback" not in second.stderr
        (inbox / "more.txt").write_text("more\n")
        following.until(lambda: _written(shell) == 20_011, "the new file is through")
        assert "1 record," in following.stop(signal.SIGINT)
    with shell.running(*many.split()[2:], "--json") as one, shell.running(*many.split()[2:], "--json") as two:
        summaries = [one.summary(), two.summary()]
    assert sum(summary["records"] for summary in summaries) == 20_011
    assert all(summary["finished"] and not summary["problems"] for summary in summaries)
    assert re.search(r"folder-\S+ +folder +\S+/lines +0 +0 +- +20,011", shell.done(status)), shell.done(status)
    assert re.search(r"written +[1-9]", shell.done(kafka))
    assert re.search(r"written +[1-9]", shell.done(http))
    with shell.running(*tcp.split()[2:], "--json") as listening:
        listening.until(lambda: "listening on" in listening.said, "it listens")
        port = re.search(r"listening on 127.0.0.1:(\d+)", listening.said)
        assert port
        shell.done(beside.replace("/7070", f"/{port[1]}"))
        numbers = {str(number) for number in range(1, 20_011)}
        events = shell.events("lines", {"one", "two", "more", *numbers})
        assert events["one"] == events["two"] == 1 and {events[number] for number in numbers} == {2}
        assert listening.stop()["records"] == 2


def _written(shell: Shell) -> int:
    """How many records all runs have written, as the job's file has it."""
    (file,) = (shell.folder / "state" / "sluice" / "ingest").glob("folder-*.json")
    return int(json.loads(file.read_text())["documents"][f"ingest/{file.stem}/totals"]["body"]["records"])


async def test_a_node_that_is_killed_loses_nothing(shell: Shell) -> None:
    """Two nodes on Redis, one killed while it copies; the other one brings the rest, and a third has nothing to do.

    When it is killed far more than a batch for each worker is noted of its windows; that is not written again.
    """
    lines = [f"{file}-{number}-{'x' * 2_000}" for file in range(3) for number in range(8_000)]
    await asyncio.to_thread(shell.done, "sluice scope create demo; sluice stream create demo/lines --segments 3")
    (shell.folder / "inbox").mkdir()
    for file in range(3):
        (shell.folder / "inbox" / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines[file::3]))
    arguments = ["folder", "/tmp/inbox", "demo/lines", "--once", "--json", "--window", "15MiB", "--ahead", "8"]
    arguments += ["--store", "redis://127.0.0.1:6379", "--name", "killed", "--workers", "2"]
    async with open_store(shell.text("redis://127.0.0.1:6379"), 2.0) as store:

        async def recorded() -> int:
            """How many bytes the victim has noted of the windows that it holds."""
            parts = (await store.under("ingest/killed/board/part/")).values()
            mine = [found.body for found in parts if f"-{victim.process.pid}-" in found.body.get("owner", "")]
            return sum(_recorded(body) for body in mine if body["expire"] != 0)

        with shell.running(*arguments, *MEDIUM) as victim:

            async def stopped_far_on() -> bool:
                if await recorded() < 3 * BOUND:
                    return False
                victim.process.send_signal(signal.SIGSTOP)
                await eventually_async(lambda: stands_still(victim.process.pid), STARTS_S, "it stands still")
                if await recorded() >= 3 * BOUND:
                    return True
                # Its windows ended meanwhile.
                victim.process.send_signal(signal.SIGCONT)
                return False

            condition: Callable[[], bool | Awaitable[bool]] = stopped_far_on
            await eventually_async(condition, STARTS_S, "it has copied a part of its windows")
            victim.process.kill()
            victim.process.wait()
    with shell.running(*arguments, *LONG) as other:
        summary = await asyncio.to_thread(other.summary)
    assert summary["finished"] and summary["skipped"] == 0 and 0 < summary["records"] <= len(lines)
    with shell.running(*arguments, *LONG) as third:
        assert (await asyncio.to_thread(third.summary))["records"] == 0
    events = await asyncio.to_thread(shell.events, "lines", set(lines))
    assert set(events) == set(lines)
    again = sum(len(line) * (count - 1) for line, count in events.items())
    assert again <= BOUND, "no more than a batch for each worker is there twice"


def _recorded(body: dict[str, Any]) -> int:
    """How many bytes of its window a task has noted as copied."""
    slices = json.loads(base64.b64decode(body["task"]))["arguments"]["slices"]
    number, offset = body.get("reached", (0, 0))
    done = sum(end - start for _, start, end, *_ in slices[:number])
    return int(done + max(0, offset - slices[number][1]) if number < len(slices) else done)


@by_hand("nodes on an object store")
@pytest.mark.timeout(1800 if FULL else 300)
def test_objects_are_copied_once_by_nodes_of_which_some_die_and_one_joins_by_the_jobs_name(shell: Shell) -> None:
    """Two of four nodes die; a fifth, which knows nothing but the store and the job, shares the second half."""
    shell.environment.update(ACCESS)
    shell.done("sluice scope create demo; sluice stream create demo/objects --segments 4")
    shared = ["--store", "redis://127.0.0.1:6379", "--workers", "2", "--json"]
    arguments = ["s3", f"s3://{shell.scope}/in/", "demo/objects", *shared, "--name", "objects", "--settle", "1s"]
    arguments += ["--objects", str(OBJECTS // WINDOWS), "--ahead", "16", "--scan-every", "1s"]
    with private_objects(shell.scope) as objects, ExitStack() as nodes:
        arguments += ["--endpoint", objects.endpoint]

        async def read(id: str) -> Any:
            async with open_store(shell.text("redis://127.0.0.1:6379")) as store:
                found = await store.get(f"ingest/objects/board/{id}")
                return {} if found is None else found.body

        def listed() -> int:
            return len(asyncio.run(read("nodes")).get("nodes", ()))

        def through() -> int:
            """How many objects are in the stream. Totals would lack what a node had not counted when it was killed."""
            state = asyncio.run(read("source/s3"))
            under_way: int = sum(task["arguments"]["objects"] for task in state.get("tasks", {}).values())
            return int(state["position"]["position"]["objects"]) - under_way

        def put(first: int, last: int) -> None:
            objects.put({f"in/{number:06}": f"{number}\n".encode() for number in range(first, last)})

        started = [nodes.enter_context(shell.running(*arguments, *lease)) for lease in (LONG, LONG, SHORT, SHORT)]
        started[0].until(lambda: listed() == 4, "all are listed")
        objects.put({"other": b"other\n"})
        put(0, half := OBJECTS // 2)
        for share, victim in enumerate(started[2:], start=1):
            victim.until(partial(lambda least: through() >= least, share * half // 4), "a part is through", COPIED_S)
            victim.process.kill()
        without = ("SLUICE_API", "SLUICE_INGEST_CONTROLLER")
        fifth = nodes.enter_context(shell.running("join", "objects", *shared, *LONG, without=without))
        fifth.until(lambda: listed() == 3 and through() == half, "it is there, and half is through", COPIED_S)
        put(half, OBJECTS)
        fifth.until(lambda: through() == OBJECTS, "all is through", COPIED_S)
        records = [node.stop()["records"] for node in (*started[:2], fifth)]
    found = shell.events("objects", wanted := {str(number) for number in range(OBJECTS)})
    assert found == Counter(wanted)
    print(f"records of two who were there throughout, and of the fifth: {records}, of {OBJECTS}")
    assert all(records)
    if FULL:
        one, other, fifths = records
        assert abs(one - other) <= 0.25 * (one + other) / 2
        assert abs(fifths - half / 3) <= 0.25 * half / 3


def test_what_is_sent_by_http_udp_and_syslog_is_in_the_stream(shell: Shell) -> None:
    shell.done("sluice scope create demo; sluice stream create demo/sent")
    ports = dict(zip(("http-listener", "udp", "syslog"), free_ports(3), strict=True))
    with ExitStack() as nodes:
        for kind, port in ports.items():
            node = nodes.enter_context(shell.running(kind, f"127.0.0.1:{port}", "demo/sent", "--json"))
            node.until(partial(lambda node: "listening on" in node.said, node), "it listens")
        answer = httpx.post(
            f"http://127.0.0.1:{ports['http-listener']}/", content=b"by HTTP\n", timeout=60, trust_env=False
        )
        assert answer.status_code == 204
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"by UDP", ("127.0.0.1", ports["udp"]))
            sender.sendto(b"<13>by syslog", ("127.0.0.1", ports["syslog"]))
        assert shell.events("sent", wanted := {"by HTTP", "by UDP", "<13>by syslog"}) == Counter(wanted)


def test_a_queue_of_rabbitmq_is_moved_by_nodes_of_which_one_dies(shell: Shell) -> None:
    shell.done("sluice scope create demo; sluice stream create demo/orders --segments 2")
    wanted = {f"order {number}" for number in range(5_000)}

    async def left(url: str, *texts: str) -> int:
        """Send messages; return how many the queue has that no node has acknowledged."""
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("orders", durable=True)
            for text in texts:
                await channel.default_exchange.publish(aio_pika.Message(text.encode()), "orders")
            return queue.declaration_result.message_count or 0

    (shell.folder / "rabbitmq").mkdir()
    with private_rabbitmq(shell.folder / "rabbitmq") as url:
        asyncio.run(left(url, *wanted))
        arguments = ["rabbitmq", "orders", "demo/orders", "--url", url, "--json", "--store", "redis://127.0.0.1:6379"]
        with shell.running(*arguments, *SHORT) as victim:
            victim.until(lambda: asyncio.run(left(url)) < len(wanted), "it takes messages")
            victim.process.kill()
        with shell.running(*arguments, *LONG) as other:
            events = shell.events("orders", wanted)
            assert other.stop()["skipped"] == 0
        assert asyncio.run(left(url)) == 0, "all are acknowledged"
    assert set(events) == wanted


@by_hand("nodes of which some die; those on a queue hold the same")
def test_the_partitions_of_a_topic_go_to_who_is_there(shell: Shell) -> None:
    topic, bootstrap = f"source-{shell.scope}", shell.system.kafka_bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(STARTS_S)
    shell.done("sluice scope create demo; sluice stream create demo/records --segments 2")

    def send(first: int, last: int) -> None:
        for partition in range(4):
            values = (f"{partition}-{number}".encode() for number in range(first, last))
            produce(bootstrap, topic, f"key-{partition}", *values, partition=partition)

    arguments = ["kafka", topic, "demo/records", "--json", "--store", "redis://127.0.0.1:6379", "--name", "dealt"]
    arguments += ["--workers", "2"]

    def position() -> int:
        jobs = json.loads(shell.done("sluice ingest status dealt --json --store redis://127.0.0.1:6379"))
        return sum(found.get("next", 0) for found in jobs["positions"].values())

    send(0, 500)
    with shell.running(*arguments, *LONG) as one, shell.running(*arguments, *SHORT) as two:
        one.until(lambda: position() == 2_000, "what was there is through")
        two.process.kill()
        two.process.wait()
        send(500, 1_000)
        one.until(lambda: position() == 4_000, "all partitions are read again")
        watch = "sluice ingest status dealt --watch --store redis://127.0.0.1:6379"
        assert shell.done(f"{watch} | grep -m 4 ' offsets'").count(f"-{one.process.pid}-") >= 2, "owner and lag of each"
        assert one.stop()["allNodes"]["records"] >= 2_000

    # What is next to be read in one partition is deleted before it is: a log says so, and the reading goes on.
    send(1_000, 1_010)
    first = TopicPartition(topic, 2, 1_005)
    assert request_deletion(admin, [first], STARTS_S)[first].result(STARTS_S).low_watermark == 1_005
    with shell.running(*arguments, "--once") as behind:
        summary = behind.summary(code=1)
    assert summary["finished"] and (summary["records"], summary["skipped"]) == (35, 1)
    assert any("does not have offset 1000 any more; going on with offset 1005" in text for text in summary["problems"])
    wanted = {f"{partition}-{number}" for partition in range(4) for number in range(1_010)}
    wanted -= {f"2-{number}" for number in range(1_000, 1_005)}
    assert shell.events("records", wanted).keys() == wanted


def test_once_waits_for_a_transaction_of_kafka_that_is_open(shell: Shell) -> None:
    """It may still be committed; what it comes to, and what others have written behind it, belongs to the topic."""
    topic, bootstrap = f"transactions-{shell.scope}", shell.system.kafka_bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(STARTS_S)
    shell.done("sluice scope create demo; sluice stream create demo/payments")
    produce(bootstrap, topic, "k", b"before")
    # It stays open for as long as three processes take to start and to end.
    lasts = {"transactional.id": topic, "transaction.timeout.ms": 600_000}
    open_one = Producer({"bootstrap.servers": bootstrap, **lasts})
    open_one.init_transactions(STARTS_S)
    open_one.begin_transaction()
    open_one.produce(topic, b"within")
    assert open_one.flush(STARTS_S) == 0
    produce(bootstrap, topic, "k", b"behind")
    arguments = ["kafka", topic, "demo/payments", "--once", "--json", "--lease", "2s"]
    said = f"{topic}/0: what follows offset 1 is in a transaction that its producer has not ended; waiting for that"
    with shell.running(*arguments) as stopped:
        stopped.until(lambda: said in stopped.said, "it says what it waits for")
        stopped.process.terminate()
        assert not stopped.summary(128 + signal.SIGTERM)["finished"]
    with shell.running(*arguments, "--patience", "3s") as impatient:
        missed = impatient.summary(code=3)["missed"]
    assert missed == ["nothing has moved for 3 s, with 1 of 3 offsets through"]
    with shell.running(*arguments) as patient:
        patient.until(lambda: said in patient.said, "it waits again")
        open_one.commit_transaction(STARTS_S)
        assert patient.summary()["finished"]
    assert shell.events("payments", wanted := {"before", "within", "behind"}) == Counter(wanted)


def test_a_stream_that_is_sealed_or_deleted_ends_its_jobs(shell: Shell) -> None:
    inbox = shell.folder / "inbox"
    inbox.mkdir()
    shell.done("sluice scope create demo; for name in sealed deleted; do sluice stream create demo/$name; done")
    with (
        shell.running("folder", "/tmp/inbox", "demo/sealed", *LONG, "--json") as sealed,
        shell.running("folder", "/tmp/inbox", "demo/deleted", *LONG, "--json") as deleted,
    ):
        (inbox / "lines").write_text("one\n")
        shell.events("sealed", {"one"})
        shell.events("deleted", {"one"})
        shell.done(
            "for name in sealed deleted; do sluice stream seal demo/$name; done; sluice stream delete demo/deleted"
        )
        (inbox / "more").write_text("two\n")
        for running, why in ((sealed, "The stream is sealed"), (deleted, "The stream does not exist")):
            summary = running.summary(code=1)
            assert summary["records"] == 1 and f"takes nothing any more: {why}" in summary["refused"]
