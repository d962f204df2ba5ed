"""The archive with a real Kafka and a real Spark: killed in a batch, joined, read once Kafka has nothing left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import AdminClient
from support.decisions import sampled, tell
from support.effort import by_hand
from support.health import metric
from support.kafka import produce, read
from support.spark import SPARK, kafka_and_spark
from support.wait import eventually
from typer.testing import CliRunner

from harness import System
from retention_spark.archive_query import TOPICS
from sluice.archive.layout import file_of
from sluice.catalog.examples.journal_records import journal_records
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.model import JournalEntry, JournalRecord, decode_record, encode_record
from sluice.domain.scope.events import ScopeCreated
from sluice.kafka.archive_progress import archived_offsets, recorded_progress
from sluice.kafka.deleting import request_deletion
from sluice.kafka.topics import JOURNAL, RETENTION, ensure_topics
from sluice_cli.main import app

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), by_hand("it starts Spark four times")]

PARTITIONS = 2
READY_S = 200.0
ARCHIVED_S = 120.0
COPIES = 40
POLICY = RetentionPolicy(RetentionType.SIZE, 0, 1 << 62)


def client(system: System) -> dict[str, Any]:
    return {"bootstrap.servers": system.kafka_bootstrap}


def target(system: System) -> Path:
    return system.settings.home / "archive"


@pytest.fixture(scope="module")
def spark_system(runs_folder: Path) -> Iterator[System]:
    """Kafka with a journal and reports, and the driver, which has yet to be started."""
    system = kafka_and_spark(runs_folder / "archive", partitions=PARTITIONS, ready_s=READY_S)
    try:
        system.configure(
            SPARK,
            {
                "SLUICE_ARCHIVE": str(target(system)),
                "SLUICE_ARCHIVE_TRIGGER_S": "1",
                # Many batches, and so many small files.
                "SLUICE_ARCHIVE_BATCH_RECORDS": "12",
                "SLUICE_ARCHIVE_JOIN_S": "4",
            },
        )
        system.start("kafka")
        ensure_topics(client(system), PARTITIONS, 1)
        for one in journal_records():
            produce(system.kafka_bootstrap, JOURNAL.name, one.key, one.value, partition=0)
        produce(system.kafka_bootstrap, JOURNAL.name, "scope", *map(scope, range(COPIES)), partition=1)
        tell(system.kafka_bootstrap, sampled("large", time.time_ns() // 1_000_000, 500, POLICY))
        yield system
    finally:
        system.down()


SYNCED = """
import os, sys
from pathlib import Path
from retention_spark.files import write_once
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings

folder, jars, fsync = Path(sys.argv[1]), Path(sys.argv[2]), os.fsync

def noted(descriptor):
    print("synced", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name, (folder / "file").exists())
    fsync(descriptor)

