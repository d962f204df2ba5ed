"""Container images of a release: built as `make images` does, and packed into one archive."""

import re
import subprocess
from pathlib import Path

from sluice_release.commands import run
from sluice_release.source import Source


def engine_answers() -> bool:
    """Whether there is a container engine."""
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def build(source: Source, home: Path, into: Path) -> list[str]:
    """Build all images from the tree, with the jars of a state folder, and pack them into one file: their names."""
    said = run([source.tree / "deploy/images/build"], source.tree, {"SLUICE_HOME": str(home)})
    names = re.findall(r"^images: (\S+:\S+), ", said, re.MULTILINE)
    run(["docker", "save", "--output", into, *names], source.tree)
    return names
