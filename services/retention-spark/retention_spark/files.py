"""Small files in folders of any file system that Spark knows."""

from typing import Any

from pyspark.sql import SparkSession


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


def write_once(session: SparkSession, folder: str, name: str, value: bytes) -> None:
    """The file is there whole or not at all; one that is there stays as it is."""
    path = _path(session, folder, name)
    files = _system(session, path)
    if files.exists(path):
        return
    unfinished = _path(session, folder, f".{name}.unfinished")
    stream = files.create(unfinished, True)
    try:
        stream.write(bytearray(value))
    finally:
        stream.close()
    if not files.rename(unfinished, path):
        raise OSError(f"{path} cannot be written")


def _system(session: SparkSession, path: Any) -> Any:
    return path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001


def _path(session: SparkSession, folder: str, name: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(folder, name)  # type: ignore[union-attr]  # noqa: SLF001
