"""Pravega's schema registry, unmodified, and the program of `docs/schema-registry.md`."""

import subprocess
from pathlib import Path

import pytest
from integration.test_java_client import build
from support.effort import by_hand
from support.instances import have_instances
from support.ports import free_port

from harness import System
from sluice_local import java
from sluice_local.home import CLONE, HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), by_hand("the registry of others")]

PROJECT = CLONE / "examples" / "schema_registry"
REGISTRY = "schema-registry"
OPTIONS = ("-XX:+UseSerialGC", "-Xmx256m", *java.SHORT_LIVED, "-Djava.net.preferIPv4Stack=true", "-Dlog.level=WARN")
RUN_LASTS_S = 120.0
STARTS_S = 120.0


class Orders:
    """The program, run once for each command."""

    def __init__(self, classpath: str, controller: str, registry: str, folder: Path) -> None:
        self._command = (java.executable(), *OPTIONS, "-cp", classpath, "Orders", controller, registry)
        self._folder = folder

    def run(self, command: str) -> list[str]:
        """What it prints, without its log."""
        ended = self._ended(command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return [line for line in ended.stdout.splitlines() if line.startswith(("{", "VersionInfo"))]

    def refusal(self, command: str) -> str:
        ended = self._ended(command)
        assert ended.returncode == 1, ended.stdout + ended.stderr
        return ended.stderr

    def _ended(self, command: str) -> "subprocess.CompletedProcess[str]":
        words = (*self._command, *command.split())
        return subprocess.run(words, cwd=self._folder, capture_output=True, text=True, timeout=RUN_LASTS_S, check=False)


def registry_of(system: System, classpath: str, port: int, folder: Path) -> Part:
    options = {
        "service.rest.listener.port": port,
        "service.rest.published.host.nameOrIp": HOST,
        "store.pravega.controller.connect.uri": f"tcp://{system.grpc_address}",
    }
    given = [f"-DschemaRegistry.{name}={value}" for name, value in options.items()]
    main = "io.pravega.schemaregistry.service.Main"
    return Part(
        name=REGISTRY,
        command=(java.executable(), *OPTIONS, *given, "-cp", classpath, main),
        folder=folder,
        log=system.settings.logs_dir / f"{REGISTRY}.log",
        address=f"{HOST}:{port}",
        claims=(PortClaim(port, REGISTRY, "none"),),
        probe=Probe(ProbeKind.TCP, port),
        stop_rank=StopRank.SERVICE,
    )


def test_schemas_and_their_events_outlive_a_kill_of_registry_services_and_stores(
    disturbed: System, tmp_path: Path
) -> None:
    system, port = have_instances(disturbed, 1, STARTS_S), free_port()
    classpath = build(LocalSettings().home / REGISTRY, PROJECT)
    system.add(registry_of(system, classpath, port, tmp_path))
    orders = Orders(classpath, f"tcp://{system.grpc_address}", f"http://{HOST}:{port}", tmp_path)
    dying = [name for name in system.names if name.startswith("segment-store-") and system.is_running(name)]
    dying += ["stream-workflows-0", "api-gateway-0", REGISTRY]
    system.start(REGISTRY, deadline_s=STARTS_S)
    orders.run("write first 0 10")
    orders.run("write second 10 10")
    schemas = orders.run("schemas")
    assert len(schemas) == 2
    for name in dying:
        system.kill(name)
    for name in dying:
        system.start(name, wait=False)
    for name in dying:
        system.wait_ready(name, STARTS_S)
    assert orders.run("schemas") == schemas
    assert "refused" in orders.refusal("write renumbered 20 1")
    orders.run("write second 20 10")
    without_note = [f'{{"number": {number}}}' for number in range(10)]
    with_note = [f'{{"number": {number}, "note": "by hand"}}' for number in range(10, 30)]
    assert orders.run("read 30") == without_note + with_note
    system.stop(REGISTRY)
