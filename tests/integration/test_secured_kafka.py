"""A Kafka that wants TLS and a password, with Kafka's own bounds of sessions: all clients get along with it.

Spark's are in `test_retention_spark.py`, whose Kafka is such a one, too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.kafka import read
from support.secured_kafka import secure, shows_password
from typer.testing import CliRunner

from harness import System, eventually
from sluice.kafka.topics import JOURNAL, STATISTICS_WINDOWS
from sluice_cli.main import app

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

DEADLINE_S = 300.0
SERVICES = ("stream-workflows-0", "cluster-manager-0", "txn-manager-0", "api-gateway-0")


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
    system = System(runs_folder / "secured-kafka", segment_stores=0, partitions=4, stop_timeout_s=60.0)
    environment = {"SLUICE_API": system.rest_url, **secure(system)}
    try:
        for store in ("kafka", "zookeeper", "redis"):
            system.start(store, deadline_s=DEADLINE_S)
        for service in SERVICES:
            system.start(service, wait=False, environment=environment)
        yield Secured(system, environment)
    finally:
        system.down()


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


def test_no_log_and_no_command_line_shows_the_password(secured: Secured) -> None:
    assert shows_password(secured.system, SERVICES) == []
