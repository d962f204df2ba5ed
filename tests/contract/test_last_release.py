"""The last release: a commit of this history, so that every clone can run it, and one that loses nothing of ours."""

import json
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

FOLDS = """
import json, sys
from sluice.domain.model import DomainModel
from sluice.engine.fold import PartitionView
from sluice.engine.partition import partition_keys, partition_of
lines = [json.loads(line) for line in sys.stdin.buffer]
keys = partition_keys(max(line["partition"] for line in lines) + 1)
model = DomainModel()
views = [PartitionView(model, key, lambda key: views[partition_of(key, len(keys))], lambda: views) for key in keys]
outcomes = [[] for _ in keys]
for line in lines:
    view = views[line["partition"]]
    record = model.decode(json.dumps(line["value"]).encode())
    outcomes[line["partition"]].append([outcome.name for outcome in view.fold(record, view.next_offset, line["at"])])
versions = [{name: view.version(name) for name, _ in view.aggregates()} for view in views]
json.dump([outcomes, versions], sys.stdout)
"""
"""Reads a golden journal, and writes the outcome of each entry and the version of each aggregate, by partition."""

made = pytest.mark.parametrize("golden", [g for g in all_golden() if g.version == version_made()], ids=lambda g: g.name)
"""The journals that this tree writes."""


def run(script: str, python_path: str, lines: list[bytes]) -> bytes:
    """What the script makes of the lines, with the code on this path."""
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": python_path}
    return subprocess.run(command, env=environment, input=b"\n".join(lines), stdout=subprocess.PIPE, check=True).stdout


def test_the_last_release_is_a_commit_that_this_tree_follows() -> None:
    id = commit()
    assert re.fullmatch(r"[0-9a-f]{40}", id), "the whole id, which cannot come to mean another commit"
    known = subprocess.run(["git", "-C", str(ROOT), "merge-base", "--is-ancestor", id, "HEAD"], check=False)
    assert known.returncode == 0, "it is not in this history: a shallow clone, or docs/releasing.md was not followed"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_path(tmp_path_factory.mktemp("releases"))


@made
def test_the_last_release_knows_each_event_and_each_field_that_this_tree_writes(golden: Golden, released: str) -> None:
    """A field that it did not know would be missing in its states, its snapshots, and all that it decides on them."""
    written = [bytes(line.value) for line in golden.lines()]
    read = [msgspec.json.decode(record) for record in run(REWRITES, released, written).splitlines()]
    assert read == [msgspec.json.decode(record) for record in written], "docs/releasing.md: reads before writes"


@made
def test_the_last_release_judges_each_entry_as_this_tree_does(golden: Golden, released: str) -> None:
    """Whose views differ would take each other's entries for void. States may be stored otherwise."""
    journal = golden.journal.read_bytes().splitlines()
    its = run(FOLDS, released, journal)
    ours = run(FOLDS, os.pathsep.join(path for path in sys.path if path), journal)
    assert json.loads(its) == json.loads(ours)
