"""A Kafka that wants TLS and a password, with Kafka's own bounds of sessions: all clients get along with it.

The test's own clients use a listener without either.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.decisions import hot, requests_of, tell
from support.kafka import read
from support.spark import SPARK
from typer.testing import CliRunner

from harness import System, eventually
from sluice.domain.stream.commands import ScaleStream
from sluice.kafka.topics import JOURNAL, STATISTICS_WINDOWS
from sluice_cli.main import app
from sluice_local.home import HOST
from sluice_local.ports import find_block

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

DEADLINE_S = 300.0
SERVICES = ("stream-workflows-0", "cluster-manager-0", "txn-manager-0", "api-gateway-0", SPARK)
PASSWORD = "p4ss;word=x"
_KEYTOOL_RUNS_S = 60.0
_LISTENER = "listener.name.secured"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Secured:
    """A whole system but for segment stores; `environment` is for who wants to reach its Kafka."""

    system: System
    environment: dict[str, str]

    def sluice(self, line: str) -> str:
        """What a command prints."""
        result = CliRunner().invoke(app, line.split(), env=self.environment)
        assert result.exit_code == 0, f"sluice {line}: {result.stderr or result.exception!r}"
        return result.stdout


@pytest.fixture(scope="module")
def secured(runs_folder: Path) -> Iterator[Secured]:
    system = System(
        runs_folder / "secured-kafka", segment_stores=0, retention_sparks=1, partitions=4, stop_timeout_s=60.0
    )
    folder = system.settings.home / "secured"
    folder.mkdir(parents=True)
    port = find_block(1).start
    environment = {
        "SLUICE_API": system.rest_url,
        "SLUICE_KAFKA_BOOTSTRAP": f"{HOST}:{port}",
        "SLUICE_KAFKA_CONF": str(configuration(folder)),
        "SLUICE_SCALE_TRIGGER_S": "0.5",
    }
    system.configure_kafka({**listeners(system, port), **guarded(folder)})
    try:
        for store in ("kafka", "zookeeper", "redis"):
            system.start(store, deadline_s=DEADLINE_S)
        for service in SERVICES:
            system.start(service, wait=False, environment=environment)
        yield Secured(system, environment)
    finally:
        system.down()


def configuration(folder: Path) -> Path:
    """Make the broker's certificate, and return what clients are configured with."""
    store, authority, file = folder / "kafka.p12", folder / "ca.pem", folder / "kafka.json"
    pair = "-genkeypair -alias kafka -keyalg RSA -dname CN=kafka -ext san=ip:127.0.0.1"
    keytool(f"{pair} -storetype PKCS12 -storepass {PASSWORD} -keystore", store)
    keytool(f"-exportcert -rfc -alias kafka -storepass {PASSWORD} -keystore {store} -file", authority)
    conf = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "sluice",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(authority),
        "fetch.message.max.bytes": 4_000_000,
    }
    file.write_text(json.dumps(conf))
    return file


def keytool(arguments: str, file: Path) -> None:
    command = [shutil.which("keytool") or "keytool", *arguments.split(), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_KEYTOOL_RUNS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def listeners(system: System, port: int) -> dict[str, str]:
    plain, controller = system.kafka_bootstrap, f"{HOST}:{system.settings.kafka_controller_port}"
    both = f"PLAINTEXT://{plain},SECURED://{HOST}:{port}"
    return {
        "listeners": f"{both},CONTROLLER://{controller}",
        "advertised.listeners": both,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
    }


def guarded(folder: Path) -> dict[str, str | int]:
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        f"{_LISTENER}.plain.sasl.jaas.config": f'{_PLAIN} required user_sluice="{PASSWORD}";',
        f"{_LISTENER}.ssl.keystore.type": "PKCS12",
        f"{_LISTENER}.ssl.keystore.location": str(folder / "kafka.p12"),
        f"{_LISTENER}.ssl.keystore.password": PASSWORD,
        # Kafka's own.
        "group.min.session.timeout.ms": 6_000,
    }


def test_services_and_command_line_work(secured: Secured) -> None:
    eventually(lambda: secured.sluice("scope create demo"), DEADLINE_S, "a scope is created")
    assert JOURNAL.name in secured.sluice("topic list")
    assert "ScopeCreated" in secured.sluice("topic tail journal --from -10m --no-follow")


def test_members_of_groups_say_which_session_they_got(secured: Secured) -> None:
    log = secured.system.log("stream-workflows-0")
    eventually(lambda: '"message":"joined","' in log.read_text(), DEADLINE_S, "it has joined")
    (joined,) = [line for line in log.read_text().splitlines() if '"message":"joined"' in line]
    assert json.loads(joined)["session_s"] == 6.0


def test_faust_reads_and_writes(secured: Secured) -> None:
    bootstrap = secured.system.kafka_bootstrap
    eventually(lambda: read(bootstrap, STATISTICS_WINDOWS.name), DEADLINE_S, "marks are in the table")


def test_spark_reads_and_writes(secured: Secured) -> None:
    bootstrap = secured.system.kafka_bootstrap
    secured.system.wait_ready(SPARK, DEADLINE_S)
    tell(bootstrap, hot("hot", time.time_ns() // 1_000_000))
    eventually(lambda: requests_of(bootstrap, ScaleStream, ["hot"]), DEADLINE_S, "it decides")


def test_no_log_and_no_command_line_shows_the_password(secured: Secured) -> None:
    for name in SERVICES:
        assert PASSWORD not in secured.system.log(name).read_text(), name
        commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert PASSWORD not in commands
