"""The command line on the whole system: every example of its reference, and how it ends where nothing answers."""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from integration.test_client_library import java_peer
from support.wait import eventually
from typer.testing import CliRunner

from harness import System
from sluice_cli.main import app

pytestmark = pytest.mark.integration

REFERENCE = Path(__file__).parents[2] / "docs" / "cli.md"
SCRIPT = Path(sys.executable).parent / "sluice"
EXAMPLE = re.compile(r"^    sluice (.+)$", re.MULTILINE)
REQUEST = re.compile(r"\(request ([^)]+)\)")
FOLLOWS_S = 60.0
TRANSACTION = re.compile(r"transaction ([0-9a-f-]{36})")


class Tour:
    """Runs examples in this process, as one after the other would type them."""

    def __init__(self, system: System, configuration: Path) -> None:
        self.scope = f"demo{uuid4().hex[:8]}"
        self.request = self.transaction = ""
        self._environment = {
            "SLUICE_API": system.rest_url,
            "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
            "SLUICE_CONTROLLER": f"tcp://{system.grpc_address}",
            "XDG_CONFIG_HOME": str(configuration),
        }

    def run(self, line: str) -> str:
        """What the command prints; `$REQUEST` is the last change, `$TRANSACTION` the last one begun."""
        known = line.replace("$REQUEST", self.request).replace("$TRANSACTION", self.transaction)
        arguments = self._arguments(known)
        if arguments[:2] == ["topic", "tail"] and not {"--no-follow", "--count"} & set(arguments):
            arguments.append("--no-follow")
        result = CliRunner().invoke(app, arguments, env=self._environment)
        assert result.exit_code == 0, f"sluice {shlex.join(arguments)}: {result.stderr or result.exception!r}"
        for pattern, name in ((REQUEST, "request"), (TRANSACTION, "transaction")):
            found = pattern.search(result.stdout)
            if found:
                setattr(self, name, found[1])
        return result.stdout

    def begin(self, line: str) -> subprocess.Popen[str]:
        """A process that runs the command; what it prints can be read."""
        environment = {**os.environ, **self._environment}
        return subprocess.Popen([SCRIPT, *self._arguments(line)], env=environment, stdout=subprocess.PIPE, text=True)

    def _arguments(self, line: str) -> list[str]:
        return [re.sub(r"\bdemo\b", self.scope, argument) for argument in shlex.split(line)]


@pytest.fixture
def tour(system: System, tmp_path: Path) -> Tour:
    return Tour(system, tmp_path)


