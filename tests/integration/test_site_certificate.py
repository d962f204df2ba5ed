"""A secured system whose gateway and segment stores show a site's certificate, which names this machine alone."""

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from integration.test_java_client import JavaClient, build
from pravega_client import StreamScalingPolicy
from support.effort import by_hand
from support.pravega import read_all
from support.secured_system import Secured
from support.wait import SOON_S, eventually

from harness import System
from sluice.security.authority import make_authority, make_certificate, trust_store
from sluice_local.security import SITE
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), by_hand("a system of its own")]

SITE_NAME = socket.gethostname().lower()
"""A name that leads here."""
REPORT_SOON = {
    "autoScale.cooldown.time.seconds": "0",
    "autoScale.mute.time.seconds": "0",
    "autoScale.cache.cleanUp.interval.seconds": "3",
    "autoScale.cache.expiry.seconds": "8",
}
REPORTS = re.compile(r"Setting up appends for writer: \S+ on segment: _system/_requeststream/")


async def test_clients_that_trust_a_site_alone_reach_all_by_its_name(runs_folder: Path, tmp_path: Path) -> None:
    folder = runs_folder / "site-system" / "security"
    folder.mkdir(parents=True)
    authority, key = folder / SITE.authority, tmp_path / "site-ca.key"
    make_authority(authority, key)
    make_certificate(authority, key, [SITE_NAME], folder / SITE.certificate, folder / SITE.key)
    (tmp_path / "site.jks").write_bytes(trust_store(authority.read_text(), "changeit"))
    site: dict[str, Any] = {"grpc_published_host": SITE_NAME, "host": "::", "segment_store_options": REPORT_SOON}
    with System(folder.parent, secure=True, segment_stores=1, partitions=4, **site) as system:
        users = Secured(system)
        client = users.manager("admin")
        client.create_scope("demo")
        by_rate = StreamScalingPolicy.auto_scaling_policy_by_event_rate(1000, 2, 1)
        client.create_stream_with_policy("demo", "orders", by_rate)
        events = client.create_writer("demo", "orders")
        for number in range(10):
            events.write_event(str(number), "key")
        events.flush()
        group = client.create_reader_group("group", "demo", "orders")
        assert await read_all(group, 10, 60.0) == [str(number) for number in range(10)]
        options = (f"-Djavax.net.ssl.trustStore={tmp_path / 'site.jks'}",)
        classpath, log = build(LocalSettings().home / "java-client"), runs_folder / "site-java-client.log"
        with JavaClient(classpath, users.controller, log, options, users.java_environment("admin")) as java:
            assert java.problem("TransactionLife") is None
        assert (await asyncio.to_thread(users.sluice, "admin", "verify"))[0] == 0
        log = system.log("segment-store-0")
        eventually(lambda: REPORTS.search(log.read_text()), SOON_S, "the store reports its load through the gateway")
