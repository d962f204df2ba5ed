"""Documents in one file on disk: the single-node case, with no server and the same interface.

The file is JSON that a person can read. Every write makes a new one beside it, brings it to the disk and replaces the
old one, so a crash leaves one or the other, whole. One process at a time has it: it holds an exclusive lock on
the file `<name>.lock`, which the kernel takes back when the process ends, however it ends. That file is never removed,
for a process that waits with the old one open would hold a lock that no other sees.

Concurrency: one thread does all writes, one after the other; memory follows when the disk has it.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from sluice_coordination.document import (
    Body,
    Document,
    Version,
    check_count,
    check_id,
    check_prefix,
    decode_body,
    encode_body,
)
from sluice_coordination.errors import ConflictError, StoreFailedError, StoreHeldError, StoreUnavailableError

T = TypeVar("T")
FORMAT = 1
_MODE = 0o600


class _Stored(msgspec.Struct):
    version: int
    body: msgspec.Raw


class _File(msgspec.Struct):
    format: int
    writes: int
    documents: dict[str, _Stored]


class FileStore:
    """See DocumentStore. Made by `open`."""

    def __init__(self, path: Path, lock: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._path = path
        self._lock: int | None = lock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coordination-file")
        self._file = _read(path)

    @classmethod
    async def open(cls, path: str | Path, timeout_s: float = 2.0) -> "FileStore":
        """Take the file, and create it with the first write if there is none.

        Raises StoreHeldError, naming the holder, if another process (or this one) has it; StoreFailedError if it
        cannot be read, or the folder is not there.
        """
        return await asyncio.to_thread(cls._open, Path(path), timeout_s)

    @classmethod
    def _open(cls, path: Path, timeout_s: float) -> "FileStore":
        lock = _take(path)
        try:
            return cls(path, lock, timeout_s)
        except BaseException:
            os.close(lock)
            raise

    async def get(self, id: str) -> Document | None:
        """See DocumentStore."""
        check_id(id)
        return await self._call(lambda: self._document(id))

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """See DocumentStore."""
        check_id(id)
        data = msgspec.Raw(encode_body(body))
        return await self._call(lambda: self._put(id, data, expected))

    async def delete(self, id: str, expected: Version) -> None:
        """See DocumentStore."""
        check_id(id)
        await self._call(lambda: self._delete(id, expected))

    async def under(self, prefix: str) -> dict[str, Document]:
        """See DocumentStore."""
        check_prefix(prefix)
        return await self._call(lambda: self._under(prefix))

    async def close(self) -> None:
        """Finish what is being written and let the file go."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _call(self, work: Callable[[], T]) -> T:
        # A caller that stops waiting does not stop the thread: the write is still done, in its order.
        call = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await asyncio.shield(call)
        except TimeoutError as error:
            call.add_done_callback(_seen)
            raise StoreUnavailableError(f"{self._path}: the disk is slow") from error
        except asyncio.CancelledError:
            call.add_done_callback(_seen)
            raise

    def _document(self, id: str) -> Document | None:
        found = self._file.documents.get(id)
        return None if found is None else Document(decode_body(bytes(found.body), id), Version(0, found.version))

    def _put(self, id: str, data: msgspec.Raw, expected: Version | None) -> Version:
        self._require(id, expected)
        number = self._file.writes + 1
        self._write(_File(FORMAT, number, {**self._file.documents, id: _Stored(number, data)}))
        return Version(0, number)

    def _delete(self, id: str, expected: Version) -> None:
        self._require(id, expected)
        documents = {each: stored for each, stored in self._file.documents.items() if each != id}
        self._write(_File(FORMAT, self._file.writes, documents))

    def _under(self, prefix: str) -> dict[str, Document]:
        ids = sorted(id for id in self._file.documents if id.startswith(prefix))
        check_count(len(ids), prefix)
        return {id: found for id in ids if (found := self._document(id)) is not None}

    def _require(self, id: str, expected: Version | None) -> None:
        found = self._file.documents.get(id)
        version = None if found is None else Version(0, found.version)
        if version != expected:
            raise ConflictError(f"{id} is at {version}, not at {expected}")

    def _write(self, content: _File) -> None:
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as file:
                os.fchmod(file.fileno(), _MODE)
                file.write(msgspec.json.encode(content))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            self._file = content
            _sync_folder(self._path.parent)
        except OSError as error:
            raise StoreUnavailableError(f"{self._path}: {error}") from error


def _seen(call: "asyncio.Future[T]") -> None:
    """Take note of how an abandoned call ended, so that it is not reported as forgotten."""
    if not call.cancelled():
        call.exception()


def _take(path: Path) -> int:
    try:
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise StoreFailedError(f"{path}: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(lock, 4096, 0).decode(errors="replace").strip()
        os.close(lock)
        if not isinstance(error, BlockingIOError):
            raise StoreFailedError(f"{path}: {error}") from error
        raise StoreHeldError(f"{path} by {holder or 'a process that is just beginning'}") from error
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    text = f"pid {os.getpid()} on host {socket.gethostname()} since {since}\n".encode()
    os.ftruncate(lock, 0)
    os.pwrite(lock, text, 0)
    return lock


def _read(path: Path) -> _File:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return _File(FORMAT, 0, {})
    except (OSError, msgspec.DecodeError) as error:
        raise StoreFailedError(f"{path}: {error}") from error
    if content.format != FORMAT:
        raise StoreFailedError(f"{path} has format {content.format}, this program reads {FORMAT}")
    return content


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
