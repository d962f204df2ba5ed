"""A system that clients reach by IPv6, and whose segment stores are named by such an address alone."""

import asyncio
from pathlib import Path

import httpx
import pytest
from support.controller import controller, unique
from support.effort import by_hand
from support.pravega import WriterThread, check_exactly_once, manager, read_all
from typer.testing import CliRunner

from harness import System
from sluice.addresses import address_of, host_and_port
from sluice.controller_api import controller_pb2 as pb
from sluice_cli.main import app

pytestmark = [pytest.mark.integration, by_hand("a system of its own")]

HOST = "::1"
DEADLINE_S = 60.0
EVENTS = 200
STORE = "pravegaservice.service"
OF_STORE = {f"{STORE}.listener.host.nameOrIp": "::", f"{STORE}.published.host.nameOrIp": HOST}


def test_clients_stores_and_the_command_line_meet_over_ipv6(tmp_path: Path) -> None:
    system = System(tmp_path, segment_stores=1, segment_store_options=OF_STORE)
    system.configure("api-gateway-0", {"SLUICE_GRPC_PUBLISHED_HOST": HOST})
    with system:
        gateway = address_of(HOST, host_and_port(system.grpc_address)[1])
        api = f"http://{address_of(HOST, host_and_port(system.rest_url.removeprefix('http://'))[1])}"
        store = address_of(HOST, system.settings.segment_store_port)
        scope = unique("sc")

        streams = manager(gateway)
        streams.create_scope(scope)
        streams.create_stream(scope, "st", 2)
        writer = WriterThread(streams, scope, "st", "w", EVENTS)
        writer.start()
        writer.finish(DEADLINE_S)
        group = streams.create_reader_group(unique("rg"), scope, "st")
        check_exactly_once(asyncio.run(read_all(group, EVENTS, DEADLINE_S)), {"w": EVENTS})

        with controller(gateway) as client:
            assert client.store_of(scope, "st") == store
            (node,) = client.call("getControllerServerList", pb.ServerRequest()).nodeURI
            assert address_of(node.endpoint, node.port) == gateway
        containers = httpx.get(f"{api}/sluice/v1/containers", timeout=60).json()
        assert containers["stores"] == [store] and {item["store"] for item in containers["items"]} == {store}

        where = {
            "SLUICE_API": api,
            "SLUICE_CONTROLLER": f"tcp://{gateway}",
            "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
        }
        for line in (f"stream write {scope}/st one", f"stream read {scope}/st --count {EVENTS + 1}", "verify"):
            found = CliRunner().invoke(app, line.split(), env=where)
            assert found.exit_code == 0, f"{line}: {found.output}"
