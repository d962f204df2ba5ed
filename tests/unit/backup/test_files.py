"""The files of a back-up: what was not finished, is damaged, or is of another format is refused with its reason."""

from pathlib import Path

import pytest
from support.backups import back_up
from support.txn_log import TxnLog

from sluice.backup.files import MANIFEST, read_manifest
from sluice.backup.states import read_states
from sluice.backup.target import BackupError, Folder


def made(tmp_path: Path) -> tuple[Folder, Path]:
    log = TxnLog()
    log.open("one")
    return back_up(tmp_path, [log.view]), tmp_path / "partition-00000.parts"


def read(target: Folder) -> None:
    read_states(target, read_manifest(target))


def test_a_back_up_is_read_as_it_was_written(tmp_path: Path) -> None:
    target, file = made(tmp_path)
    read(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, file.name]


def test_a_back_up_that_was_not_finished_is_refused(tmp_path: Path) -> None:
    target, _ = made(tmp_path)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(BackupError, match="not finished"):
        read(target)


@pytest.mark.parametrize("at", [0, 3, 40, -1])
def test_a_file_with_another_byte_is_refused(tmp_path: Path, at: int) -> None:
    target, file = made(tmp_path)
    value = bytearray(file.read_bytes())
    value[at] ^= 0x40
    file.write_bytes(bytes(value))
    with pytest.raises(BackupError, match=file.name):
        read(target)


@pytest.mark.parametrize("kept", [0, 2, 100])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    target, file = made(tmp_path)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(BackupError, match=file.name):
        read(target)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    target, file = made(tmp_path)
    file.unlink()
    with pytest.raises(BackupError, match=file.name):
        read(target)


def test_a_back_up_of_another_format_is_refused_whatever_it_holds(tmp_path: Path) -> None:
    target, _ = made(tmp_path)
    (tmp_path / MANIFEST).write_text('{"format": 2, "unheard": []}')
    with pytest.raises(BackupError, match="format 2"):
        read(target)


def test_files_of_partitions_that_changed_places_are_refused(tmp_path: Path) -> None:
    first, second = TxnLog(), TxnLog()
    target = back_up(tmp_path, [first.view, second.view])
    with pytest.raises(BackupError, match="another partition"):
        read(target)
