"""Files in folders of any file system that Spark knows."""

import os
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_CHUNK = 1024 * 1024
"""What goes to the JVM at once: there it takes some multiple of it."""

_CHECKSUM_ERROR = "org.apache.hadoop.fs.ChecksumException"


class DamagedFileError(Exception):
    """A file does not hold what was written: the machine went down, say, before it was on the disk."""


def exists(session: SparkSession, folder: str, name: str) -> bool:
    path = _path(session, folder, name)
    return bool(_system(session, path).exists(path))


def read(session: SparkSession, folder: str, name: str) -> bytes:
    """Raises DamagedFileError for one whose checksum is another."""
    path = _path(session, folder, name)
    files = _system(session, path)
    stream = files.open(path)
    try:
        size = files.getFileStatus(path).getLen()
        return bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))  # type: ignore[union-attr]  # noqa: SLF001
    except Py4JJavaError as error:
        if _CHECKSUM_ERROR not in f"{error}":
            raise
        raise DamagedFileError(error.java_exception.getMessage()) from error
    finally:
        stream.close()


def names(session: SparkSession, folder: str) -> list[str]:
    """What is in a folder; nothing if there is no such folder."""
    return [str(status.getPath().getName()) for status in _listed(session, folder)]


def sizes(session: SparkSession, folder: str) -> dict[str, int]:
    """The files of a folder with their bytes."""
    return {str(one.getPath().getName()): int(one.getLen()) for one in _listed(session, folder) if one.isFile()}


def empty_files(session: SparkSession, folder: str) -> list[str]:
    """The paths of all files in the folder, at any depth, that hold nothing; hidden ones do not count."""
    path = _path(session, folder, ".")
    files = _system(session, path)
    found: list[str] = []
    listed = files.listFiles(path, True) if files.exists(path) else None
    while listed is not None and listed.hasNext():
        file = listed.next()
        if file.getLen() == 0 and not file.getPath().getName().startswith("."):
            found.append(file.getPath().toUri().getPath())
    return sorted(found)


def remove(session: SparkSession, folder: str, name: str) -> None:
    """The file, or the folder with all that is in it, is gone, whether it was there or not."""
    path = _path(session, folder, name)
    _system(session, path).delete(path, True)


def rename(session: SparkSession, folder: str, name: str, other: str) -> None:
    path = _path(session, folder, other)
    if not _system(session, path).rename(_path(session, folder, name), path):
        raise OSError(f"{path} cannot be written")


def write_once(session: SparkSession, folder: str, name: str, value: bytes) -> None:
    """The file is there whole or not at all, and on the disk; one that is there stays as it is.

    Hadoop's local file system has checksums, and with them no way to sync.
    """
    path = _path(session, folder, name)
    files = _system(session, path)
    if files.exists(path):
        return
    unfinished = _path(session, folder, f".{name}.unfinished")
    is_local = files.getUri().getScheme() == "file"
    stream = files.create(unfinished, True)
    try:
        for at in range(0, len(value), _CHUNK):
            stream.write(bytearray(value[at : at + _CHUNK]))
        if stream.hasCapability("hsync"):
            stream.hsync()
    finally:
        stream.close()
    if is_local:
        _sync(unfinished)
    rename(session, folder, unfinished.getName(), name)
    if is_local:
        _sync(path.getParent())


def _sync(path: Any) -> None:
    """What a file or folder on this machine holds is on the disk."""
    descriptor = os.open(path.toUri().getPath(), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(session: SparkSession, folder: str) -> list[Any]:
    path = session._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]  # noqa: SLF001
    files = _system(session, path)
    return list(files.listStatus(path)) if files.exists(path) else []


def _system(session: SparkSession, path: Any) -> Any:
    return path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001


def _path(session: SparkSession, folder: str, name: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(folder, name)  # type: ignore[union-attr]  # noqa: SLF001
