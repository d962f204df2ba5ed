"""A password file as a file, and passwords as they are typed: never on a command line, which others can read."""

import os
import sys
import tempfile
from pathlib import Path

import typer

from sluice_cli.errors import UsageError


def load(file: Path) -> bytes:
    """What the file holds. Raises UsageError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "give the path of a password file") from error


def save(file: Path, content: bytes) -> None:
    """Replace the file as a whole; only its owner may read it. Raises UsageError."""
    # A link goes on leading to the file.
    target = file.resolve()
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as new:
            try:
                new.write(content)
                new.flush()
                os.fsync(new.fileno())
                Path(new.name).replace(target)
            except BaseException:
                Path(new.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", "nothing was changed") from error


def typed_password(otherwise: str = "") -> str:
    """A password from the terminal, unseen and typed twice, or the first line of stdin.

    Raises UsageError if there is none; `otherwise` says what else may be done.
    """
    if sys.stdin.isatty():
        password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return password
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError(
            "there is no password", f"type it at a terminal, or give it as the first line of stdin{otherwise}"
        )
    return password
