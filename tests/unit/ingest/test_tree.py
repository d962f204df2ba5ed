"""A real folder: what is listed, and where its lines end."""

import os
import tempfile
import zlib
from pathlib import Path

import pytest

from distributed_ingest import tree
from distributed_ingest.tree import Tree


def test_what_is_listed(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "c.txt", ".hidden.log", "sub/d.log", ".git/e.log"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
        os.utime(path, (1000, 1000))
    os.utime(tmp_path / "b.log", (900, 900))
    (tmp_path / "link.log").symlink_to(tmp_path / "c.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "broken.log").symlink_to(tmp_path / "nowhere")
    listed = [(found.path, found.size) for found in Tree(tmp_path, "*.log", 0.0).list().found]
    assert listed == [("b.log", 5), ("a.log", 5), ("link.log", 5), ("sub/d.log", 9)]


def test_a_name_that_is_no_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.log")).write_text("x")
    assert Tree(tmp_path, "*", 0.0).list() == ([], {r"'\udcff.log'": "its name is not UTF-8"})


def test_a_folder_that_is_away_is_an_error_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Tree(tmp_path / "none", "*", 0.0).list()


def test_settled_is_what_stood_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("distributed_ingest.tree.time.monotonic", lambda: now)
    path, listing = tmp_path / "a", Tree(tmp_path, "*", 2.0)

    def settled() -> bool:
        return listing.list().found[0].settled

    path.write_text("x")
    assert not settled()
    now = 1.9
    assert not settled()
    now = 2.0
    assert settled()
    path.write_text("xy")
    assert not settled()
    now = 4.0
    assert settled()


@pytest.mark.parametrize("block", [1, 3, 64])
def test_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(tree, "_BLOCK", block)
    data = b"ab\n\ncdefgh\nij"
    (tmp_path / "a").write_bytes(data)
    files = Tree(tmp_path, "*", 0.0)
    (file,) = files.list().found
    for start in range(len(data) + 1):
        for end in range(start, len(data) + 1):
            assert files.last_line_end(file, start, end) == (data.rfind(b"\n", start, end) + 1 or None)
            assert files.first_line_end(file, start, end) == (data.find(b"\n", start, end) + 1 or None)


def test_a_file_is_opened_by_its_inode_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    files = Tree(tmp_path, "*", 0.0)
    (old,) = files.list().found
    with files.open(old) as opened:
        assert opened.read() == b"old"
    (tmp_path / "a").rename(tmp_path / "a.1")
    (tmp_path / "a").write_text("new")
    with pytest.raises(FileNotFoundError, match="another file has this name now"):
        files.open(old)
    assert files.checksum(old._replace(path="a.1"), 3) == zlib.crc32(b"oldold")


def test_an_unreadable_subfolder_is_reported_and_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.log", "closed/b.log", "open/c.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    scan = os.scandir

    def refuse(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("distributed_ingest.tree.os.scandir", refuse)
    listing = Tree(tmp_path, "*", 0.0).list()
    assert sorted(found.path for found in listing.found) == ["a.log", "open/c.log"]
    assert listing.problems == {"closed": "cannot be read: Permission denied"}


def test_a_file_on_another_file_system_is_reported_and_left_out(tmp_path: Path) -> None:
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as elsewhere:
        (tmp_path / "here").touch()
        (tmp_path / "link").symlink_to(elsewhere.name)
        listing = Tree(tmp_path, "*", 0.0).list()
        assert [found.path for found in listing.found] == ["here"]
    assert listing.problems == {"link": "it is on another file system; give that a job of its own"}
