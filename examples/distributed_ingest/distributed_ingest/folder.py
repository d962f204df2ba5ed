"""Files of a folder into the stream: the leader cuts windows, any node copies them.

Continuous: new files, and what is added to files, are found while it runs. While a window is copied, how far that is
stands in its task's document, written together with the renewal of its lock. So when a node dies, what is copied again
is at most one batch for each of its workers.

Concurrency: belongs to one event loop; files are read in threads.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from distributed_ingest.feed import Reach, Scene, lag
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.patience import PAUSES_S, tried, until_answered
from distributed_ingest.records import MAX_EVENT_BYTES, Event, LineSplitter
from distributed_ingest.tree import Tree
from distributed_ingest.windows import Cut, Found, Listing, Named, Position, Slice, Windows
from sluice_cli.errors import CommandError, RefusedError
from sluice_coordination import Functions, SourceState, Task, TaskContext, Window, WindowSource
from sluice_coordination.functions import Json

log = logging.getLogger(__name__)

NAME = "folder"
_FUNCTION = "copy-slices"
_REACHED = "reached"
_REPLACED = "the file has gone, or was replaced, while it was copied"
SEARCHES = 3
"""After so many attempts to find a file it counts as gone."""


class FileMissingError(Exception):
    """A file whose turn has come is not there, or is another one now."""


class Folder:
    """See Feed. `window_bytes`: how much a task copies; `ahead`: how many tasks are on the board at a time.

    `scan_s`: how often the folder is looked through, at most. `settle_s`: how long a file that counts as a whole must
    have stood unchanged.
    """

    def __init__(
        self,
        scene: Scene,
        root: Path,
        pattern: str,
        *,
        window_bytes: int,
        ahead: int,
        scan_s: float,
        settle_s: float,
    ) -> None:
        self._scene = scene
        self._root = root
        self._whole = scene.job.definition.records == "whole"
        self._ahead = ahead
        self._scan_s = scan_s
        settle_s = 0.0 if scene.once else settle_s
        # The leader's view of the folder and the one for the display are apart: each is read in a thread of its own.
        self._leading = _Scans(Tree(root, pattern, settle_s), window_bytes, whole=self._whole, tails=scene.once)
        self._watching = _Scans(Tree(root, pattern, settle_s), window_bytes, whole=self._whole, tails=scene.once)
        self._reading = Tree(root, pattern, settle_s)
        self._left_out: set[str] = set()

    async def open(self) -> None:
        """See Feed."""
        try:
            await asyncio.to_thread(self._watching.scan)
        except OSError as error:
            raise RefusedError(
                f"the folder {self._root} cannot be read: {error.strerror}", "is it there, and may you read it?"
            ) from error
        self._tell_left_out(self._watching.problems)

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._copy)

    def source(self) -> WindowSource:
        """See Feed."""
        return WindowSource(NAME, self.next_window, self._ahead)

    async def reach(self, state: SourceState) -> Reach:
        """See Feed. Counts bytes."""
        position = _position(self.source().position(state))
        if self._watching.age_s >= self._scan_s:
            await asyncio.to_thread(self._watching.scan)
        total = sum(found.size for found in self._watching.found)
        under_way = await self._under_way(state)
        offsets = (position.get(str(found.inode)) for found in self._watching.found)
        handed_out = sum(known.offset for known in offsets if known is not None)
        left = await asyncio.to_thread(self._watching.next, position)
        self._tell_left_out(self._watching.problems)
        finished = not state.tasks and left is None
        return Reach(total if finished else max(0, min(handed_out, total) - under_way), total, "bytes", finished)

    async def close(self) -> None:
        """See Feed."""

    async def _under_way(self, state: SourceState) -> int:
        """Return how many bytes have been handed out and are not in the stream yet, as tasks have noted it."""
        prefix = f"{self._scene.job.board}/part/{NAME}/"
        parts = await self._scene.store.under(prefix) if state.tasks else {}
        left = 0
        for key, task in state.tasks.items():
            part = parts.get(prefix + key)
            progress = _InWindow(*(part.body.get(_REACHED, (0, 0)) if part is not None else (0, 0)))
            left += progress.left(_slices(task.arguments["slices"]))
        return left

    # --- the leader's part

    async def next_window(self, position: Json) -> Window | None:
        before = _position(position)
        try:
            cut = await asyncio.to_thread(self._leading.next, before)
            if cut is None and self._leading.age_s >= self._scan_s:
                await asyncio.to_thread(self._leading.scan)
                cut = await asyncio.to_thread(self._leading.next, before)
        except (CommandError, OSError) as error:
            # The library asks again; people are to know why nothing comes.
            self._scene.outlet.tally.problem(f"the folder cannot be read: {error}")
            raise
        self._tell_left_out(self._leading.problems)
        if cut is None:
            return None
        return Window(Task(_FUNCTION, {"slices": msgspec.to_builtins(cut.slices)}), msgspec.to_builtins(cut.position))

    def _tell_left_out(self, problems: Mapping[str, str]) -> None:
        """Tell what cannot be read. It is looked at again and again; only if this ends before is it left out for good.

        So it counts with `once` alone, and for each node that finds it so.
        """
        for path, why in problems.items():
            if self._scene.once and path not in self._left_out:
                self._left_out.add(path)
                self._scene.outlet.skipped(path, 1, f"{path} is left out: {why}")
            else:
                self._scene.outlet.tally.problem(f"{path} is left out: {why}")

    # --- the part of any node

    async def _copy(self, context: TaskContext, slices: Json) -> None:
        """Copy the slices of a window, from where it was left."""
        found = await until_answered(lambda: self._scene.store.get(context.task), context.check)
        progress = _InWindow(*(found.body.get(_REACHED, (0, 0)) if found is not None else (0, 0)))
        todo = _slices(slices)
        while progress.number < len(todo):
            context.held_lock.report(lag(progress.left(todo), "bytes"))
            await self._copy_slice(context, todo[progress.number], progress)
            progress.next_slice()

    async def _copy_slice(self, context: TaskContext, slice: Slice, progress: "_InWindow") -> None:
        """Copy what is left of a slice; a file that cannot be found or read is tried again a few times.

        Raises OSError when that did not help. A file that is gone is reported and passed by.
        """
        if max(slice.start, progress.offset) >= slice.end:
            # All of it was noted before the task was begun anew; the file may have gone since.
            return
        copy, outlet = self._copy_whole if self._whole else self._copy_lines, self._scene.outlet

        async def find_and_copy() -> None:
            file = await asyncio.to_thread(self._find, slice)
            await copy(context, file, slice, max(slice.start, progress.offset), progress)

        async def search_and_copy() -> None:
            await tried(find_and_copy, FileMissingError, PAUSES_S[: SEARCHES - 1], lambda _: None)

        try:
            await tried(search_and_copy, OSError, PAUSES_S, lambda e: outlet.tally.problem(f"{slice.path}: {e}"))
        except FileMissingError as error:
            start = max(slice.start, progress.offset)
            why = f"{slice.path}: bytes {start} to {slice.end} are not in the stream: {error}"
            outlet.skipped(slice.path, 1, why)

    async def _copy_lines(
        self, context: TaskContext, file: Named, slice: Slice, start: int, progress: "_InWindow"
    ) -> None:
        splitter, outlet = LineSplitter(), self._scene.outlet
        read_to, skipped = start, 0
        while read_to < slice.end:
            context.check()
            piece = await asyncio.to_thread(self._read, slice, file, read_to, min(BATCH_BYTES, slice.end - read_to))
            read_to += len(piece)
            lines = splitter.feed(piece)
            if read_to == slice.end:
                lines += splitter.finish()
            events = [outlet.event(line, slice.path) for line in lines]
            reached = start + splitter.consumed
            await outlet.deliver(context, slice.path, events, functools.partial(progress.note, context, reached))
            if splitter.skipped > skipped:
                why = f"{slice.path}: a line before byte {reached} has more than {MAX_EVENT_BYTES} bytes"
                outlet.skipped(slice.path, splitter.skipped - skipped, why)
                skipped = splitter.skipped

    async def _copy_whole(
        self, context: TaskContext, file: Named, slice: Slice, _start: int, progress: "_InWindow"
    ) -> None:
        outlet = self._scene.outlet
        if slice.size > MAX_EVENT_BYTES:
            outlet.skipped(slice.path, 1, f"{slice.path}: the file has more than {MAX_EVENT_BYTES} bytes")
            return
        data = await asyncio.to_thread(self._read, slice, file, 0, slice.end)
        events: list[Event] = [outlet.event(data, slice.path)]
        await outlet.deliver(context, slice.path, events, functools.partial(progress.note, context, slice.end))

    def _find(self, slice: Slice) -> Named:
        """Return the file of a slice, under the path that it has now. Raises FileMissingError, OSError."""
        if self._is_of(slice, slice):
            return slice
        log.debug("%s is not there, it may have been renamed", slice.path)
        for found in Tree(self._root, "*", 0.0).list().found:
            if found.inode == slice.inode and self._is_of(slice, found):
                return found
        raise FileMissingError("the file has gone, or was replaced, before its turn came")

    def _is_of(self, slice: Slice, file: Named) -> bool:
        """Whether the file is there and has what the slice is of. Raises OSError."""
        try:
            size = (self._root / file.path).stat().st_size
            # A whole file that has grown is another event.
            fits = size == slice.end if self._whole else size >= slice.end
            return fits and self._reading.checksum(file, slice.end) == slice.checksum
        except FileNotFoundError:
            return False

    def _read(self, slice: Slice, file: Named, start: int, count: int) -> bytes:
        """Return bytes of a slice; they count only if the file is still that of the slice. Raises FileMissingError."""
        try:
            with self._reading.open(file) as opened:
                opened.seek(start)
                data = opened.read(count)
        except FileNotFoundError as error:
            raise FileMissingError(_REPLACED) from error
        if len(data) < count or not self._is_of(slice, file):
            raise FileMissingError(_REPLACED)
        return data


class _Scans:
    """The last listing of a folder, and what comes next by it."""

    def __init__(self, tree: Tree, window_bytes: int, *, whole: bool, tails: bool) -> None:
        self._tree = tree
        self._listing = Listing((), {})
        self._windows = Windows(tree, window_bytes, whole=whole, tails=tails)
        self._scanned_at = float("-inf")

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._scanned_at

    @property
    def problems(self) -> dict[str, str]:
        """What cannot be read, by path, and why."""
        return {**self._listing.problems, **self._windows.problems}

    @property
    def found(self) -> Sequence[Found]:
        """The files that are there."""
        return self._listing.found

    def scan(self) -> None:
        self._listing = self._tree.list()
        self._scanned_at = time.monotonic()

    def next(self, position: Position) -> Cut | None:
        return self._windows.next(position, self._listing)


@dataclass
class _InWindow:
    """How far a task is: the number of a slice, and the offset in its file."""

    number: int
    offset: int

    def next_slice(self) -> None:
        self.number, self.offset = self.number + 1, 0

    def left(self, slices: Sequence[Slice]) -> int:
        """Return how many bytes of these slices are still to be copied."""
        rest = slices[self.number :]
        begun = max(0, self.offset - rest[0].start) if rest else 0
        return sum(slice.size for slice in rest) - begun

    async def note(self, context: TaskContext, offset: int) -> None:
        """Note it in the task's document. Raises LockLostError; a store that is away is waited for until then."""
        self.offset = offset
        await until_answered(lambda: context.held_lock.update({_REACHED: [self.number, offset]}), context.check)


def _slices(value: Json) -> list[Slice]:
    return msgspec.convert(value, list[Slice])


def _position(value: Json) -> Position:
    return {} if value is None else msgspec.convert(value, Position)
