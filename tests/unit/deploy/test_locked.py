"""Which packages go into an image: the part of the lock that a project needs."""

import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest
from support.imports import others_reached

import locked

CLONE = Path(__file__).resolve().parents[3]
LOCK = CLONE / "requirements.lock"
IMAGES = CLONE / "deploy" / "images"
SERVICES = sorted(path.parent for path in (CLONE / "services").glob("*/pyproject.toml"))

LOCK_TEXT = """\
anyio==4.0 \\
    --hash=sha256:aa
    # via
    #   httpx
    #   starlette
Starlette==1.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via
    #   -r requirements.in
    #   fast.api
fast-api==2.0 \\
    --hash=sha256:dd
    # via -r requirements.in
httpx==3.0 \\
    --hash=sha256:ee
    # via -r requirements.in

# The following packages are considered to be unsafe in a requirements file:
pip==26.3 \\
    --hash=sha256:ff
    # via pip-tools
"""


@pytest.fixture
def packages() -> dict[str, locked.Locked]:
    return locked.parse(LOCK_TEXT)


def test_a_lock_is_read_with_hashes_and_dependents(packages: dict[str, locked.Locked]) -> None:
    assert packages.keys() == {"anyio", "starlette", "fast-api", "httpx", "pip"}
    assert packages["starlette"].via == {"fast-api"}
    assert packages["starlette"].lines == (
        "Starlette==1.0 \\", "    --hash=sha256:bb \\", "    --hash=sha256:cc"
    )  # fmt: skip


def test_what_a_package_needs_comes_with_it(packages: dict[str, locked.Locked]) -> None:
    assert locked.closure({"fast-api"}, packages) == {"fast-api", "starlette", "anyio"}
    assert locked.closure({"httpx"}, packages) == {"httpx", "anyio"}
    assert locked.closure(set(), packages) == set()


def test_a_package_that_is_not_locked_is_named(packages: dict[str, locked.Locked]) -> None:
    with pytest.raises(locked.NotLockedError, match="grpcio"):
        locked.closure({"grpcio", "httpx"}, packages)


def test_what_is_there_already_is_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lock, one, other = tmp_path / "lock", tmp_path / "one", tmp_path / "other"
    lock.write_text(LOCK_TEXT)
    project(one, '["fast.api[all] >=1", "sluice-streams", "sluice-streams-cli"]')
    project(other, '["httpx"]')
    assert locked.main([str(lock), str(one), "--", str(other)]) == 0
    assert capsys.readouterr().out == (
        "fast-api==2.0 \\\n    --hash=sha256:dd\nStarlette==1.0 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    )


def test_of_the_extras_of_a_project_those_wanted_count(tmp_path: Path) -> None:
    project(tmp_path / "one", '["anyio"]', '[project.optional-dependencies]\nweb = ["starlette"]\nfast = ["httpx"]\n')
    assert locked.direct(f"{tmp_path}/one") == {"anyio"}
    assert locked.direct(f"{tmp_path}/one[web]") == {"anyio", "starlette"}
    assert locked.direct(f"{tmp_path}/one[web,fast]") == {"anyio", "starlette", "httpx"}
    with pytest.raises(KeyError, match="slow"):
        locked.direct(f"{tmp_path}/one[slow]")


LEFT_OUT = {"cli": {"kopf"}, "custom-resources": {"pyarrow"}}
"""Of the command line's two images each lacks what the other one is for; the commands say so."""


@pytest.mark.parametrize(
    ("image", "service"),
    [*((service.name, service) for service in SERVICES), *((image, CLONE / "cli") for image in LEFT_OUT)],
)
def test_an_image_has_everything_its_code_imports(image: str, service: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLONE)
    (package,) = (path.parent for path in service.glob("*/main.py"))
    own = sources(package)
    shared = {**sources(CLONE / "shared" / "sluice"), **sources(CLONE / "shared" / "client" / "sluice_client")}
    installed = installed_into("runtime") | installed_into(image)
    reached = others_reached(own, {**shared, **own})
    assert {name for name in reached if not providers(name) & installed} == LEFT_OUT.get(image, set())


def project(folder: Path, dependencies: str, more: str = "") -> None:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(f"[project]\ndependencies = {dependencies}\n{more}")


def sources(package: Path) -> dict[str, str]:
    return {path.relative_to(package.parent).as_posix(): path.read_text() for path in package.rglob("*.py")}


def installed_into(image: str) -> set[str]:
    """What the image's Dockerfile has `assemble` install; for that of `cli`, `build` says which image."""
    is_second = image == "custom-resources"
    dockerfile = (IMAGES / f"{'cli' if is_second else image}.Dockerfile").read_text()
    (line,) = re.findall(r"assemble packages (.*)", dockerfile)
    packages = re.findall(r'PACKAGES="?([^"]*)"', (IMAGES / "build").read_text() if is_second else dockerfile)
    line = line.replace("${PACKAGES}", "".join(packages))
    projects = shlex.split(line.partition(" -- ")[0])
    return locked.closure(set().union(*map(locked.direct, projects)), locked.parse(LOCK.read_text()))


_PROVIDERS = metadata.packages_distributions()


def providers(module: str) -> set[str]:
    return {locked.canonical(name) for name in _PROVIDERS.get(module, [])}
