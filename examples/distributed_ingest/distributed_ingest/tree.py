"""The files of a folder: which there are, and what is in them. Blocking; called from threads.

Files and folders whose names begin with a dot are left out: what puts files there writes them under such a name and
renames them when they are whole. Links to files are followed, links to folders are not. What lies on another file
system than the folder itself is left out, and logged: an inode, by which a file is known, means something on one alone.
"""

import errno
import fnmatch
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from distributed_ingest.windows import EDGE_BYTES, Found, Listing, Named

_BLOCK = 64 * 1024
_ELSEWHERE = "it is on another file system; give that a job of its own"


class Tree:
    """One folder, seen again and again. `settle_s`: a file counts as settled when it has stood unchanged for so long.

    Files may be looked into from any thread, listed from one at a time.
    """

    def __init__(self, root: Path, pattern: str, settle_s: float) -> None:
        self.root = root
        self._pattern = pattern
        self._settle_s = settle_s
        self._seen: dict[str, tuple[int, int, float]] = {}

    def list(self) -> Listing:
        """Return the files that are there, by time of change and name. Raises OSError if the folder cannot be read."""
        now, seen, problems = time.monotonic(), self._seen, dict[str, str]()
        self._seen = {}
        found: list[tuple[int, Found]] = []
        for path, status in self._walk(self.root, self.root.stat().st_dev, problems):
            size, changed, since = seen.get(path, (-1, -1, now))
            if (size, changed) != (status.st_size, status.st_mtime_ns):
                since = now
            self._seen[path] = (status.st_size, status.st_mtime_ns, since)
            settled = now - since >= self._settle_s
            each = Found(path, status.st_ino, status.st_size, status.st_mtime_ns, settled)
            found.append((status.st_mtime_ns, each))
        return Listing([each for _, each in sorted(found)], problems)

    def _walk(self, folder: Path, device: int, problems: dict[str, str]) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda each: each.name)
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = os.path.relpath(entry.path, self.root)
            shown = path if _is_text(path) else ascii(path)
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.stat(follow_symlinks=False).st_dev == device:
                        yield from self._walk(Path(entry.path), device, problems)
                    else:
                        problems[shown] = _ELSEWHERE
                elif fnmatch.fnmatch(entry.name, self._pattern) and entry.is_file():
                    status = entry.stat()
                    if shown != path:
                        problems[shown] = "its name is not UTF-8"
                    # Not checked for plain files: under an overlay they may show another device than their folder.
                    elif entry.is_symlink() and status.st_dev != device:
                        problems[shown] = _ELSEWHERE
                    else:
                        yield path, status
            except FileNotFoundError:
                # Gone since the folder was read.
                continue
            except OSError as error:
                problems[shown] = f"cannot be read: {error.strerror or error}"

    # --- see windows.Files

    def checksum(self, file: Named, end: int) -> int:
        """See Files."""
        edge = min(EDGE_BYTES, end)
        with self.open(file) as data:
            first = zlib.crc32(data.read(edge))
            data.seek(end - edge)
            return zlib.crc32(data.read(edge), first)

    def last_line_end(self, file: Named, start: int, end: int) -> int | None:
        """See Files."""
        with self.open(file) as data:
            while end > start:
                first = max(start, end - _BLOCK)
                data.seek(first)
                at = data.read(end - first).rfind(b"\n")
                if at >= 0:
                    return first + at + 1
                end = first
        return None

    def first_line_end(self, file: Named, start: int, end: int) -> int | None:
        """See Files."""
        with self.open(file) as data:
            data.seek(start)
            while start < end and (block := data.read(min(_BLOCK, end - start))):
                at = block.find(b"\n")
                if at >= 0:
                    return start + at + 1
                start += len(block)
        return None

    def open(self, file: Named) -> BinaryIO:
        """Open a file by its path in the folder. Raises FileNotFoundError if another one is there now, and OSError."""
        opened = (self.root / file.path).open("rb")
        if os.fstat(opened.fileno()).st_ino != file.inode:
            opened.close()
            raise FileNotFoundError(errno.ENOENT, "another file has this name now", file.path)
        return opened


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
