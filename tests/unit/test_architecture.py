"""docs/architecture.md, and the pages that go on from it, name only files that exist: readers follow paths by them."""

import re
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
DOCS = CLONE / "docs"
ROOTS = (CLONE, CLONE / "shared" / "sluice", CLONE / "shared", *sorted((CLONE / "services").iterdir()))
"""What the names begin in: `engine/fold.py` is in the shared library, `txn_manager/merging.py` in its service."""


def named_in(page: str) -> list[str]:
    """The names of Python files, and of what is in the folders of the clone, that stand in the page as code."""
    code = re.findall(r"`([\w./*-]+)`", (DOCS / page).read_text())
    folders = {path.name for path in CLONE.iterdir() if path.is_dir()}
    return [name for name in code if name.endswith(".py") or ("/" in name and name.split("/")[0] in folders)]


@pytest.mark.parametrize("page", ["architecture.md", "commits.md", "snapshots.md", "testing.md"])
def test_every_file_that_the_architecture_names_exists(page: str) -> None:
    named = named_in(page)
    assert named and [name for name in named if not any(any(root.glob(name)) for root in ROOTS)] == []


def test_every_step_of_the_paths_names_the_files_that_do_it() -> None:
    page = (DOCS / "architecture.md").read_text()
    paths = re.findall(r"^## The path of .*?(?=^## )", page, re.DOTALL | re.MULTILINE)
    steps = [step for path in paths for step in re.split(r"^\d+\. ", path, flags=re.MULTILINE)[1:]]
    assert len(paths) == 3 and steps
    assert [step for step in steps if not re.search(r"`[\w/]+\.py`", step)] == []
