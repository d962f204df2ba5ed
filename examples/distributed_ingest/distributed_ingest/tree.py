"""The files of a folder: which there are, and what is in them. Blocking; called from threads.

Files and folders whose names begin with a dot are left out: whoever puts files there writes them under such a name and
renames them when they are whole. Links to files are followed, links to folders are not.
"""

import fnmatch
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from distributed_ingest.windows import Found

_BLOCK = 64 * 1024


class Tree:
    """One folder, seen again and again. `settle_s`: a file counts as settled when it has stood unchanged for so long.

    Files may be looked into from any thread, listed from one at a time.
    """

    def __init__(self, root: Path, pattern: str, settle_s: float) -> None:
        self.root = root
        self.problems: list[str] = []
        """What was left out in the last listing."""
        self._pattern = pattern
        self._settle_s = settle_s
        self._seen: dict[str, tuple[int, int, float]] = {}

    def list(self) -> list[Found]:
        """Return the files that are there, by time of change and name. Raises OSError if a folder cannot be read."""
        now, seen, self.problems = time.monotonic(), self._seen, []
        self._seen = {}
        found: list[tuple[int, Found]] = []
        for path, status in self._walk(self.root):
            size, changed, since = seen.get(path, (-1, -1, now))
            if (size, changed) != (status.st_size, status.st_mtime_ns):
                since = now
            self._seen[path] = (status.st_size, status.st_mtime_ns, since)
            settled = now - since >= self._settle_s
            found.append((status.st_mtime_ns, Found(path, status.st_ino, status.st_size, settled)))
        return [each for _, each in sorted(found)]

    def _walk(self, folder: Path) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(Path(entry.path))
                    continue
                path = os.path.relpath(entry.path, self.root)
                if not fnmatch.fnmatch(entry.name, self._pattern) or not entry.is_file():
                    continue
                if not _is_text(path):
                    self.problems.append(f"{path!r} is left out: its name is not UTF-8")
                    continue
                try:
                    yield path, entry.stat()
                except FileNotFoundError:
                    # Gone since the folder was read.
                    continue

    # --- see windows.Files

    def head_sum(self, path: str, count: int) -> int:
        """See Files."""
        with self.open(path) as file:
            return zlib.crc32(file.read(count))

    def last_line_end(self, path: str, start: int, end: int) -> int | None:
        """See Files."""
        with self.open(path) as file:
            while end > start:
                first = max(start, end - _BLOCK)
                file.seek(first)
                at = file.read(end - first).rfind(b"\n")
                if at >= 0:
                    return first + at + 1
                end = first
        return None

    def first_line_end(self, path: str, start: int, end: int) -> int | None:
        """See Files."""
        with self.open(path) as file:
            file.seek(start)
            while start < end and (block := file.read(min(_BLOCK, end - start))):
                at = block.find(b"\n")
                if at >= 0:
                    return start + at + 1
                start += len(block)
        return None

    def open(self, path: str) -> BinaryIO:
        """Open a file by its path in the folder. Raises OSError."""
        return (self.root / path).open("rb")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
