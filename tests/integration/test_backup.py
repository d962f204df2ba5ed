"""A back-up of a system that serves, and its restore with twice the partitions beside a data plane that has gone on."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from support.controller import Controller, controller, unique
from support.pravega import check_exactly_once, manager, read_all
from support.scaling import scale_to
from support.writer import WriterProcess
from typer.testing import CliRunner

from harness import System, eventually
from sluice.kafka.topics import TOPICS
from sluice_cli.main import app

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

DEADLINE_S = 180.0
PARTITIONS = 4
SERVICES = ("cluster-manager-0", "stream-workflows-0", "txn-manager-0", "api-gateway-0")


@pytest.fixture
def backed_up(runs_folder: Path) -> Iterator[System]:
    with System(runs_folder / "backup", segment_stores=1, partitions=PARTITIONS) as found:
        yield found


def sluice(system: System, *words: object) -> str:
    """What a command prints."""
    environment = {"SLUICE_API": system.rest_url, "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap}
    result = CliRunner().invoke(app, [str(word) for word in words], env=environment)
    assert result.exit_code == 0, f"{words}: {result.stderr or result.exception!r}"
    return result.stdout


def lose_topics(system: System) -> None:
    admin = AdminClient({"bootstrap.servers": system.kafka_bootstrap})
    names = {topic.name for topic in TOPICS}
    for deleted in admin.delete_topics(sorted(names), operation_timeout=30).values():
        deleted.result()
    eventually(lambda: not names & set(admin.list_topics(timeout=10).topics), DEADLINE_S, "the topics are gone")


def has_written(writer: WriterProcess, least: int) -> bool:
    return writer.acknowledged > least


def ids(gateway: Controller, scope: str) -> set[Any]:
    return {segment for segment, _, _ in gateway.segments(scope, "st")}


async def test_what_was_written_behind_the_back_up_is_read_and_writers_go_on(backed_up: System, tmp_path: Path) -> None:
    scope, folder = unique("backup"), tmp_path / "b"
    with controller(backed_up.grpc_address) as gateway:
        assert gateway.create_scope(scope) == "SUCCESS"
        assert gateway.create_stream(scope, "st", 2) == "SUCCESS"
        assert gateway.create_stream(scope, "still", 1) == "SUCCESS"
        with WriterProcess(backed_up.grpc_address, scope, "st", "a") as writer:
            eventually(lambda: writer.acknowledged > 100, 60, "it writes")
            # Commands have a loop of their own.
            await asyncio.to_thread(sluice, backed_up, "backup", "create", folder)
            await asyncio.to_thread(sluice, backed_up, "backup", "verify", folder)
            given = ids(gateway, scope)
            for count in (3, 2, 4, 3):
                reached = writer.acknowledged
                await asyncio.to_thread(scale_to, gateway, scope, "st", count)
                given |= ids(gateway, scope)
                eventually(partial(has_written, writer, reached + 50), 60, "it goes on")
            for service in reversed(SERVICES):
                backed_up.stop(service)
            lose_topics(backed_up)
            words = ("backup", "restore", folder, "--partitions", 2 * PARTITIONS)
            restored = await asyncio.to_thread(sluice, backed_up, *words)
            assert "numbered from" in restored
            for service in SERVICES:
                backed_up.configure(service, {"SLUICE_PARTITIONS": str(2 * PARTITIONS)})
                backed_up.start(service, wait=False)
            for service in SERVICES:
                backed_up.wait_ready(service, DEADLINE_S)
            eventually(lambda: sluice(backed_up, "workflow", "list", "--json").strip() == "[]", 60, "all is restored")
            after = writer.acknowledged
            eventually(lambda: writer.acknowledged > after + 100, DEADLINE_S, "writers go on")
            assert len(gateway.segments(scope, "still")) == 1
            now = ids(gateway, scope)
            await asyncio.to_thread(scale_to, gateway, scope, "st", 5)
            assert not given & (now | ids(gateway, scope)), "names were given out twice"
            writer.stop()
            written = {"a": await asyncio.to_thread(writer.finish, DEADLINE_S)}
        streams = manager(backed_up.grpc_address)
        group = streams.create_reader_group("rg", scope, "st")
        check_exactly_once(await read_all(group, sum(written.values()), DEADLINE_S), written)
