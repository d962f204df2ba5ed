"""The last release: a commit of this history, so that every clone can run it, and one that loses nothing of ours."""

import os
import re
import subprocess
import sys

import msgspec
import pytest
from golden.__main__ import version_made
from golden.journals import Golden, all_golden
from support.last_release import ROOT, commit, python_path

REWRITES = """
import sys
from sluice.domain.model import decode_record, encode_record
for record in sys.stdin.buffer:
    print(encode_record(decode_record(record)).decode())
"""
"""Reads records, one a line, and writes what it knows of them."""


def test_the_last_release_is_a_commit_that_this_tree_follows() -> None:
    id = commit()
    assert re.fullmatch(r"[0-9a-f]{40}", id), "the whole id, which cannot come to mean another commit"
    known = subprocess.run(["git", "-C", str(ROOT), "merge-base", "--is-ancestor", id, "HEAD"], check=False)
    assert known.returncode == 0, "it is not in this history: a shallow clone, or docs/releasing.md was not followed"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_path(tmp_path_factory.mktemp("releases"))


@pytest.mark.parametrize("golden", [g for g in all_golden() if g.version == version_made()], ids=lambda g: g.name)
def test_the_last_release_knows_each_event_and_each_field_that_this_tree_writes(golden: Golden, released: str) -> None:
    """A field that it did not know would be missing in its states, its snapshots, and all that it decides on them."""
    written = [line.value for line in golden.lines()]
    done = subprocess.run(
        [sys.executable, "-c", REWRITES],
        env={**os.environ, "PYTHONPATH": released},
        input=b"\n".join(written),
        stdout=subprocess.PIPE,
        check=True,
    )
    read = [msgspec.json.decode(record) for record in done.stdout.splitlines()]
    assert read == [msgspec.json.decode(record) for record in written], "docs/releasing.md: reads before writes"
