"""Which packages go into an image: the part of the lock that a project needs."""

import ast
import sys
from importlib import metadata
from pathlib import Path

import pytest

import locked

CLONE = Path(__file__).resolve().parents[3]
LOCK = CLONE / "requirements.lock"
SHARED = CLONE / "shared" / "pyproject.toml"
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
    lock, one, other = tmp_path / "lock", tmp_path / "one.toml", tmp_path / "other.toml"
    lock.write_text(LOCK_TEXT)
    one.write_text('[project]\ndependencies = ["fast.api[all] >=1", "sluice-streams", "sluice-streams-cli"]\n')
    other.write_text('[project]\ndependencies = ["httpx"]\n')
    assert locked.main([str(lock), str(one), "--", str(other)]) == 0
    assert capsys.readouterr().out == (
        "fast-api==2.0 \\\n    --hash=sha256:dd\nStarlette==1.0 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    )


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_an_image_has_everything_its_code_imports(service: Path) -> None:
    (package,) = (path.parent for path in service.glob("*/main.py"))
    packages = locked.parse(LOCK.read_text())
    direct = locked.direct(service / "pyproject.toml") | locked.direct(SHARED)
    missing = {
        name: path.relative_to(CLONE).as_posix()
        for path, name in imported(package, CLONE / "shared" / "sluice")
        if not providers(name) & locked.closure(direct, packages)
    }
    assert missing == {}


def imported(service: Path, shared: Path) -> set[tuple[Path, str]]:
    """The modules of others that a service loads: with its own modules, and those of the shared library it reaches."""
    found: set[tuple[Path, str]] = set()
    waiting, seen = sorted(service.rglob("*.py")), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in modules_of(path):
            top = module.partition(".")[0]
            if top == shared.name:
                waiting += reached(shared.parent, module)
            elif top != service.name and top not in sys.stdlib_module_names:
                found.add((path, top))
    return found


def modules_of(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def reached(folder: Path, module: str) -> list[Path]:
    path = folder.joinpath(*module.split("."))
    return [candidate for candidate in (path.with_suffix(".py"), path / "__init__.py") if candidate.exists()]


_PROVIDERS = metadata.packages_distributions()


def providers(module: str) -> set[str]:
    return {locked.canonical(name) for name in _PROVIDERS.get(module, [])}
