"""retention-spark on a standalone cluster of Spark, its files in an object store: whatever goes away, decisions go on.

How long each took to come is printed (`-s`): docs/operations.md has it.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from support.decisions import hot, requests_of, sampled, tell
from support.effort import by_hand
from support.health import readiness
from support.kafka import read
from support.objects import ACCESS, Objects, private_objects
from support.spark import SPARK, kafka_and_spark
from support.spark_cluster import CORES, MASTER, WORKERS, SparkCluster, files_in
from support.wait import eventually

from harness import System
from retention_spark.history import last_decisions
from sluice.archive.reading import Archive
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.stream.commands import ScaleStream, TruncateStream
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka.topics import RETENTION, ensure_topics

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    by_hand("a cluster of Spark"),
]

PARTITIONS = 4
STREAMS = 10
DEADLINE_S = 300.0
EXIT_ENDED = 3
SECOND = "retention-spark-1"
ENVIRONMENT = {
    "SLUICE_SCALE_TRIGGER_S": "0.5",
    "SLUICE_RETENTION_TRIGGER_S": "0.5",
    "SLUICE_ARCHIVE_TRIGGER_S": "1",
    "SLUICE_SPARK_SAVE_S": "2",
}
AT_ONCE = RetentionPolicy(RetentionType.SIZE, 0, 1 << 62)
FOR_DAYS, NO_TIME = (RetentionPolicy(RetentionType.TIME, days * 24 * 3600 * 1000, 1 << 62) for days in (10, 0))


class Cluster:
    """Kafka, its topics, a cluster of Spark, a driver that works on it, and one that has yet to be started."""

    def __init__(self, system: System, objects: Objects) -> None:
        self.system, self.objects = system, objects
        self.spark = SparkCluster(system)
        self._reported = 0
        settings = {**ENVIRONMENT, **self.spark.settings(), **files_in(objects)}
        for name in (SPARK, SECOND):
            system.configure(name, settings)

    def start(self) -> None:
        for name in ("kafka", MASTER, *WORKERS):
            self.system.start(name)
        ensure_topics({"bootstrap.servers": self.system.kafka_bootstrap}, PARTITIONS, 1)
        self.system.start(SPARK, deadline_s=DEADLINE_S)

    def decides(self, what: str) -> set[str]:
        """Return who decides on what is reported from now on, once all is decided."""
        began, bootstrap = time.monotonic(), self.system.kafka_bootstrap
        self._reported += 1
        hots = [f"hot{self._reported}-{number}" for number in range(STREAMS)]
        large = f"large{self._reported}"
        tell(bootstrap, sampled(large, now_ms(), 500, AT_ONCE), *(hot(stream, now_ms()) for stream in hots))

        def requests() -> dict[str, str]:
            scaled, cut = requests_of(bootstrap, ScaleStream, hots), requests_of(bootstrap, TruncateStream, [large])
            return {one.command.stream: one.by for one in scaled} | {one.command.stream: one.by for one in cut}

        eventually(lambda: requests().keys() == {large, *hots}, DEADLINE_S, f"all is decided: {what}")
        print(f"\n{what}: decided within {time.monotonic() - began:.1f} s, load {os.getloadavg()[0]:.0f}")
        return set(requests().values())

    def files(self, prefix: str) -> list[str]:
        """What the bucket has whose names begin so; at most a thousand."""
        found = self.objects.client.list_objects_v2(Bucket=self.objects.bucket, Prefix=prefix)
        return [one["Key"] for one in found.get("Contents", [])]

    def is_whole(self) -> bool:
        """Whether the master has both workers, and has given a driver all that it may have."""
        return (self.spark.workers(), self.spark.executors()) == (len(WORKERS), CORES)


@pytest.fixture(scope="module")
def cluster(runs_folder: Path) -> Iterator[Cluster]:
    folder = runs_folder / "spark-cluster"
    system = kafka_and_spark(folder, partitions=PARTITIONS, ready_s=DEADLINE_S, drivers=2)
    with private_objects("sluice") as objects:
        try:
            cluster = Cluster(system, objects)
            cluster.start()
            yield cluster
        finally:
            system.down()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_executors_decide_and_files_lie_in_the_object_store(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(cluster.system.kafka_bootstrap, sampled("kept", now_ms(), 500, FOR_DAYS))
    cluster.decides("a driver that runs")
    assert cluster.is_whole()
    bucket, bootstrap = cluster.objects.bucket, cluster.system.kafka_bootstrap
    assert cluster.files("checkpoints/scale-") and cluster.files("checkpoints/retention-")
    for name, value in {**ACCESS, "AWS_ENDPOINT_URL": cluster.objects.endpoint}.items():
        monkeypatch.setenv(name, value)
    kept = eventually(lambda: last_decisions(f"s3a://{bucket}/history", "s", "kept", 10), DEADLINE_S, "why is kept")
    assert [row.code for row in kept] == ["within-minimum"]
    [id] = topic_ids(AdminClient({"bootstrap.servers": bootstrap}), [RETENTION.name], DEADLINE_S).values()

    reports = {(one.partition(), one.offset()): one.value() for one in read(bootstrap, RETENTION.name)}

    def archived() -> dict[tuple[int, int], bytes | None]:
        archive = Archive(f"s3a://{bucket}/archive", RETENTION.name, id, splits_entries=False)
        rows = (one for partition in range(PARTITIONS) for one in archive.read(partition, 0, len(reports)))
        return {(one.partition, one.offset): one.value for one in rows}

    eventually(lambda: archived() == reports, DEADLINE_S, "what was reported is archived")


def test_another_worker_works_for_one_that_was_killed(cluster: Cluster) -> None:
    cluster.system.kill(WORKERS[0])
    cluster.decides("one of two workers killed")
    eventually(lambda: cluster.spark.executors() == CORES, DEADLINE_S, "the other worker has both executors")
    cluster.system.start(WORKERS[0])


def test_decisions_go_on_without_a_master_which_gives_out_work_when_it_is_back(cluster: Cluster) -> None:
    eventually(cluster.is_whole, DEADLINE_S, "all is there")
    cluster.system.kill(MASTER)
    cluster.decides("the master killed")
    began = time.monotonic()
    cluster.system.start(MASTER)
    eventually(cluster.is_whole, DEADLINE_S, "the master knows workers and driver")
    print(f"\nthe master back: it has workers and driver within {time.monotonic() - began:.1f} s")
    cluster.system.kill(WORKERS[1])
    cluster.decides("a worker killed after the master was back")
    cluster.system.start(WORKERS[1])


def test_checkpoints_that_the_object_store_has_lost_are_begun_anew(cluster: Cluster) -> None:
    """With a worker goes what was not read from there."""
    eventually(cluster.is_whole, DEADLINE_S, "all is there")
    for key in (*cluster.files("checkpoints/scale-"), *cluster.files("checkpoints/retention-")):
        cluster.objects.client.delete_object(Bucket=cluster.objects.bucket, Key=key)
    cluster.system.kill(WORKERS[0])
    cluster.decides("checkpoints deleted and a worker killed")
    cluster.system.start(WORKERS[0])


def test_another_driver_decides_when_the_first_was_killed(cluster: Cluster) -> None:
    eventually(cluster.is_whole, DEADLINE_S, "all is there")
    cluster.system.start(SECOND, deadline_s=DEADLINE_S)
    eventually(lambda: '"standby"' in readiness(cluster.system, SECOND)[1], DEADLINE_S, "it stands by")
    cluster.system.kill(SPARK)
    assert cluster.decides("the driver killed, another stands by") == {f"retention-spark/{SECOND}"}
    eventually(cluster.is_whole, DEADLINE_S, "the master has taken back what the first one had")


def test_a_driver_that_the_master_has_forgotten_ends_and_another_decides(cluster: Cluster) -> None:
    """As where the master has no `spark.deploy.recoveryMode`: it takes away executors of which it does not know."""
    system = cluster.system
    system.start(SPARK, deadline_s=DEADLINE_S)
    system.kill(MASTER)
    shutil.rmtree(system.settings.data_dir / MASTER)
    system.start(MASTER)
    assert system.wait_ended(SECOND, DEADLINE_S) and system.exit_code(SECOND) == EXIT_ENDED
    assert "lost all executors" in system.log(SECOND).read_text()
    assert cluster.decides("the driver ended, another stands by") == {f"retention-spark/{SPARK}"}


def test_nothing_was_cut_early_or_forgotten_whatever_went_away(cluster: Cluster) -> None:
    bootstrap = cluster.system.kafka_bootstrap
    assert requests_of(bootstrap, TruncateStream, ["kept"]) == []
    tell(bootstrap, sampled("kept", now_ms(), 0, NO_TIME, sample=None))
    cuts = eventually(
        lambda: requests_of(bootstrap, TruncateStream, ["kept"]), DEADLINE_S, "it is cut for a new policy"
    )
    assert {one.command.cut[0] for one in cuts} == {500}