os.fsync = noted
session = open_session("t", SparkSettings(instance="t", spark_jars=jars, spark_local=folder / "local"))
write_once(session, f"{folder}", "file", b"1")
session.stop()
"""
"""Writes a file as the archive and its checkpoint are written, and says what is synced before it has its name."""


def scope(number: int) -> bytes:
    event = ScopeCreated(f"scope-{number}", "0" * 32, 1)
    return encode_record(JournalRecord(f"r-{number}", 1, "test/0", (JournalEntry({event.aggregate: 0}, (event,)),)))


def ends(system: System, topic: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for message in read(system.kafka_bootstrap, topic):
        found[message.partition() or 0] = (message.offset() or 0) + 1
    return found


def rows(system: System, topic: str) -> list[dict[str, Any]]:
    """What any engine finds there that knows nothing of the names of files."""
    found: list[dict[str, Any]] = pq.read_table(target(system) / topic).to_pylist()
    return found


def expected(messages: list[Message]) -> list[tuple[int, int, int]]:
    return sorted(
        (m.partition() or 0, m.offset() or 0, entry)
        for m in messages
        for entry in range(len(decode_record(m.value() or b"").entries))
    )


def test_a_driver_killed_in_a_batch_archives_each_entry_once(spark_system: System) -> None:
    spark_system.start(SPARK, wait=False, environment={"SLUICE_CRASH_AT": "archive-file-written"})
    assert spark_system.wait_ended(SPARK, READY_S) and spark_system.exit_code(SPARK) == -signal.SIGKILL
    (left,) = target(spark_system).rglob("*.parquet")
    assert archived_offsets(client(spark_system)) is None, "what Spark may write anew is not yet said to be there"
    written = left.stat().st_mtime_ns
    produce(spark_system.kafka_bootstrap, JOURNAL.name, "scope", scope(COPIES), partition=1)
    spark_system.start(SPARK, deadline_s=READY_S)
    wanted = {(topic, p): end for topic in TOPICS for p, end in ends(spark_system, topic).items()}
    eventually(lambda: recorded_progress(client(spark_system), TOPICS) == wanted, ARCHIVED_S, "all is archived")
    assert archived_offsets(client(spark_system)) == ends(spark_system, JOURNAL.name)
    found = sorted((row["partition"], row["offset"], row["entry"]) for row in rows(spark_system, JOURNAL.name))
    assert found == expected(read(spark_system.kafka_bootstrap, JOURNAL.name))
    assert not left.exists() or left.stat().st_mtime_ns == written, "the file of the first attempt stays as it is"
    assert [row["value"] for row in rows(spark_system, RETENTION.name)] == [
        message.value() for message in read(spark_system.kafka_bootstrap, RETENTION.name)
    ]
    assert metric(spark_system, SPARK, "sluice_spark_input_records_total") > 0


def test_small_files_are_joined_and_every_entry_stays_once(spark_system: System) -> None:
    def files(partition: int) -> list[str]:
        paths = (target(spark_system) / JOURNAL.name).rglob("*.parquet")
        return [p.name for p in paths if (f := file_of("", p.name)) is not None and f.partition == partition]

    sent = COPIES + 1

    def grown() -> bool:
        nonlocal sent
        produce(spark_system.kafka_bootstrap, JOURNAL.name, "scope", scope(sent), partition=1)
        sent += 1
        return any((file := file_of("", name)) is not None and file.end - file.start > 30 for name in files(1))

    eventually(grown, ARCHIVED_S, "files are joined")
    eventually(
        lambda: archived_offsets(client(spark_system)) == ends(spark_system, JOURNAL.name), ARCHIVED_S, "all is there"
    )
    found = sorted((row["partition"], row["offset"], row["entry"]) for row in rows(spark_system, JOURNAL.name))
    assert found == expected(read(spark_system.kafka_bootstrap, JOURNAL.name))
    spark_system.stop(SPARK)
    assert spark_system.exit_code(SPARK) == 0


def test_what_kafka_no_longer_has_is_answered_from_the_archive(spark_system: System) -> None:
    environment = {
        **os.environ,
        "SLUICE_KAFKA_BOOTSTRAP": spark_system.kafka_bootstrap,
        "SLUICE_ARCHIVE": str(target(spark_system)),
    }

    def audit() -> Any:
        run = CliRunner().invoke(app, ["audit", "scope-7", "--from", "1000000000000", "--json"], env=environment)
        assert run.exit_code == 0, run.stderr
        return json.loads(run.stdout)

    before = audit()
    assert [one["type"] for one in before] == ["ScopeCreated"]
    for topic in (JOURNAL.name, RETENTION.name):
        trim(spark_system, topic)
    assert audit() == before and what_if(spark_system) == "1 decisions, 0 of them to act"


def test_the_batch_job_answers_over_the_whole_archive(spark_system: System) -> None:
    found = run_job(spark_system, "questions", "3").splitlines()
    scaled = sum((one.value or b"").count(b'"type":"StreamScaled"') for one in journal_records())
    assert found[1].split()[0] == str(scaled)
    assert any(line.endswith("committed") for line in found) and any(line.endswith("aborted") for line in found)
    assert not any(line.startswith("left out") for line in found)


def trim(system: System, topic: str) -> None:
    """Delete all that Kafka has of a topic."""
    there = [TopicPartition(topic, p, end) for p, end in ends(system, topic).items()]
    admin = AdminClient(client(system))
    for deleted in request_deletion(admin, there, 30.0).values():
        deleted.result()


def what_if(system: System) -> str:
    """What is printed beside what happened, without the times."""
    return run_job(system, "what_if", "s/large", "time=1h").splitlines()[1].split(" | ")[1]


def run_job(system: System, name: str, *arguments: str) -> str:
    local = {"SLUICE_SPARK_LOCAL": str(system.settings.home / name)}
    environment = {**os.environ, **system.environment(SPARK), **local}
    command = [sys.executable, "-m", f"retention_spark.{name}", *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=READY_S, check=False, cwd=system.settings.home
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_is_on_the_disk_before_it_has_its_name(spark_system: System, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SYNCED, str(tmp_path), spark_system.environment(SPARK)["SLUICE_SPARK_JARS"]]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=READY_S, cwd=tmp_path).stdout
    synced = [line.split()[1:] for line in said.splitlines() if line.startswith("synced")]
    assert synced == [[".file.unfinished", "False"], [tmp_path.name, "True"]]
