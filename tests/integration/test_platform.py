"""The embedded Kafka, ZooKeeper, BookKeeper, Redis and segment stores, without the services of Sluice."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from kazoo.client import KazooClient
from redis import Redis
from support.documents import DOCS
from support.kafka import read

from harness import System, eventually
from harness.system import claimed_ports
from sluice.kafka.topics import JOURNAL, MAX_RECORD_BYTES, ensure_topics
from sluice_local.errors import PartFailed, PortTaken
from sluice_local.ownership import SupervisorRecord
from sluice_local.ports import is_free
from sluice_local.process import ProcessRecord, start_ticks
from sluice_local.running import process_record_path
from sluice_local.settings import LocalSettings, variable_of

pytestmark = pytest.mark.integration

HOSTS = "/pravega/pravega-cluster/cluster/hosts"
COPY_RUNS_S = 120.0
COMMAND_RUNS_S = 120.0
SETTLED_S = 60.0
BOOKIES = "/pravega/pravega-cluster/bookkeeper/ledgers/available"


@contextmanager
def session(platform: System) -> Iterator[KazooClient]:
    client = KazooClient(hosts=platform.zookeeper, timeout=5)
    client.start(timeout=SETTLED_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_redis_killed_and_started_again_has_its_data(platform: System) -> None:
    with Redis.from_url(platform.redis_url) as redis:
        redis.set("key", "value")
    platform.kill("redis")
    platform.start("redis")
    with Redis.from_url(platform.redis_url) as redis:
        assert redis.get("key") == b"value"


def test_the_bookie_killed_and_started_anew_is_registered_under_its_old_id(platform: System) -> None:
    platform.kill("bookie")
    platform.start("bookie")
    with session(platform) as zookeeper:
        eventually(lambda: "bookie" in zookeeper.get_children(BOOKIES), SETTLED_S, "the bookie is registered again")


def test_zookeeper_killed_and_started_again_has_its_data(platform: System) -> None:
    with session(platform) as before:
        before.create("/kept", b"value", makepath=True)
    platform.kill("zookeeper")
    platform.start("zookeeper")
    with session(platform) as after:
        assert after.get("/kept")[0] == b"value"
        eventually(lambda: "bookie" in after.get_children(BOOKIES), SETTLED_S, "the bookie is there")
        name = f"{platform.segment_store_addresses[0]}:"
        eventually(lambda: name in after.get_children(HOSTS), SETTLED_S, "the segment store is there")
    assert platform.is_ready("bookie")
    assert platform.is_ready("segment-store-0")


def test_a_frozen_part_is_not_ready_until_it_is_thawed(platform: System) -> None:
    platform.freeze("redis")
    assert platform.is_running("redis")
    assert not platform.is_ready("redis")
    platform.thaw("redis")
    platform.wait_ready("redis", SETTLED_S)


def test_a_part_that_ends_early_is_reported_with_its_log(runs_folder: Path, tmp_path: Path) -> None:
    system = bare_system(runs_folder / "early", jars=tmp_path)
    try:
        with pytest.raises(PartFailed, match=r"zookeeper ended with exit code 1; log .*zookeeper\.log") as caught:
            system.up()
        assert "ZooKeeperServerMain" in str(caught.value)
    finally:
        system.down()


def test_a_taken_port_is_reported_before_anything_starts(platform: System, runs_folder: Path) -> None:
    system = bare_system(runs_folder / "taken", zookeeper_port=platform.settings.zookeeper_port)
    with pytest.raises(PortTaken, match="SLUICE_ZOOKEEPER_PORT"):
        system.up()
    assert not any(system.is_running(name) for name in system.names)
    system.down()


def test_a_system_that_is_down_leaves_nothing_behind(runs_folder: Path) -> None:
    with bare_system(runs_folder / "brief") as system:
        pids = [system.pid(name) for name in system.names]
        assert all(start_ticks(pid) is not None for pid in pids)
    assert all(start_ticks(pid) is None for pid in pids)
    assert all(is_free(port) for port in claimed_ports(system.settings))
    assert not system.settings.data_dir.exists()


class Commands:
    """What `make` runs for people, with the settings of a system in the environment. It runs in another process."""

    def __init__(self, system: System) -> None:
        self.settings = settings = system.settings
        given = {variable_of(field): str(getattr(settings, field)) for field in settings.model_fields_set}
        ours = {variable_of(field) for field in LocalSettings.model_fields}
        self._environment = {name: value for name, value in os.environ.items() if name not in ours} | given

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sluice_local", *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As in a terminal, whose signals go to all processes of the command.
            start_new_session=True,
        )

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints that ends by itself."""
        with self.begin(*words) as command:
            printed, error = command.communicate(timeout=COMMAND_RUNS_S)
        assert command.returncode == code, f"{words}: {printed} {error}"
        return printed

    def pid(self, name: str) -> int | None:
        """The process of a part that runs."""
        record = ProcessRecord.read(process_record_path(self.settings.home, name))
        return record.pid if record is not None and record.is_alive() else None

    def supervisor(self) -> SupervisorRecord | None:
        return SupervisorRecord.read(self.settings.home)


