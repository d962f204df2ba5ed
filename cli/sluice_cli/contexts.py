"""Contexts: the addresses of a system under a name, in a file of the user's.

The file is `sluice/contexts.json` in the user's folder for configuration (`XDG_CONFIG_HOME`, else `~/.config`). It
holds addresses only, never a secret: an address with a password in it is refused. A change replaces the file as a
whole, so a reader sees the old one or the new one; of two changes at the same moment the later one counts.
"""

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sluice_cli.errors import RefusedError, UsageError

_MODE = 0o600


@dataclass
class Contexts:
    """All contexts, each a name with addresses; `current` is the one in use, empty for none."""

    current: str = ""
    contexts: dict[str, dict[str, str]] = field(default_factory=dict)

    def one(self, name: str) -> dict[str, str]:
        """The addresses of a context. Raises RefusedError."""
        found = self.contexts.get(name)
        if found is None:
            raise RefusedError(f"there is no context {name!r}", "`sluice context list` shows the contexts there are")
        return found


def path() -> Path:
    """Where the file is, whether it is there or not."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "sluice" / "contexts.json"


def load() -> Contexts:
    """The contexts; none if there is no file. Raises UsageError for a file that cannot be read."""
    file = path()
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, str(error)) from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, str(error)) from error
    if not _is_valid(found):
        raise _unreadable(file, "it is not what `sluice context set` writes")
    return Contexts(found["current"], found["contexts"])


def save(kept: Contexts) -> None:
    """Replace the file. Raises UsageError if it cannot be written."""
    file = path()
    document = {"current": kept.current, "contexts": kept.contexts}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="utf-8", delete=False) as new:
            json.dump(document, new, indent=2, ensure_ascii=False)
            new.write("\n")
            new.flush()
            os.fsync(new.fileno())
        Path(new.name).chmod(_MODE)
        Path(new.name).replace(file)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", "XDG_CONFIG_HOME names another folder"
        ) from error


def checked(name: str, value: str) -> str:
    """An address as it may be kept. Raises UsageError for one with a password in it."""
    if "@" in value:
        raise UsageError(
            f"--{name} has a user or a password in it, which a context does not keep",
            "other users of the machine see what stands on a command line; give the address alone",
        )
    return value


def _is_valid(found: object) -> bool:
    if not isinstance(found, dict) or found.keys() != {"current", "contexts"}:
        return False
    current, kept = found["current"], found["contexts"]
    return (
        isinstance(current, str)
        and isinstance(kept, dict)
        and all(
            isinstance(addresses, dict) and all(isinstance(value, str) for value in addresses.values())
            for addresses in kept.values()
        )
    )


def _unreadable(file: Path, reason: str) -> UsageError:
    return UsageError(f"the contexts in {file} cannot be read: {reason}", "mend the file or remove it")
