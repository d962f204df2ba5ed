"""The parts of the local stack: their settings, their order, and what must be there before them."""

import subprocess
from functools import partial
from pathlib import Path

import pytest

from sluice_local import bookie, checks, java, kafka, segment_store, stamp
from sluice_local.errors import MissingPrerequisite, UnusableState
from sluice_local.part import Part, StopRank
from sluice_local.parts import parts_of
from sluice_local.settings import LocalSettings, Profile


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(home=tmp_path, kafka_port=19092, kafka_controller_port=19093, segment_stores=2)


def test_kafka_listens_on_this_machine_only(settings: LocalSettings) -> None:
    properties = kafka.server_properties(settings)
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:19093"


def test_brokers_are_one_cluster_whose_topics_survive_the_loss_of_one(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path, kafka_brokers=3)
    brokers, services = list(kafka.parts(settings)), list(parts_of(settings))[-5:]
    assert [part.name for part in brokers] == ["kafka", "kafka-2", "kafka-3"]
    assert [claim.port for part in brokers for claim in part.claims] == list(range(9092, 9098))
    properties = [kafka.server_properties(settings, node) for node in (1, 2, 3)]
    assert {p["controller.quorum.voters"] for p in properties} == {"1@127.0.0.1:9093,2@127.0.0.1:9095,3@127.0.0.1:9097"}
    assert {(p["default.replication.factor"], p["min.insync.replicas"]) for p in properties} == {(3, 2)}
    assert len({p["log.dirs"] for p in properties}) == 3
    assert len({kafka.cluster_id(tmp_path / "id") for _ in brokers}) == 1
    for service in services:
        assert service.environment["SLUICE_KAFKA_BOOTSTRAP"] == "127.0.0.1:9092,127.0.0.1:9094,127.0.0.1:9096"
        assert service.environment["SLUICE_KAFKA_REPLICATION"] == "3"
        assert {"kafka", "kafka-2", "kafka-3"} <= set(service.starts_after)
    parts = parts_of(LocalSettings(home=tmp_path, kafka_brokers=3, kafka_bootstrap="k:9092"))
    assert {name for part in parts for name in part.starts_after} <= {part.name for part in parts}


def test_a_formatted_folder_is_not_formatted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("formatted again")

    monkeypatch.setattr(subprocess, "run", refuse)
    (tmp_path / "meta.properties").touch()
    archive = tmp_path / "kafka.jsa"
    cluster_id = partial(kafka.cluster_id, tmp_path / "id")
    kafka.format_once(tmp_path, archive, tmp_path / "server.properties", tmp_path, cluster_id)
    with pytest.raises(AssertionError, match="formatted again"):
        kafka.format_once(tmp_path, archive, tmp_path / "server.properties", tmp_path / "other", cluster_id)


def test_the_bookie_lives_where_the_segment_stores_look_for_it(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path, cluster_name="mine", zookeeper_port=2999)
    uri = bookie.bookkeeper_conf(settings)["metadataServiceUri"]
    assert uri == "zk+null://127.0.0.1:2999/pravega/mine/bookkeeper/ledgers"
    store = segment_store.store_properties(settings, 12345)
    assert store["pravegaservice.clusterName"] == "mine"
    assert store["bookkeeper.zk.connect.uri"] == "127.0.0.1:2999"


def test_segment_stores_share_their_long_term_storage(settings: LocalSettings) -> None:
    roots = {segment_store.store_properties(settings, port)["filesystem.root"] for port in (1, 2)}
    assert len(roots) == 1


def test_the_memory_of_a_segment_store_is_divided(tmp_path: Path) -> None:
    store = segment_store.part(LocalSettings(home=tmp_path, segment_store_memory_mib=4096), 0, ())
    assert {"-Xmx2048m", "-XX:MaxDirectMemorySize=2048m"} <= set(store.command)
    assert any(f"pravegaservice.cache.size.max={2**30}\n" in text for text in store.files.values())


