"""What is made of files that an operator replaces: made anew when they change, without a restart.

Contents are compared, not times: a mounted secret is replaced by moving a symbolic link. A version that cannot be used
is refused and named, and tried again with each look; the one before it stays in use.
"""

import asyncio
import logging
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from sluice.exceptions import CannotStartError
from sluice.security.validity import Validity

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_S = 2.0


class SecurityConfigError(CannotStartError):
    """Settings or files of security that cannot be used; the text is for the operator and holds nothing secret."""


ValidityOf = Callable[[Mapping[Path, bytes]], Validity | None]
"""Until when the certificates in these contents count. Raises SecurityConfigError if they do not."""


def _without_certificates(_contents: Mapping[Path, bytes]) -> None:
    return None


class Watched(Generic[T]):
    """What `make` makes of the contents of files, in their order.

    `make` and `validity_of` raise SecurityConfigError. Raises it, too, if the first version cannot be read or used.
    `current` is the newest usable version and `validity` that of its certificates; `name` says to operators what it is.
    """

    def __init__(
        self,
        name: str,
        paths: Sequence[Path],
        make: Callable[..., T],
        validity_of: ValidityOf = _without_certificates,
    ) -> None:
        self.name = name
        self._paths = tuple(paths)
        self._make = make
        self._validity_of = validity_of
        self._seen = self._read()
        self.current: T
        self.current, self.validity = self._made(self._seen)
        self._wrong: str | None = None

    def look(self) -> None:
        """Take the files as they are now, if they can be used."""
        try:
            contents = self._read()
            if contents == self._seen:
                self._wrong = None
                return
            self.current, self.validity = self._made(contents)
        except Exception as error:  # noqa: BLE001 - one strange file must not end the watching of all
            self._wrong = (
                str(error) if isinstance(error, SecurityConfigError) else f"unexpected: {type(error).__name__}"
            )
            return
        self._seen, self._wrong = contents, None
        log.info("a new version is in use", extra={"what": self.name})

    def problem(self) -> str | None:
        """Why the newest version is not in use, or what is has to be replaced; None while all is well."""
        refused = None if self._wrong is None else f"an older version is in use: {self._wrong}"
        ending = None if self.validity is None else self.validity.problem()
        return "; ".join(filter(None, (refused, ending))) or None

    def _made(self, contents: tuple[bytes, ...]) -> tuple[T, Validity | None]:
        made = self._make(*contents)
        return made, self._validity_of(dict(zip(self._paths, contents, strict=True)))

    def _read(self) -> tuple[bytes, ...]:
        try:
            # Some editors begin a file with a mark of its encoding, which is no part of what it holds.
            return tuple(path.read_bytes().removeprefix(BOM_UTF8) for path in self._paths)
        except OSError as error:
            raise SecurityConfigError(f"{self.name}: {error.filename} cannot be read: {error.strerror}") from None


def watched_password(name: str, file: str) -> Watched[str]:
    """The password in a file, without the end of its line. Raises SecurityConfigError."""

    def make(content: bytes) -> str:
        password = content.decode(errors="replace").rstrip("\r\n")
        if not password or "\ufffd" in password:
            raise SecurityConfigError(f"{file} holds no password")
        return password

    return Watched(name, [Path(file)], make)


def read_at_start(name: str, paths: Sequence[Path], validity_of: ValidityOf) -> Watched[None]:
    """Files of which what was read at the start stays in use: a change shows until the process is started anew."""
    versions = count()

    def validity_of_first(contents: Mapping[Path, bytes]) -> Validity | None:
        validity = validity_of(contents)
        if next(versions):
            raise SecurityConfigError("the files have changed, and are read only when the service starts")
        return validity

    return Watched(name, paths, lambda *_: None, validity_of_first)


async def keep_watching(watched: Iterable[Watched[Any]], look_s: float = LOOK_S) -> None:
    """Look at all of them every so often, and log what is wrong with one when that changes; never returns."""
    logged: dict[str, str | None] = {}
    while True:
        await asyncio.sleep(look_s)
        for one in watched:
            await asyncio.to_thread(one.look)
            problem = one.problem()
            if problem is not None and problem != logged.get(one.name):
                log.error("files of security", extra={"what": one.name, "error": problem})
            logged[one.name] = problem
