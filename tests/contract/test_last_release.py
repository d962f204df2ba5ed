"""Which commit is the last release: one of this history, so that every clone can run it beside this tree."""

import re
import subprocess

from support.last_release import ROOT, commit


def test_the_last_release_is_a_commit_that_this_tree_follows() -> None:
    id = commit()
    assert re.fullmatch(r"[0-9a-f]{40}", id), "the whole id, which cannot come to mean another commit"
    known = subprocess.run(["git", "-C", str(ROOT), "merge-base", "--is-ancestor", id, "HEAD"], check=False)
    assert known.returncode == 0, "it is not in this history: a shallow clone, or docs/releasing.md was not followed"
