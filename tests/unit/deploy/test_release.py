"""What `make release` makes of a tree, but for what needs a package index or a container engine."""

import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from support.wheels import CLONE, PROJECTS

from sluice_release import artefacts, strangers
from sluice_release.commands import ReleaseError
from sluice_release.source import Source, committed

EPOCH_S = 1_700_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    artefacts.build(Source(CLONE, EPOCH_S), folder)
    artefacts.write_sums(folder)
    return folder


def test_all_that_users_install_is_released_as_wheel_and_as_source(made: Path) -> None:
    released = {name for name in PROJECTS if not name.startswith("examples/")}
    names = {tomllib.loads((CLONE / name / "pyproject.toml").read_text())["project"]["name"] for name in released}
    stems = {name.replace("-", "_") for name in names}
    assert {path.name.split("-")[0] for path in made.glob("*.whl")} == stems
    assert {path.name.split("-")[0] for path in made.glob("sluice_streams*.tar.gz")} == stems


def test_a_source_archive_makes_the_wheel_that_is_released(made: Path, tmp_path: Path) -> None:
    """The client's: it leaves out more of its folder than others do."""
    (packed,) = made.glob("sluice_streams_client-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    (again,) = tmp_path.glob("*.whl")
    (first,) = made.glob(again.name)
    assert _contents(again) == _contents(first)


def test_the_chart_and_the_manifests_stand_alone_and_name_the_images_of_the_version(made: Path, tmp_path: Path) -> None:
    version = Source(CLONE, EPOCH_S).version
    for name in (f"sluice-{version}.tgz", f"sluice-manifests-{version}.tar.gz"):
        with tarfile.open(made / name) as archive:
            assert [entry.name for entry in archive if not (entry.isfile() or entry.isdir())] == []
            archive.extractall(tmp_path)
    chart = yaml.safe_load((tmp_path / "sluice" / "values.yaml").read_text())
    root = tmp_path / f"sluice-manifests-{version}"
    base = yaml.safe_load((root / "base" / "kustomization.yaml").read_text())
    assert chart["image"]["version"] == version
    assert {image["newTag"] for image in base["images"]} == {version}
    assert json.loads((tmp_path / "sluice" / "files" / "sluice.json").read_text())
    resources = [root / "base" / name for name in base["resources"]]
    assert [path for path in resources if not path.exists()] == []


def test_the_checksums_are_those_of_all_files_and_notice_a_changed_one(made: Path, tmp_path: Path) -> None:
    listed = [line.split("  ")[1] for line in (made / artefacts.SUMS).read_text().splitlines()]
    assert listed == sorted(path.name for path in made.iterdir() if path.name != artefacts.SUMS)
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    check = ["sha256sum", "--check", "--quiet", artefacts.SUMS]
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    with (tmp_path / listed[0]).open("ab") as file:
        file.write(b"x")
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 1


def test_what_is_not_committed_is_not_released(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "--quiet"), (*who, "commit", "--quiet", "--allow-empty", "--message", "first")):
        subprocess.run(["git", *command], cwd=clone, check=True, timeout=60)
    assert committed(clone, tmp_path / "one").epoch_s > EPOCH_S
    (clone / "new.txt").touch()
    with pytest.raises(ReleaseError, match=r"new\.txt"):
        committed(clone, tmp_path / "two")


def test_a_python_that_is_on_the_path_but_does_not_run_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version manager puts such ones there."""
    for name, status in (("python3.12", 127), ("python3.13", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert strangers.interpreters() == {"3.13": tmp_path / "python3.13"}


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
