"""Programs of others that only a release needs, in an environment of their own: nobody who runs Sluice has them.

`tools.lock` says their versions and hashes; `make lock` writes it anew.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sluice_release.commands import run

LOCK = Path(__file__).parents[1] / "tools.lock"
LIBRARIES = ("sluice_client", "sluice_coordination", "sluice_dev.pytest_plugin", "sluice_dev.container")


def environment(home: Path) -> Path:
    """The Python that has the tools, below the state folder; made anew if the lock is another one."""
    folder, stamp = home / "release", home / "release" / "tools.lock"
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_bytes() == LOCK.read_bytes()):
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder], home)
        run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", LOCK], home)
        shutil.copy(LOCK, stamp)
    return python


def write_reference(python: Path, tree: Path, into: Path, modules: Sequence[str] = LIBRARIES) -> None:
    """Write the pages of the libraries' interfaces, from their docstrings; `into` is theirs alone.

    They are imported, from the tree, with the packages of this environment.
    """
    sources = [str(tree / folder) for folder in ("shared", "shared/client", "shared/coordination", "dev")]
    path = os.pathsep.join([*sources, *filter(None, sys.path)])
    shutil.rmtree(into, ignore_errors=True)
    options: list[str | Path] = ["--no-show-source", "--docformat", "markdown", "--output-directory", into]
    more = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    run([python, "-m", "pdoc", *options, *modules], tree, more)


def write_bill(python: Path, described: Path, into: Path, epoch_s: int) -> None:
    """Write what an environment has installed, and what needs what, as CycloneDX; `described` is that Python."""
    options: list[str | Path] = ["--output-reproducible", "--output-file", into]
    more = {"SOURCE_DATE_EPOCH": str(epoch_s)}
    run([python, "-m", "cyclonedx_py", "environment", *options, described], into.parent, more)
