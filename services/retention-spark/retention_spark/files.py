"""Files in folders of any file system that Spark knows."""

from typing import Any

from pyspark.sql import SparkSession

_CHUNK = 1024 * 1024
"""What goes to the JVM at once: there it takes some multiple of it."""


def exists(session: SparkSession, folder: str, name: str) -> bool:
    path = _path(session, folder, name)
    return bool(_system(session, path).exists(path))


def read(session: SparkSession, folder: str, name: str) -> bytes:
    path = _path(session, folder, name)
    files = _system(session, path)
    stream = files.open(path)
    try:
        size = files.getFileStatus(path).getLen()
        return bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))  # type: ignore[union-attr]  # noqa: SLF001
    finally:
        stream.close()


def names(session: SparkSession, folder: str) -> list[str]:
    """What is in a folder; nothing if there is no such folder."""
    return [str(status.getPath().getName()) for status in _listed(session, folder)]


def sizes(session: SparkSession, folder: str) -> dict[str, int]:
    """The files of a folder with their bytes."""
    return {str(one.getPath().getName()): int(one.getLen()) for one in _listed(session, folder) if one.isFile()}


def remove(session: SparkSession, folder: str, name: str) -> None:
    """The file, or the folder with all that is in it, is gone, whether it was there or not."""
    path = _path(session, folder, name)
    _system(session, path).delete(path, True)


def rename(session: SparkSession, folder: str, name: str, other: str) -> None:
    path = _path(session, folder, other)
    if not _system(session, path).rename(_path(session, folder, name), path):
        raise OSError(f"{path} cannot be written")


def write_once(session: SparkSession, folder: str, name: str, value: bytes) -> None:
    """The file is there whole or not at all, and on the disk; one that is there stays as it is."""
    path = _path(session, folder, name)
    files = _system(session, path)
    if files.exists(path):
        return
    unfinished = f".{name}.unfinished"
    stream = files.create(_path(session, folder, unfinished), True)
    try:
        for at in range(0, len(value), _CHUNK):
            stream.write(bytearray(value[at : at + _CHUNK]))
        if stream.hasCapability("hsync"):
            stream.hsync()
    finally:
        stream.close()
    rename(session, folder, unfinished, name)


def _listed(session: SparkSession, folder: str) -> list[Any]:
    path = session._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]  # noqa: SLF001
    files = _system(session, path)
    return list(files.listStatus(path)) if files.exists(path) else []


def _system(session: SparkSession, path: Any) -> Any:
    return path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001


def _path(session: SparkSession, folder: str, name: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(folder, name)  # type: ignore[union-attr]  # noqa: SLF001
