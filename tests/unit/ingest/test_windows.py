"""Windows over files: no line is cut, lost or handed out twice, however files grow, are renamed and replaced."""

import zlib
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributed_ingest import windows
from distributed_ingest.windows import EDGE_BYTES, Found, Listing, Named, Position, Slice, Windows
from sluice_cli.errors import RefusedError


@dataclass
class MemoryFiles:
    """A folder: content and inode by path. `refused`: paths that may not be read; `looked_into` counts openings.

    `hidden`: paths that cannot be listed.
    """

    data: dict[str, bytes] = field(default_factory=dict)
    inodes: dict[str, int] = field(default_factory=dict)
    last_inode: int = 0
    touched_ns: int = 0
    refused: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    looked_into: int = 0

    def put(self, path: str, data: bytes) -> None:
        """A new file, also where there is one."""
        self.last_inode += 1
        self.data[path], self.inodes[path] = data, self.last_inode

    def rename(self, path: str, to: str) -> None:
        self.data[to], self.inodes[to] = self.data.pop(path), self.inodes.pop(path)

    def listing(self, *, settled: bool = True) -> Listing:
        found = [
            # With other content a file has another time of change.
            Found(path, self.inodes[path], len(data), zlib.crc32(data) + self.touched_ns, settled)
            for path, data in sorted(self.data.items())
            if path not in self.hidden
        ]
        return Listing(found, dict.fromkeys(self.hidden, "cannot be read"))

    def _content(self, file: Named) -> bytes:
        self.looked_into += 1
        if self.inodes.get(file.path) != file.inode:
            raise FileNotFoundError(file.path)
        if file.path in self.refused:
            raise PermissionError(13, "Permission denied")
        return self.data[file.path]

    def checksum(self, file: Named, end: int) -> int:
        data = self._content(file)[:end]
        return zlib.crc32(data[:EDGE_BYTES] + data[-EDGE_BYTES:])

    def last_line_end(self, file: Named, start: int, end: int) -> int | None:
        return self._content(file).rfind(b"\n", start, end) + 1 or None

    def first_line_end(self, file: Named, start: int, end: int) -> int | None:
        return self._content(file).find(b"\n", start, end) + 1 or None


def through(found: Position) -> Position:
    """A position as it comes back from the store."""
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), Position)


def drain(files: MemoryFiles, cutting: Windows, position: Position) -> tuple[list[list[Slice]], Position]:
    """All windows that there are now."""
    found: list[list[Slice]] = []
    while (cut := cutting.next(position, files.listing())) is not None:
        found.append(cut.slices)
        position = through(cut.position)
    return found, position


CONTENT = st.text(alphabet="abc\n", max_size=60).map(str.encode)


@given(st.dictionaries(st.sampled_from("abcd"), CONTENT), st.integers(1, 40), st.booleans())
def test_windows_tile_files_at_line_ends(contents: dict[str, bytes], window_bytes: int, tails: bool) -> None:
    files = MemoryFiles()
    for path, data in contents.items():
        files.put(path, data)
    found, position = drain(files, Windows(files, window_bytes, tails=tails), {})
    reached: Counter[str] = Counter()
    for slices in found:
        for part in slices:
            assert part.start == reached[part.path] < part.end
            assert contents[part.path][part.end - 1 : part.end] == b"\n" or (
                tails and part.end == len(contents[part.path])
            )
            reached[part.path] = part.end
        # Only a line that has more than a window may make one larger.
        longest = max(len(line) + 1 for part in slices for line in contents[part.path].split(b"\n"))
        assert sum(part.size for part in slices) <= max(window_bytes, longest)
    for path, data in contents.items():
        assert reached[path] == (len(data) if tails else data.rfind(b"\n") + 1)
        known = position.get(str(files.inodes[path]))
        assert (known.offset if known else 0) == reached[path]


