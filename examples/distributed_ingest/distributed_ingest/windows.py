"""Which bytes of which files come next: a folder as a source that never ends. Pure; files are looked into by `Files`.

A *window* is a list of slices of files, about `window_bytes` together, so that small files share one. A slice of lines
ends behind a line's end, so that no line is cut and none is read twice. The position says for each file how far its
slices have been handed out.

A file is known by its inode, whatever its name: one that was renamed, as logs are when they are rotated, goes on where
it was. But an inode is given again, and a file may be cut off and grow again. It is still the same one if it has the
size and the time of change that it had, or if it is not shorter than what was handed out and has the same bytes at
both ends of that (a KiB each, by CRC): new files often begin like old ones. Anything else begins anew. Of a file that
counts as a whole its bytes say nothing: with another size or time of change it is another one.

A listing may be older than the folder: then another file may have taken the place of one that it names. So files are
opened by their path *and* inode, and one that is another by now counts as gone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from sluice_cli.errors import RefusedError

EDGE_BYTES = 1024
"""So much of the beginning and of the end of what was handed out of a file tells it from others."""
# The source's document holds the position and all windows that are under way, and has 1 MiB at most.
MAX_SLICES = 64
MAX_PATH_BYTES = 4 * 1024
MAX_POSITION_BYTES = 480 * 1024
_OFFSET_BYTES = 60


class FileOffset(msgspec.Struct, array_like=True, frozen=True):
    """How far a file has been handed out, and the checksum up to there, see Files.

    `changed_ns`: when it had been changed last as it was looked at then, in nanoseconds since 1970.
    """

    offset: int
    checksum: int
    changed_ns: int


Position = dict[str, FileOffset]
"""By inode, in digits."""


class Slice(msgspec.Struct, array_like=True, frozen=True):
    """Bytes `start` to `end` of a file, and the checksum up to `end`, which tells the file from others."""

    path: str
    start: int
    end: int
    inode: int
    checksum: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Found(NamedTuple):
    """A file that is there. `changed_ns`: when it was changed last; `settled`: it does not seem to be written now."""

    path: str
    inode: int
    size: int
    changed_ns: int
    settled: bool


class Listing(NamedTuple):
    """A folder as it was looked through once. `problems`: what was left out, by path, and why; it may be there too."""

    found: Sequence[Found]
    problems: Mapping[str, str]


class Named(Protocol):
    """A path in the folder, and the inode that the file there must have."""

    @property
    def path(self) -> str: ...

    @property
    def inode(self) -> int: ...


class Files(Protocol):
    """Looks into files. Each method raises FileNotFoundError if the file has gone or is another one, and OSError."""

    def checksum(self, file: Named, end: int) -> int:
        """Return the CRC of the first and of the last EDGE_BYTES of the first `end` bytes."""

    def last_line_end(self, file: Named, start: int, end: int) -> int | None:
        """Return the offset behind the last line end in this range, None if there is none."""

    def first_line_end(self, file: Named, start: int, end: int) -> int | None:
        """Return the offset behind the first line end in this range, None if there is none."""


class Cut(NamedTuple):
    """The next window, and the position behind it."""

    slices: list[Slice]
    position: Position


class Windows:
    """Cuts windows.

    `whole`: a file is a slice, once it is settled. `tails`: what follows the last line end of a file is a line, too.
    `problems`: which files could not be read when the last window was cut, and why.
    """

    def __init__(self, files: Files, window_bytes: int, *, whole: bool = False, tails: bool = False) -> None:
        self._files = files
        self._window_bytes = window_bytes
        self._whole = whole
        self._tails = tails
        self.problems: dict[str, str] = {}

    def next(self, position: Position, listing: Listing) -> Cut | None:
        """Return the window that begins at a position, None if there is nothing to read.

        Files are taken in the order of the listing; one that cannot be read does not stop the others. Raises
        RefusedError if there are too many for a position.
        """
        self.problems = {}
        after = dict(position)
        slices: list[Slice] = []
        left_bytes, left_path_bytes = self._window_bytes, MAX_PATH_BYTES
        for found in listing.found:
            if left_bytes <= 0 or left_path_bytes <= 0 or len(slices) == MAX_SLICES:
                break
            try:
                start = self._start(found, after.get(str(found.inode)))
                end = self._end(found, start, left_bytes, first=not slices)
                if end <= start:
                    continue
                checksum = self._files.checksum(found, end)
            except FileNotFoundError:
                # The next listing will not have it, or have it under its new name.
                continue
            except OSError as error:
                self.problems[found.path] = f"cannot be read: {error.strerror or error}"
                continue
            slices.append(Slice(found.path, start, end, found.inode, checksum))
            after[str(found.inode)] = FileOffset(end, checksum, found.changed_ns)
            left_bytes -= end - start
            left_path_bytes -= len(found.path.encode())
        return Cut(slices, _bounded(after, listing)) if slices else None

    def _start(self, found: Found, known: FileOffset | None) -> int:
        """Return how far a file has been handed out; 0 if it is not the one that was known."""
        if known is None:
            return 0
        # Unchanged files, most of them, are not looked into.
        if (found.size, found.changed_ns) == (known.offset, known.changed_ns):
            return known.offset
        if self._whole or found.size < known.offset:
            return 0
        return known.offset if self._files.checksum(found, known.offset) == known.checksum else 0

    def _end(self, found: Found, start: int, budget: int, *, first: bool) -> int:
        """Return where a slice that begins at `start` ends; `start` if there is none now."""
        if self._whole:
            return found.size if found.settled and (first or found.size <= budget) else start
        if found.size <= start:
            return start
        limit = min(found.size, start + budget)
        if limit == found.size and self._tails:
            return limit
        end = self._files.last_line_end(found, start, limit)
        if end is not None:
            return end
        if limit == found.size or not first:
            return start
        # A line longer than a window has a window to itself.
        end = self._files.first_line_end(found, limit, found.size)
        return end if end is not None else found.size if self._tails else start


def _bounded(position: Position, listing: Listing) -> Position:
    """Return a position that fits into a document: files that are gone are remembered only while there is room.

    Those that may only be out of sight, in a folder that could not be read, have all the room that there is.
    """
    if len(position) * _OFFSET_BYTES > (MAX_POSITION_BYTES if listing.problems else MAX_POSITION_BYTES // 2):
        there = {str(found.inode) for found in listing.found}
        position = {inode: known for inode, known in position.items() if inode in there}
    if len(position) * _OFFSET_BYTES > MAX_POSITION_BYTES:
        raise RefusedError(
            f"there are too many files: the positions of {len(position)} do not fit into a document",
            "move files that are through to another folder, or give each subfolder a job of its own",
        )
    return position
