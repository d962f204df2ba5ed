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
from kazoo.client import KazooClient
from redis import Redis

from harness import System, eventually
from harness.system import claimed_ports
from sluice_local.errors import PartFailed, PortTaken
from sluice_local.ownership import SupervisorRecord
from sluice_local.ports import is_free
from sluice_local.process import ProcessRecord, start_ticks
from sluice_local.running import process_record_path
from sluice_local.settings import LocalSettings, variable_of

pytestmark = pytest.mark.integration

HOSTS = "/pravega/pravega-cluster/cluster/hosts"
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
