"""What is made of files that an operator replaces: made anew when they change, without a restart.

Contents are compared, not times: a mounted secret is replaced by moving a symbolic link. A version that cannot be used
is refused and named; the one before it stays in use.
"""

import asyncio
import logging
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_S = 2.0


class SecurityConfigError(Exception):
    """Settings or files of security that cannot be used; the text is for the operator and holds nothing secret."""


class Watched(Generic[T]):
    """What `make` makes of the contents of files, in their order.

    `make` raises SecurityConfigError. Raises it, too, if the first version cannot be read or used. `current` is the
    newest usable version; `name` says to operators what it is.
    """

    def __init__(self, name: str, paths: Sequence[Path], make: Callable[..., T]) -> None:
        self.name = name
        self._paths = tuple(paths)
        self._make = make
        self._seen = self._read()
        self.current: T = make(*self._seen)
        self._wrong: str | None = None

    def look(self) -> None:
        """Take the files as they are now, if they can be used."""
        try:
            contents = self._read()
            if contents == self._seen:
                self._wrong = None
                return
            self.current = self._make(*contents)
        except Exception as error:  # noqa: BLE001 - one strange file must not end the watching of all
            wrong = str(error) if isinstance(error, SecurityConfigError) else f"unexpected: {type(error).__name__}"
            if self._wrong is None:
                log.error("the new version is refused", extra={"what": self.name, "error": wrong})
            self._wrong = wrong
            return
        self._seen, self._wrong = contents, None
        log.info("a new version is in use", extra={"what": self.name})

    def problem(self) -> str | None:
        """Why the newest version is not in use; None while it is."""
        return None if self._wrong is None else f"an older version is in use: {self._wrong}"

    def _read(self) -> tuple[bytes, ...]:
        try:
            # Some editors begin a file with a mark of its encoding, which is no part of what it holds.
            return tuple(path.read_bytes().removeprefix(BOM_UTF8) for path in self._paths)
        except OSError as error:
            raise SecurityConfigError(f"{error.filename} cannot be read: {error.strerror}") from None


def watched_password(name: str, file: str) -> Watched[str]:
    """The password in a file, without the end of its line. Raises SecurityConfigError."""

    def make(content: bytes) -> str:
        password = content.decode(errors="replace").rstrip("\r\n")
        if not password or "\ufffd" in password:
            raise SecurityConfigError(f"{file} holds no password")
        return password

    return Watched(name, [Path(file)], make)


def read_at_start(name: str, paths: Sequence[Path]) -> Watched[None]:
    """Files of which what was read at the start stays in use: a change shows until the process is started anew."""
    versions = count()

    def make(*_contents: bytes) -> None:
        if next(versions):
            raise SecurityConfigError("the files have changed, and are read only when the service starts")

    return Watched(name, paths, make)


async def keep_watching(watched: Iterable[Watched[Any]], look_s: float = LOOK_S) -> None:
    """Look at all of them every so often; never returns."""
    while True:
        await asyncio.sleep(look_s)
        for one in watched:
            await asyncio.to_thread(one.look)
