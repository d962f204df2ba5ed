"""Stamps: notes that a step of the set-up was done with exactly these inputs.

A step runs again when, and only when, one of its input files has changed. Only the standard library is used. Functions
without state; `alone` keeps two set-ups of one folder apart.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def digest(inputs: Iterable[Path], *texts: str) -> str:
    """Return a digest of the contents of files and of some texts, in their order."""
    result = hashlib.sha256()
    for path in inputs:
        result.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for text in texts:
        result.update(text.encode() + b"\0")
    return result.hexdigest()


def is_current(stamp: Path, value: str) -> bool:
    """Whether the step was done with that digest."""
    try:
        return stamp.read_text() == value
    except FileNotFoundError:
        return False


def set_current(stamp: Path, value: str) -> None:
    """Note that the step is done, once what it made is on the disk: a power loss may leave files empty."""
    os.sync()
    stamp.write_text(value)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make the folder, and hold it for this set-up; wait while another one holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "setup.lock"
    if not lock.exists():
        if not os.access(folder, os.W_OK):
            # Nothing can be fetched into it either, so there is nothing to be alone for.
            yield
            return
        lock.touch()
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