def test_every_example_of_the_reference_works(tour: Tour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Following has no end; its own test ends it.
    examples = [line for line in EXAMPLE.findall(REFERENCE.read_text()) if not line.startswith("follow")]
    assert len(examples) > 50
    said = {}
    lines_of_json = ("topic tail", "stream read", "table entries", "verify")
    for line in examples:
        out = tour.run(line)
        said[line] = out.replace(tour.scope, "demo")
        if "--json" in line:
            documents = out.splitlines() if line.startswith(lines_of_json) else [out]
            assert all(json.loads(one) for one in documents), line
    assert said["table get demo/settings currency"] == "EUR\n"
    assert json.loads(said["table entries demo/settings --json"])["value"] == {"text": "EUR"}
    assert "events:100 per segment and second, factor 2" in said["stream show demo/clicks"]
    assert "time=1h..2d" in said["stream show demo/clicks"]
    assert "clicks" in said["stream list demo --tag web"] and "orders" not in said["stream list demo --tag web"]
    assert said["stream segments demo/orders"].count("#epoch.1") == 8
    assert said["stream segments demo/orders --epoch 0"].count("#epoch.0") == 4
    assert said["stream read demo/orders"] == "first\nsecond\n"
    assert "readiness.json" in said["diagnose"] and "\nwithout " not in said["diagnose"]
    assert "StreamEpochAdded" in said["topic tail journal --from -10m --stream demo/orders"]
    assert "made so by  " in said["stream show demo/orders --at now"]
    past = json.loads(said["stream show demo/orders --at now --json"])
    assert past["epoch"] == 2 and len(past["segments"]) == 7
    assert " 0 differ, 0 not answered for" in said["verify --scope demo"]
    deleted = json.loads(said["trace $REQUEST --since -5m --json"])
    kinds = [s["types"][0] for s in deleted["steps"]]
    assert kinds == ["DeleteStream", "StreamDeletionStarted", "StreamDeleted"]
    assert deleted["answer"]["status"] == "SUCCESS"
    assert "ScopeDeleted" in said["trace $REQUEST"], "the last trace is that of the scope's deletion"
    assert "follow-up" in said["trace $REQUEST"] and "StreamDeleted" in said["trace $REQUEST"]


def test_following_ends_after_so_many_changes_and_goes_on_from_any_position(tour: Tour) -> None:
    tour.run("scope create demo")
    numbers = count()
    with tour.begin("follow demo --count 1 --json") as following:

        def ends_with_a_change() -> bool:
            tour.run(f"stream create demo/stream{next(numbers)}")
            return following.poll() is not None

        try:
            eventually(ends_with_a_change, FOLLOWS_S, "it has followed one change")
        finally:
            following.kill()
        assert following.returncode == 0
        first = json.loads(following.communicate()[0])
    tour.run("stream create demo/late")
    seen: list[str] = []
    while not any(name.endswith("/late") for name in seen):
        event = json.loads(tour.run(f"follow demo --since {first['position']} --count 1 --json"))
        seen, first = [one["aggregate"] for one in event["items"]], event
    tour.run("scope delete demo --recursive")


def test_the_java_client_and_the_command_line_share_a_table(system: System, tour: Tour, runs_folder: Path) -> None:
    tour.run("scope create demo")
    tour.run("table create demo/shared --partitions 4 --key-bytes 4 --secondary-key-bytes 2")
    tour.run("table put demo/shared 0003 'by hand' --secondary zz")
    peer = ("TablePeer", f"tcp://{system.grpc_address}", tour.scope, "shared", "20")
    assert java_peer(runs_folder / "table.log", *peer) == ["by hand"]
    for number in range(20):
        assert tour.run(f"table get demo/shared {number:04} --secondary aa") == f"value {number}\n"
    found = [json.loads(line) for line in tour.run("table entries demo/shared --json").splitlines()]
    assert len(found) == 21 and len({entry["partition"] for entry in found}) == 4
    tour.run("scope delete demo --recursive")


def test_what_the_journal_says_is_what_the_api_says(tour: Tour) -> None:
    tour.run("scope create demo")
    tour.run("stream create demo/orders --segments 3 --retain time=1h..2d --tag a --tag b")
    tour.run("stream scale demo/orders --to 5")
    now = json.loads(tour.run("stream show demo/orders --json"))
    past = json.loads(tour.run("stream show demo/orders --at now --json"))
    record, at = past.pop("record"), past.pop("at")
    assert now["createdAt"] < record["at"] <= at and record["types"]
    # Who decides by its policy is known of now alone; here nobody does.
    del now["allowed"], now["undecidedSince"]
    for segment in now["segments"]:
        del segment["container"], segment["store"]
    assert past == now
    tour.run("scope delete demo --recursive")


def test_the_script_ends_as_it_says(system: System) -> None:
    environment = {**os.environ, "SLUICE_API": system.rest_url, "SLUICE_KAFKA_BOOTSTRAP": "127.0.0.1:9"}

    def sluice(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    listed = sluice("scope", "list", "--json")
    assert listed.returncode == 0 and {"name": "_system"} in json.loads(listed.stdout)
    refused = sluice("stream", "show", f"{uuid4().hex}/orders")
    assert refused.returncode == 1 and refused.stdout == "" and refused.stderr.startswith("Error: ")
    away = sluice("topic", "list", "--json")
    assert away.returncode == 3 and away.stdout == "" and "--kafka" in away.stderr