@given(st.lists(st.tuples(st.sampled_from("ab"), CONTENT), max_size=8), st.integers(1, 30))
def test_growing_files_are_handed_out_once(steps: list[tuple[str, bytes]], window_bytes: int) -> None:
    files = MemoryFiles()
    cutting = Windows(files, window_bytes)
    position: Position = {}
    handed: dict[str, bytes] = {"a": b"", "b": b""}
    for path, more in steps:
        if path in files.data:
            files.data[path] += more
        else:
            files.put(path, more)
        found, position = drain(files, cutting, position)
        for part in (part for slices in found for part in slices):
            handed[part.path] += files.data[part.path][part.start : part.end]
    for path, data in files.data.items():
        assert handed[path] == data[: data.rfind(b"\n") + 1]


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.put("log", b"one\ntwo\n")
    return files


@pytest.fixture
def cutting(files: MemoryFiles) -> Windows:
    return Windows(files, 1000)


def test_rotation_is_followed_window_by_window(files: MemoryFiles) -> None:
    """The new file under the old name has a window to itself; the old one is not forgotten over it."""
    cutting = Windows(files, 5)
    _, position = drain(files, cutting, {})
    files.data["log"] += b"three\n"
    files.rename("log", "log.1")
    files.put("log", b"four\n")
    files.put("a", b"1234\n")
    found, _ = drain(files, cutting, position)
    assert [[(part.path, part.start) for part in slices] for slices in found] == [
        [("a", 0)], [("log", 0)], [("log.1", 8)]
    ]  # fmt: skip


def test_two_files_that_change_names_keep_their_offsets(files: MemoryFiles, cutting: Windows) -> None:
    files.put("other", b"1\n2\n3\n")
    _, position = drain(files, cutting, {})
    for path, to in (("log", "x"), ("other", "log"), ("x", "other")):
        files.rename(path, to)
    assert drain(files, cutting, position)[0] == []
    files.data["log"] += b"4\n"
    (slices,), _ = drain(files, cutting, position)
    assert [(part.path, part.start, part.end) for part in slices] == [("log", 6, 8)]


@pytest.mark.parametrize("data", [b"x\n", b"something else, and longer\n", b"ten\ntwo\n"])
@pytest.mark.parametrize("same_inode", [False, True], ids=["another inode", "as copytruncate does it"])
def test_a_file_that_replaces_another_begins_anew(
    files: MemoryFiles, cutting: Windows, data: bytes, same_inode: bool
) -> None:
    _, position = drain(files, cutting, {})
    files.last_inode -= same_inode
    files.put("log", data)
    (slices,), _ = drain(files, cutting, position)
    assert (slices[0].start, slices[0].end) == (0, len(data))


def test_a_new_file_with_inode_and_header_of_an_old_one_begins_anew(files: MemoryFiles, cutting: Windows) -> None:
    header = b"column," * 200 + b"\n"
    files.put("old.csv", header + b"1,2\n" * 500)
    _, position = drain(files, Windows(files, 10_000), {})
    del files.data["old.csv"], files.inodes["old.csv"]
    files.last_inode -= 1
    files.put("new.csv", header + b"3,4\n" * 600)
    (slices,), position = drain(files, Windows(files, 10_000), position)
    assert [(part.path, part.start, part.end) for part in slices] == [("new.csv", 0, 3801)]
    files.data["new.csv"] += b"5,6\n"
    (slices,), _ = drain(files, cutting, position)
    assert [(part.start, part.end) for part in slices] == [(3801, 3805)]


def test_a_file_that_was_only_touched_is_not_read_again_and_an_unchanged_one_not_looked_into(
    files: MemoryFiles, cutting: Windows
) -> None:
    _, position = drain(files, cutting, {})
    looked_into = files.looked_into
    assert drain(files, cutting, position)[0] == [] and files.looked_into == looked_into
    files.touched_ns = 1
    assert drain(files, cutting, position)[0] == []


def test_a_whole_file_written_anew_is_another_one_also_with_the_same_size(files: MemoryFiles) -> None:
    cutting = Windows(files, 1000, whole=True)
    _, position = drain(files, cutting, {})
    files.data["log"] = b"one\nTWO\n"
    (slices,), position = drain(files, cutting, position)
    assert [(part.path, part.start, part.end) for part in slices] == [("log", 0, 8)]
    assert drain(files, cutting, position)[0] == []


