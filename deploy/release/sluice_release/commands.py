"""Runs the programs that a release is made with. Each says what went wrong in its own words."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_LIMIT_S = 3600.0


class ReleaseError(Exception):
    """No release can be made; the message says why."""


def run(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """What a command prints that succeeds in a folder, with more in its environment. Raises ReleaseError.

    Of the environment of this Python it sees nothing: a release does not depend on who makes it.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=kept | dict(more or {}), capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(words)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
