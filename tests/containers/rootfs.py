"""The file system of an image that is made from programs of this machine: files, and the libraries they are linked to.

There may be no registry of images to take a base from; what Kafka, Redis and ZooKeeper need is here anyway.
"""

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)")
_LDD_LIMIT_S = 30.0


class RootFs:
    """Collects files for an image; `write` puts them into a tar archive, links followed."""

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}
        self._texts: dict[str, str] = {}
        self._folders: set[str] = set()

    def file(self, source: Path, target: str) -> None:
        """Add one file under an absolute path of the image."""
        self._files[target] = source

    def folder(self, source: Path, target: str, leave_out: Iterable[str] = ()) -> None:
        """Add the files below a folder, but those whose path in it matches a glob."""
        globs = tuple(leave_out)
        for path in sorted(source.rglob("*")):
            inside = path.relative_to(source)
            if path.is_file() and not any(inside.match(glob) for glob in globs):
                self.file(path, f"{target}/{inside}")

    def text(self, target: str, content: str) -> None:
        """Add a file with this content."""
        self._texts[target] = content

    def writable(self, target: str) -> None:
        """Add an empty folder that all users may write into."""
        self._folders.add(target)

    def libraries(self, programs: Iterable[Path]) -> None:
        """Add what these programs and libraries are linked to, the loader included, where this machine has it."""
        command = ("ldd", *map(str, programs))
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LDD_LIMIT_S, check=True)
        for found in set(_LIBRARY.findall(done.stdout)):
            self.file(Path(found), os.path.normpath(found))

    def describe(self) -> str:
        """Everything that decides on the content, as a text: to tell whether an image is made from the same."""
        stats = ((target, path.stat()) for target, path in sorted(self._files.items()))
        files = [f"{target} {stat.st_size} {stat.st_mtime_ns}" for target, stat in stats]
        texts = [f"{target}\n{text}" for target, text in sorted(self._texts.items())]
        return "\n".join([*files, *texts, *sorted(self._folders)])

    def write(self, archive: tarfile.TarFile, below: str) -> None:
        """Put everything into a folder of the archive, which must follow links."""
        for target, path in sorted(self._files.items()):
            archive.add(path, below + target, recursive=False)
        for target, text in sorted(self._texts.items()):
            add_text(archive, below + target, text)
        for target in sorted(self._folders):
            info = tarfile.TarInfo(below + target)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(info)


def add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    """Put a file with this content into the archive."""
    data = text.encode()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    archive.addfile(info, io.BytesIO(data))
