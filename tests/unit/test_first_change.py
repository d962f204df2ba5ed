"""docs/first-change.md does what it says: its changes are made in a copy of the clone, its commands are run there.

Of a target of make only what it would run is looked at: that of `make check` or `.ci/run` takes minutes.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from sluice_local.settings import LocalSettings

CLONE = Path(__file__).resolve().parents[2]
PAGE = CLONE / "docs" / "first-change.md"
STEP = re.compile(
    r"^```diff\n(?P<diff>.*?)^```$|^    (?P<command>\S[^\n]*?)(?:    # (?P<end>[^\n]*))?$", re.MULTILINE | re.DOTALL
)


def run(copy: Path, command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "shared"), "SLUICE_HOME": str(copy / ".sluice")}
    return subprocess.run(
        command.split(), cwd=copy, env=environment, input=text, capture_output=True, text=True, check=False, timeout=240
    )


def test_each_step_of_the_first_change_does_what_is_said(tmp_path: Path) -> None:
    generated = shutil.ignore_patterns("__pycache__", ".hypothesis", "*.egg-info")
    for folder in ("shared", "tests", "docs"):
        shutil.copytree(CLONE / folder, tmp_path / folder, ignore=generated)
    for file in ("pyproject.toml", "Makefile"):
        shutil.copy(CLONE / file, tmp_path)
    (tmp_path / ".ci").symlink_to(CLONE / ".ci")
    (tmp_path / ".sluice").symlink_to(LocalSettings().home)
    steps = list(STEP.finditer(PAGE.read_text()))
    assert len(steps) > 10
    for step in steps:
        if step["diff"]:
            done = run(tmp_path, "git apply --unidiff-zero", step["diff"])
        elif step["command"].startswith("make "):
            done = run(tmp_path, f"{step['command']} --dry-run")
        elif step["command"].startswith(".ci/"):
            done = run(tmp_path, f"bash -n {step['command']}")
        else:
            done = run(tmp_path, step["command"])
        failed = re.search(r"(\d+) failed", done.stdout)
        assert (failed[0] if failed else None) == step["end"] and (done.returncode == 0) == (step["end"] is None), (
            f"{step[0]}\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}"
        )
