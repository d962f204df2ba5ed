"""`sluice verify` on a whole system whose segments are damaged behind its back."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from support.pravega import manager
from typer.testing import CliRunner

from harness import System
from sluice.domain.segment import segment_id, segment_name
from sluice.pravega import Host, SegmentStoreClient
from sluice_cli.main import app

pytestmark = pytest.mark.integration

TRANSACTIONS, EVENTS = 40, 8


class Damage:
    """A stream of the system, its command line, and a client that reaches its segments past Sluice."""

    def __init__(self, system: System, configuration: Path) -> None:
        self.scope = f"verify{uuid4().hex[:8]}"
        self._rest = system.rest_url
        self._environment = {
            "SLUICE_API": system.rest_url,
            "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap,
            "SLUICE_CONTROLLER": f"tcp://{system.grpc_address}",
            "XDG_CONFIG_HOME": str(configuration),
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, arguments, env=self._environment)
        assert result.exit_code == code, f"{arguments}: {result.stdout} {result.stderr} {result.exception!r}"
        return result.stdout

    def verify(self, *options: str, code: int) -> list[dict[str, Any]]:
        """What is found in the scope, and at last the summary."""
        lines = self.run("verify", "--scope", self.scope, "--json", *options, code=code).splitlines()
        return [line for line in map(json.loads, lines) if line["type"] != "under-way"]

    def name(self, id: int) -> str:
        return segment_name(self.scope, "orders", id)

    def on_stores(self, act: Callable[[SegmentStoreClient], Awaitable[object]]) -> None:
        """Does something to the segment stores."""
        items = httpx.get(f"{self._rest}/sluice/v1/containers", timeout=60).json()["items"]
        hosts = {item["container"]: item["store"].rpartition(":") for item in items}

        async def run() -> None:
            client = SegmentStoreClient(lambda c: Host(hosts[c][0], int(hosts[c][2])), len(hosts))
            try:
                await act(client)
            finally:
                await client.close()

        asyncio.run(run())


@pytest.fixture
def damage(system: System, tmp_path: Path) -> Damage:
    found = Damage(system, tmp_path)
    found.run("scope", "create", found.scope)
    found.run("stream", "create", f"{found.scope}/orders", "--segments", "2")
    found.run("stream", "write", f"{found.scope}/orders", "first", "second", "third")
    found.run("stream", "scale", f"{found.scope}/orders", "--seal", "0", "--into", "0..0.25", "--into", "0.25..0.5")
    found.run("stream", "create", f"{found.scope}/gone", "--segments", "3")
    found.run("stream", "seal", f"{found.scope}/gone")
    found.run("stream", "delete", f"{found.scope}/gone")
    return found


def test_damage_on_segment_stores_is_found_and_nothing_is_made_up(damage: Damage) -> None:
    whole = [json.loads(line) for line in damage.run("verify", "--json").splitlines()]
    assert [line for line in whole if line["type"] == "finding"] == [] and whole[-1]["segments"] > 8
    (summary,) = damage.verify(code=0)
    # Of the stream two and two segments, of the deleted one three, and one of each mark stream.
    assert (summary["segments"], summary["notAnswered"]) == (9, 0)
    damage.on_stores(lambda store: store.seal_segment(damage.name(1)))
    damage.on_stores(lambda store: store.delete_segment(damage.name(0)))
    damage.on_stores(lambda store: store.delete_segment(damage.name(segment_id(1, 2))))
    damaged = {damage.name(0): "missing", damage.name(1): "sealed", damage.name(segment_id(1, 2)): "missing"}
    *findings, summary = damage.verify(code=1)
    assert {f["segment"]: f["problem"] for f in findings} == damaged and summary["findings"] == 3
    *refused, summary = damage.verify("--repair", code=1)
    assert {f["segment"]: f["problem"] for f in refused} == damaged and summary["repaired"] == 0
    assert all(f["repair"].startswith("not repaired: ") and f["repaired"] is False for f in refused)
    # The scale that the refusal names puts another segment in the place of the sealed one.
    damage.run("stream", "scale", f"{damage.scope}/orders", "--seal", "1", "--into", "0.5..1")
    *findings, _ = damage.verify(code=1)
    assert damage.name(1) not in {f["segment"] for f in findings} and len(findings) == 2


def test_aborts_of_transactions_that_are_being_written_leave_no_segment(system: System, damage: Damage) -> None:
    """Every second one is aborted while the client, which does not wait for its events, sets up appends."""
    # The client's threads end with its manager.
    streams = manager(system.grpc_address)
    writer = streams.create_transaction_writer(damage.scope, "orders", 1)
    for number in range(TRANSACTIONS):
        transaction = writer.begin_txn()
        for event in range(EVENTS):
            transaction.write_event(f"{number}:{event}", f"key-{event}")
        (transaction.abort if number % 2 else transaction.commit)()
    *findings, summary = damage.verify(code=0)
    assert not findings and summary["segments"] > TRANSACTIONS
