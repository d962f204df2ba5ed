"""The tree of the last release, beside this one: its commit stands in `.ci/last-release`, its files in git's history.

A commit, not a tag: a clone has the commits, but tags only if they are fetched. Blocking.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMIT_FILE = ROOT / ".ci" / "last-release"


def commit() -> str:
    """The full id of the last release's commit."""
    [id] = [line for line in COMMIT_FILE.read_text().splitlines() if not line.startswith("#")]
    return id


def python_path(folder: Path) -> str:
    """The PYTHONPATH with which services run as they were released; their files are put into `folder` if need be.

    Raises CalledProcessError, with what git says, if the history does not have the commit.
    """
    tree = folder / commit()
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix="half-", dir=folder))
        packed = subprocess.run(
            ["git", "-C", str(ROOT), "archive", "--format=tar", commit(), "shared", "services"],
            stdout=subprocess.PIPE,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", str(half)], input=packed.stdout, check=True)
        try:
            half.rename(tree)
        except OSError:
            # Another process was quicker.
            shutil.rmtree(half)
    return os.pathsep.join(map(str, [tree / "shared", *sorted((tree / "services").iterdir())]))


def imported_from(python_path: str, module: str) -> Path:
    """Where a process with this PYTHONPATH takes a module from."""
    environment = {**os.environ, "PYTHONPATH": python_path}
    command = [sys.executable, "-c", f"import {module}; print({module}.__file__)"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True, cwd="/")
    return Path(done.stdout.strip())
