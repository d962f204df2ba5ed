from pathlib import Path

import pytest
from pydantic import ValidationError

from sluice_local.cli import main
from sluice_local.parts import parts_of
from sluice_local.settings import LocalSettings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("SLUICE_") or name == "SEGMENT_STORES":
            monkeypatch.delenv(name)


def names(settings: LocalSettings) -> list[str]:
    return [part.name for part in parts_of(settings)]


def test_one_of_everything_by_default() -> None:
    assert sorted(names(LocalSettings())) == [
        "api-gateway-0",
        "bookie",
        "cluster-manager-0",
        "kafka",
        "redis",
        "retention-spark-0",
        "segment-store-0",
        "stream-workflows-0",
        "txn-manager-0",
        "zookeeper",
    ]


def test_ports_of_one_default_system_do_not_collide() -> None:
    settings = LocalSettings(api_gateways=2, segment_stores=3, stream_workflows=3, cluster_managers=2, txn_managers=2)
    ports = [claim.port for part in parts_of(settings) for claim in part.claims]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(
    ("variable", "value", "absent"),
    [
        ("SLUICE_KAFKA_BOOTSTRAP", "k:9092", "kafka"),
        ("SLUICE_REDIS_URL", "redis://r:6379/0", "redis"),
        ("SLUICE_ZOOKEEPER", "z:2181", "zookeeper"),
    ],
)
def test_what_has_an_address_is_not_embedded(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, absent: str
) -> None:
    monkeypatch.setenv(variable, value)
    settings = LocalSettings()
    assert absent not in names(settings)
    gateway = next(part for part in parts_of(settings) if part.name == "api-gateway-0")
    assert gateway.environment[variable] == value


def test_an_empty_address_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KAFKA_BOOTSTRAP", "")
    assert "kafka" in names(LocalSettings())


def test_without_segment_stores_there_is_no_bookie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGMENT_STORES", "0")
    assert not {"bookie", "segment-store-0"} & set(names(LocalSettings()))


def test_instances_have_consecutive_ports_and_names_of_their_own() -> None:
    settings = LocalSettings(api_gateways=2, stream_workflows=2, segment_stores=2)
    claims = {part.name: [claim.port for claim in part.claims] for part in parts_of(settings)}
    assert claims["api-gateway-0"] == [9090, 10080, 10090]
    assert claims["api-gateway-1"] == [9091, 10081, 10091]
    assert claims["stream-workflows-1"] == [10101]
    assert claims["cluster-manager-0"] == [10102]
    assert claims["txn-manager-0"] == [10103]
    assert claims["segment-store-1"] == [12346]
    instances = [part.environment.get("SLUICE_INSTANCE", part.name) for part in parts_of(settings)]
    assert instances == [part.name for part in parts_of(settings)]


def test_options_of_the_segment_store_are_json_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SEGMENT_STORE_OPTIONS", '{"a.count": 5, "a.share": 0.5, "a.on": true, "a.name": "5"}')
    store = next(part for part in parts_of(LocalSettings()) if part.name == "segment-store-0")
    written = "".join(text for path, text in store.files.items() if path.suffix == ".properties")
    assert {"a.count=5", "a.share=0.5", "a.on=true", "a.name=5"} <= set(written.splitlines())


def test_everything_is_written_below_the_state_folder(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path, segment_stores=2)
    for part in parts_of(settings):
        assert tmp_path in part.folder.parents
        assert tmp_path in part.log.parents
        assert all(tmp_path in path.parents for path in part.files)


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("SLUICE_KAFKA_PORT", "0", " is '0': it must be"),
        ("SLUICE_REST_PORT", "x", " is 'x': it must be"),
        ("SEGMENT_STORES", "-1", " is '-1': it must be"),
        ("SLUICE_SEGMENT_STORE_OPTIONS", "{", " is '{': it must be JSON"),
        ("SLUICE_SEGMENT_STORE_OPTIONS", '{"a": []}', ".a: it must be text"),
        ("SLUICE_SEGMENT_STORE_OPTIONS", '{"pravegaservice.cache.size.max": 1000}', "MEMORY_MIB: set that instead"),
    ],
)
def test_a_bad_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValidationError):
        LocalSettings()
    monkeypatch.setattr("sys.argv", ["sluice_local", "up"])
    assert main() == 2
    error = capsys.readouterr().err
    assert error.startswith(f"setting {variable}") and problem in error


@pytest.mark.parametrize(("count", "problem"), [("2", "at most 1 with PROFILE=small"), ("0", "1 with PROFILE=small")])
def test_a_small_system_has_one_of_each_service(monkeypatch: pytest.MonkeyPatch, count: str, problem: str) -> None:
    monkeypatch.setenv("PROFILE", "small")
    monkeypatch.setenv("SLUICE_TXN_MANAGERS", count)
    with pytest.raises(ValidationError, match=problem):
        LocalSettings()
