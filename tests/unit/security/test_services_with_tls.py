"""What the settings of TLS make of a service."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.certificates import Authority
from unit.pravega.fake_store import created, fake_store

from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.errors import SegmentStoreError
from sluice.process import Process
from sluice.runtime import Runtime
from sluice.security.tls import PROTOCOLS, serving_context, watched_identity
from sluice.settings import ServiceSettings
from sluice.workflows import data_plane

NAME = "s/t/0.#epoch.0"
STARTS_S = 120.0


@pytest.mark.parametrize("check_host", [True, False])
async def test_a_service_commands_segment_stores_as_its_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_host: bool
) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("store", "DNS:elsewhere")
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    settings = ServiceSettings(
        store_tls=True, store_tls_authorities=str(authority.file), store_tls_check_host=check_host
    )
    runtime = Runtime("service", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    async with fake_store(created, tls=serving_context(identity)) as store, runtime.stack:
        monkeypatch.setattr(
            data_plane, "cluster_of", lambda _: SimpleNamespace(containers=dict.fromkeys(range(4), store.host))
        )
        client = data_plane.connect(runtime, 5.0)
        if check_host:
            with pytest.raises(SegmentStoreError, match="IP address mismatch"):
                await client.create_segment(NAME, 0, 0)
        else:
            await client.create_segment(NAME, 0, 0)
    assert runtime.degraded["TLS to segment stores"]() is None


async def test_files_for_kafka_that_change_degrade_a_service_until_its_next_start(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text('{"linger.ms": 5}')
    settings = ServiceSettings(kafka_conf=str(file))  # type: ignore[arg-type]
    process = Process("service", settings)
    (watched,) = process.watched
    file.write_text('{"linger.ms": 6}')
    for _ in range(2):
        watched.look()
        assert "read only when the service starts" in (process.degraded["files for Kafka"]() or "")


def test_a_service_with_half_of_its_certificate_ends_with_status_2(tmp_path: Path) -> None:
    certificate = str(Authority(tmp_path).issue("server").certificate)
    environment = {**os.environ, "SLUICE_TLS_CERTIFICATE": certificate, "SLUICE_HEALTH_PORT": "0"}
    command = [sys.executable, "-m", "cluster_manager"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STARTS_S, check=False)
    assert ended.returncode == 2
    assert "SLUICE_TLS: a certificate is given without its key" in ended.stderr
