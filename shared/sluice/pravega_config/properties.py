"""What Pravega's controller would read: its file of properties, the environment, and Java's system properties.

As there: the environment counts more than the file, a system property more than both, and a value that is nothing but
`${NAME}` stands for that of NAME, or for none.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

PREFIX = "controller."

_REFERENCE = re.compile(r"\$\{(.+)\}")
_PARTS = re.compile(r"((?:\\.|[^\\=:\s])+)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PravegaConfigError(Exception):
    """Settings of Pravega's controller that cannot be kept; one sentence for each."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def effective(file: str, options: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The properties of the controller, without references. `options` are arguments of Java. Raises PravegaConfigError.

    An empty `file` is none.
    """
    given = {**(_load(file) if file else {}), **environment, **_system_properties(options)}
    found = {}
    for name, value in given.items():
        reference = _REFERENCE.fullmatch(value.strip())
        resolved = given.get(reference[1]) if reference else value
        if name.startswith(PREFIX) and resolved is not None:
            found[name] = resolved.strip()
    return found


def _load(file: str) -> dict[str, str]:
    try:
        text = Path(file).read_text("latin-1")
    except OSError as error:
        raise PravegaConfigError(f"SLUICE_PRAVEGA_CONFIG={file}: it cannot be read: {error.strerror}") from None
    return dict(parsed(text))


def parsed(text: str) -> Iterator[tuple[str, str]]:
    """The names and values of a properties file of Java's."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for line in joined.splitlines():
        parts = _PARTS.fullmatch(line.lstrip(" \t\f")) if not line.lstrip().startswith(("#", "!")) else None
        if parts is not None:
            yield _unescaped(parts[1]), _unescaped(parts[2])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CONTROL.get(found[2], found[2]), text)


def _system_properties(options: str) -> dict[str, str]:
    """Those in arguments of Java: `-Dname=value`; others are passed over."""
    try:
        arguments = shlex.split(options)
    except ValueError as error:
        raise PravegaConfigError(f"SLUICE_PRAVEGA_OPTIONS cannot be read: {error}") from None
    pairs = (argument[2:].partition("=") for argument in arguments if argument.startswith("-D"))
    return {name: value for name, _, value in pairs}