def test_a_small_system_has_one_process_of_all_services_and_less_memory_on_the_same_data(tmp_path: Path) -> None:
    full, small = ({part.name: part for part in parts_of(LocalSettings(home=tmp_path, profile=p))} for p in Profile)
    (services,) = (part for part in small.values() if part.stop_rank == StopRank.SERVICE)
    assert services.environment["SLUICE_BESIDE"] == "stream_workflows,cluster_manager,txn_manager"
    assert "without Spark" in services.address
    assert {part.folder for part in small.values()} <= {part.folder for part in full.values()}
    for name in ("kafka", "zookeeper", "bookie", "segment-store-0"):
        assert heap_mib(small[name]) < heap_mib(full[name])


@pytest.mark.parametrize(("count", "decides"), [("1", "true"), ("0", "false")])
def test_a_small_system_decides_by_policies_unless_it_shall_have_no_retention_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str, decides: str
) -> None:
    monkeypatch.setenv("SLUICE_RETENTION_SPARKS", count)
    (services,) = (
        part
        for part in parts_of(LocalSettings(home=tmp_path, profile=Profile.SMALL))
        if part.stop_rank == StopRank.SERVICE
    )
    assert services.environment["SLUICE_DECIDES_POLICIES"] == decides


def heap_mib(part: Part) -> int:
    (heap,) = (option for option in part.command if option.startswith("-Xmx"))
    return int(heap.removeprefix("-Xmx").removesuffix("m"))


def test_no_part_is_stopped_before_those_that_use_it(settings: LocalSettings) -> None:
    parts = {part.name: part for part in parts_of(settings)}
    for part in parts.values():
        if part.may_be_late:  # it uses none of them
            continue
        for needed in part.starts_after:
            assert part.stop_rank < parts[needed].stop_rank
    assert parts["api-gateway-0"].stop_rank == StopRank.SERVICE


def test_services_start_without_waiting_but_what_may_be_late_starts_last(settings: LocalSettings) -> None:
    parts = parts_of(settings)
    late = {part.name for part in parts if part.may_be_late}
    assert late == {"retention-spark-0"}
    for part in parts:
        if part.name in late:
            assert {*part.starts_after, *late} == {each.name for each in parts}
        elif part.stop_rank == StopRank.SERVICE:
            assert not part.starts_after


def test_a_java_program_maps_the_archive_of_its_classes_if_there_is_one(settings: LocalSettings) -> None:
    settings = settings.model_copy(update={"jars": settings.home / "jars"})
    archive = java.archive(settings.jars_dir, "kafka")
    option = f"-XX:SharedArchiveFile={archive}"
    assert option not in next(kafka.parts(settings)).command
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert option in next(kafka.parts(settings)).command


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not understood", None),
    ],
)
def test_versions_of_java(output: str, version: int | None) -> None:
    assert checks.java_version(output) == version


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, monkeypatch, "1.8.0_292")
    with pytest.raises(MissingPrerequisite, match=r"Java is too old: .* has version 8"):
        checks.require_java()


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match="Java is missing"):
        checks.require_java()
    with pytest.raises(MissingPrerequisite, match="Maven is missing"):
        checks.require_maven()


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableState, match=r"file/state .*SLUICE_HOME"):
        checks.require_folders(tmp_path / "file" / "state")


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableState, match=r"nearly full.*SLUICE_HOME"):
        checks.require_folders(tmp_path, least_bytes=2**62)


def test_a_stamp_is_current_until_an_input_changes(tmp_path: Path) -> None:
    source, mark = tmp_path / "in", tmp_path / "stamp"
    source.write_text("one")
    assert not stamp.is_current(mark, stamp.digest([source]))
    stamp.set_current(mark, stamp.digest([source]))
    assert stamp.is_current(mark, stamp.digest([source]))
    source.write_text("two")
    assert not stamp.is_current(mark, stamp.digest([source]))


def fake_java(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    binary = folder / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\necho 'java version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