def test_a_listing_from_before_a_rotation_hands_out_nothing_of_the_new_file(
    files: MemoryFiles, cutting: Windows
) -> None:
    _, position = drain(files, cutting, {})
    files.data["log"] += b"three\n"
    stale = files.listing()
    files.rename("log", "log.1")
    files.put("log", b"four, and more than the old one has\n")
    assert cutting.next(position, stale) is None
    (slices,), position = drain(files, cutting, position)
    assert [(part.path, part.start, part.end) for part in slices] == [("log", 0, 36), ("log.1", 8, 14)]
    assert drain(files, cutting, position)[0] == []


def test_a_file_that_cannot_be_read_does_not_stop_the_others(files: MemoryFiles, cutting: Windows) -> None:
    files.put("closed", b"x\n")
    files.refused.add("closed")
    found, position = drain(files, cutting, {})
    assert [part.path for slices in found for part in slices] == ["log"]
    assert cutting.problems == {"closed": "cannot be read: Permission denied"}
    files.refused.clear()
    found, _ = drain(files, cutting, position)
    assert [part.path for slices in found for part in slices] == ["closed"] and cutting.problems == {}


def test_whole_files_wait_until_they_are_settled(files: MemoryFiles) -> None:
    cutting = Windows(files, 4, whole=True)
    files.put("raw", b"no line end")
    assert cutting.next({}, files.listing(settled=False)) is None
    found, position = drain(files, cutting, {})
    assert [[(part.path, part.size) for part in slices] for slices in found] == [[("log", 8)], [("raw", 11)]]
    files.data["raw"] += b", more"
    (slices,), _ = drain(files, cutting, position)
    assert [(part.path, part.start, part.end) for part in slices] == [("raw", 0, 17)]


def test_a_file_that_vanishes_is_passed_by(files: MemoryFiles, cutting: Windows) -> None:
    listing = [*files.listing().found, Found("gone", 99, 10, 0, True)]
    cut = cutting.next({}, Listing(listing, {}))
    assert cut is not None and [part.path for part in cut.slices] == ["log"] and "99" not in cut.position


def test_a_window_is_bounded_in_files(files: MemoryFiles) -> None:
    for number in range(3 * windows.MAX_SLICES):
        files.put(f"f{number:04}", b"x\n")
    found, _ = drain(files, Windows(files, 1 << 20), {})
    assert max(map(len, found)) == windows.MAX_SLICES
    assert sum(map(len, found)) == 3 * windows.MAX_SLICES + 1


def test_files_that_are_gone_are_remembered_while_there_is_room(
    files: MemoryFiles, cutting: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, position = drain(files, cutting, {})
    away = files.data.pop("log")
    files.put("other", b"x\n")
    _, position = drain(files, cutting, position)
    assert set(position) == {"1", "2"}, "a folder that was away for a moment is not read again"
    monkeypatch.setattr(windows, "MAX_POSITION_BYTES", 120)
    files.put("third", b"x\n")
    files.data.pop("other")
    _, position = drain(files, cutting, position)
    assert set(position) == {"3"}
    files.data["log"] = away
    for number in range(3):
        files.put(f"more-{number}", b"x\n")
    with pytest.raises(RefusedError, match="too many files"):
        drain(files, cutting, position)


def test_a_file_that_cannot_be_listed_is_not_forgotten_though_more_come(
    files: MemoryFiles, cutting: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, position = drain(files, cutting, {})
    monkeypatch.setattr(windows, "MAX_POSITION_BYTES", 180)
    files.hidden.add("log")
    files.put("other", b"x\n")
    _, position = drain(files, cutting, position)
    files.hidden.clear()
    assert drain(files, cutting, position)[0] == []
    files.hidden.add("log")
    for number in range(2):
        files.put(f"more-{number}", b"x\n")
    _, position = drain(files, cutting, position)
    assert set(position) == {"2", "3", "4"}, "when there is no more room it goes on without that file"
