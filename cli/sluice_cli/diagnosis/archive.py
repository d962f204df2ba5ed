"""The archive: each part is collected by itself, and one that cannot be had is named with the reason.

A system that is not well is what the archive is for: a part that is away does not end the command. No values of events
or dead letters are in it. Everything passes through the redactor.
"""

import io
import json
import os
import platform
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

from sluice.lookback.errors import LookbackError
from sluice_cli import addresses, contexts
from sluice_cli.api import Api, path_of
from sluice_cli.diagnosis.secrets import Redactor, secrets_in
from sluice_cli.errors import CommandError, UnreachableError, UsageError
from sluice_cli.records.tailing import topic_documents
from sluice_cli.session import Session

LOG_BYTES = 1024 * 1024
"""How much of a log is taken, from its end."""

REST_S = 10.0
"""How long one answer may take: a gateway that hangs is not waited for."""

_PREFIXES = ("SLUICE_", "SEGMENT_STORES")


class Collected(NamedTuple):
    """The files of the archive by name, and why the others are not there."""

    files: dict[str, bytes]
    problems: dict[str, str]


def collect(session: Session, home: Path) -> Collected:
    """Everything that can be had now; `home` is the state folder of a local system."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    redactor = Redactor(secrets_in({**settings, **_files_named(settings)}))
    found = Collected({}, {})

    def add(name: str, document: Callable[[], Any]) -> None:
        try:
            text = json.dumps(redactor.document(document()), indent=2, ensure_ascii=False)
        except (CommandError, LookbackError, OSError) as error:
            found.problems[name] = redactor.text(str(error))
        else:
            found.files[f"{name}.json"] = f"{text}\n".encode(errors="replace")

    add("versions", _versions)
    add("settings", lambda: _settings(session, settings))
    add("topics", lambda: topic_documents(session.records.topics()))
    _collect_rest(session, add)
    for name, file in _local_files(home):
        try:
            found.files[name] = redactor.text(_end_of(file)).encode(errors="replace")
        except OSError as error:
            found.problems[name] = str(error)
    return found


def write(found: Collected, file: Path, folder: str) -> None:
    """Write the archive, for its user alone. Raises UsageError if the file exists or cannot be written."""
    named = {**found.files, "problems.json": (json.dumps(found.problems, indent=2, ensure_ascii=False) + "\n").encode()}
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritable(file, error) from error
    try:
        with os.fdopen(opened, "wb") as target, tarfile.open(fileobj=target, mode="w:gz") as archive:
            for name, content in sorted(named.items()):
                entry = tarfile.TarInfo(f"{folder}/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    except OSError as error:
        # Half an archive looks like a whole one.
        file.unlink()
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> UsageError:
    return UsageError(f"{file} cannot be written: {error.strerror}", "--output FILE names another file")


def _collect_rest(session: Session, add: Callable[[str, Callable[[], Any]], None]) -> None:
    """What the API knows. Once it could not be reached, or not even be called, the rest of it is not tried."""
    away: list[CommandError] = []
    with ExitStack() as opened:
        api = cache(lambda: opened.enter_context(session.rest_within(REST_S)))

        def reached(look: Callable[[Api], Any]) -> Callable[[], Any]:
            def found() -> Any:
                if away:
                    raise away[0]
                try:
                    return look(api())
                except (UnreachableError, UsageError) as error:
                    away.append(error)
                    raise

            return found

        add("readiness", reached(Api.readiness))
        add("members", reached(lambda api: list(api.pages(path_of("members")))))
        add("containers", reached(lambda api: api.get(path_of("containers"))))
        add("workflows", reached(lambda api: list(api.pages(path_of("workflows")))))
        add("dead-letters", reached(lambda api: _letters(api.pages(path_of("dead-letters")))))


def _letters(letters: Iterator[Any]) -> dict[str, Any]:
    """How many there are of each topic, never what is in them."""
    counts = Counter(str(letter["topic"]) for letter in letters)
    return {"count": counts.total(), "byTopic": dict(sorted(counts.items()))}


def _versions() -> dict[str, Any]:
    ours = {each.name: each.version for each in distributions() if each.name}
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "distributions": dict(sorted(ours.items(), key=lambda item: item[0].lower())),
    }


def _settings(session: Session, settings: dict[str, str]) -> dict[str, Any]:
    used = {which.value: addresses.find(which, session.given)._asdict() for which in addresses.Address}
    return {"addresses": used, "contexts": contexts.load().contexts, "environment": dict(sorted(settings.items()))}


def _files_named(settings: dict[str, str]) -> dict[str, str]:
    """The texts of the files that settings name: they are not collected, but what is secret in them is known then."""
    found = {}
    for name, value in settings.items():
        try:
            with Path(value).open("rb") as file:
                found[f"{name}:file"] = file.read(LOG_BYTES).decode(errors="replace")
        except (OSError, ValueError):
            continue
    return found


def _local_files(home: Path) -> Iterator[tuple[str, Path]]:
    """Logs, and which processes run, of a system on this machine; nothing if there is none."""
    for folder, pattern in (("logs", "*.log"), ("run", "*.json")):
        for file in sorted((home / folder).glob(pattern)):
            yield f"{folder}/{file.name}", file


def _end_of(file: Path) -> str:
    with file.open("rb") as source:
        size = source.seek(0, os.SEEK_END)
        source.seek(max(0, size - LOG_BYTES))
        return source.read().decode(errors="replace")
