"""Where back-ups are: a folder. What else can hold named files, such as an object store, needs these methods only."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol


class BackupError(Exception):
    """The back-up cannot be written, or is none, or is damaged; the message says which file, and why."""


class Target(Protocol):
    """Holds the files of one back-up. All methods raise BackupError."""

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Have the file whole, or not at all; what is there of that name is replaced."""
        ...

    def open(self, name: str) -> BinaryIO: ...

    def names(self) -> Iterator[str]: ...


class Folder:
    """See Target. Made with the first file that is written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """See Target."""
        unfinished = self._path / f".{name}.unfinished"
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path / name)
        except OSError as error:
            raise BackupError(f"{self._path / name} cannot be written: {error.strerror}") from error

    def open(self, name: str) -> BinaryIO:
        """See Target."""
        try:
            return (self._path / name).open("rb")
        except OSError as error:
            raise BackupError(f"{self._path / name} cannot be read: {error.strerror}") from error

    def names(self) -> Iterator[str]:
        """See Target."""
        return (path.name for path in sorted(self._path.iterdir())) if self._path.is_dir() else iter(())