@pytest.fixture
def commands(runs_folder: Path, request: pytest.FixtureRequest) -> Iterator[Commands]:
    """For Redis alone."""
    commands = Commands(bare_system(runs_folder / request.node.name, zookeeper="127.0.0.1:1"))
    try:
        yield commands
    finally:
        commands.run("down")


def test_up_starts_what_has_ended_and_down_ends_all(commands: Commands) -> None:
    assert "ready after" in commands.run("up")
    first, supervisor = commands.pid("redis"), commands.supervisor()
    assert first is not None and supervisor is not None
    assert commands.run("up").startswith("already up")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: commands.pid("redis") is None, SETTLED_S, "it has ended")
    assert re.search(r"^redis .*ended", commands.run("status", code=3), re.MULTILINE)
    assert "starting again what has ended" in commands.run("up")
    second, same = commands.pid("redis"), commands.supervisor()
    assert second not in (None, first) and same is not None and same.pid == supervisor.pid
    commands.run("status")
    assert commands.run("down") == "stopped\n"
    assert commands.pid("redis") is None and commands.supervisor() is None
    assert is_free(commands.settings.redis_port)


def test_run_serves_until_an_interrupt_and_leaves_no_process(commands: Commands) -> None:
    with commands.begin("run", "--with-parent") as run:
        eventually(lambda: (one := commands.supervisor()) and one.state == "ready", SETTLED_S, "it is ready")
        found = commands.supervisor()
        assert found is not None and found.pid == run.pid and commands.pid("redis") is not None
        commands.run("status")
        os.killpg(run.pid, signal.SIGINT)
        printed, error = run.communicate(timeout=COMMAND_RUNS_S)
    assert (run.returncode, error) == (0, "") and printed.splitlines()[-1].endswith("stopped")
    assert commands.pid("redis") is None and commands.supervisor() is None
    assert is_free(commands.settings.redis_port)


def test_the_journal_is_copied_as_the_guide_for_operators_says(platform: System, runs_folder: Path) -> None:
    """The script of docs/operations.md: nothing is lost or changed, and nothing is copied twice."""
    journal = fill_journal(platform)
    zookeeper, redis = platform.zookeeper, platform.redis_url
    with bare_system(runs_folder / "other", kafka_bootstrap=None, zookeeper=zookeeper, redis_url=redis) as other:
        done = copy_journal(platform, other)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "partition 0: 500 records\npartition 1: 500 records\npartition 2: 0 records\n"
        assert contents(read(other.kafka_bootstrap, JOURNAL.name)) == journal
        again = copy_journal(platform, other)
        assert (again.returncode, again.stderr) == (1, f"{other.kafka_bootstrap} has a {JOURNAL.name} already\n")


def fill_journal(platform: System) -> list[tuple[object, ...]]:
    """Write a thousand records, of which one is large, and leave a partition empty; return what is there."""
    client = {"bootstrap.servers": platform.kafka_bootstrap}
    ensure_topics(client, partitions=3, replication=1)
    producer = Producer({**client, "message.max.bytes": MAX_RECORD_BYTES})
    for number in range(1000):
        value = bytes(5 << 20) if number == 0 else b"%d" % number
        key = None if number % 7 == 0 else f"scope/{number % 5}"
        headers: list[tuple[str, str | bytes | None]] = [("ce_id", str(number)), ("ce_type", "StreamCreated")]
        producer.produce(JOURNAL.name, value, key, number % 2, headers=headers[: number % 3])
    assert producer.flush(SETTLED_S) == 0
    written = contents(read(platform.kafka_bootstrap, JOURNAL.name))
    assert len(written) == 1000
    return written


def contents(records: list[Message]) -> list[tuple[object, ...]]:
    return [(m.partition(), m.key(), m.value(), m.headers()) for m in records]


def copy_journal(old: System, new: System) -> subprocess.CompletedProcess[str]:
    """Run the script, with the addresses that a reader puts in, and a queue that is full all the time."""
    (script,) = re.findall(r"^```python\n(.*?)^```$", (DOCS / "operations.md").read_text(), re.DOTALL | re.MULTILINE)
    for line, filled in (
        (r"^OLD, NEW, .*$", f'OLD, NEW, REPLICATION = "{old.kafka_bootstrap}", "{new.kafka_bootstrap}", 1'),
        (r'"acks": "all"', '"acks": "all", "queue.buffering.max.messages": 100'),
    ):
        script, count = re.subn(line, filled, str(script), flags=re.MULTILINE)
        assert count == 1, line
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=COPY_RUNS_S, check=False)


def bare_system(home: Path, **settings: Any) -> System:
    """ZooKeeper and Redis alone, unless settings say otherwise: enough to see how a system behaves."""
    return System(
        home,
        segment_stores=0,
        api_gateways=0,
        stream_workflows=0,
        cluster_managers=0,
        txn_managers=0,
        **{"kafka_bootstrap": "127.0.0.1:1", **settings},
    )
