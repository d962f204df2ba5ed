"""What the page's files must be, without any browser."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from unit.gateway.rest.world import World

import api_gateway

PAGE = Path(api_gateway.__file__).parent / "console" / "page"
VENDOR = PAGE / "vendor"
MAX_LINES = 500
MAX_CHARS = 120
"""The formatter leaves texts and comments as they are."""

_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|srcdoc|setHTML"
    r"|\beval\(|new Function\(|javascript:"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_UNDER = re.compile(r"\bunder`([^`\n]*)`")
_PATHS = re.compile(r"(?:useResource|api\.get|api\.read|usePaged)\(\s*'([a-z][a-z0-9/-]*)'")
_SENT = re.compile(r"api\.send\(\s*'(?:POST|PUT|DELETE)',\s*'([a-z][a-z0-9/-]*)'")


def modules() -> list[Path]:
    """Our own modules."""
    return [path for path in sorted(PAGE.rglob("*.js")) if VENDOR not in path.parents]


def test_vendored_files_are_those_that_were_published() -> None:
    listed = {
        file["file"]: file["sha256"]
        for package in json.loads((VENDOR / "VENDORED.json").read_text())
        for file in package["files"]
    }
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDORED.json"
    }
    assert there == listed


def test_no_module_makes_markup_or_code_of_text() -> None:
    found = {path.name: _MARKUP.findall(path.read_text()) for path in modules()}
    assert {name: words for name, words in found.items() if words} == {}


def test_no_module_is_longer_than_a_reader_likes() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in modules()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_no_line_of_a_module_is_longer_than_the_others_are() -> None:
    long = {path.name: [one for one in path.read_text().splitlines() if len(one) > MAX_CHARS] for path in modules()}
    assert {name: lines for name, lines in long.items() if lines} == {}


async def test_each_path_that_a_module_fetches_is_in_the_description() -> None:
    world = World()
    described = {_shape(path.removeprefix("/sluice/v1/")) for path in world.app.openapi()["paths"]}
    await world.system.stop()
    fetched: dict[str, str] = {}
    for module in modules():
        text = _COMMENT.sub("", module.read_text())
        for path in (*_UNDER.findall(text), *_PATHS.findall(text), *_SENT.findall(text)):
            fetched[_shape(path)] = module.name
    assert len(fetched) > 10
    assert {path: name for path, name in fetched.items() if path not in described} == {}


@pytest.mark.parametrize("path", ["index.html", "page.css"])
def test_no_file_names_another_origin(path: str) -> None:
    assert re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", (PAGE / path).read_text()) == []


def _shape(path: str) -> str:
    """A path with {} for each of its names."""
    return re.sub(r"\$?\{[^{}]*\}", "{}", path).strip("/")
