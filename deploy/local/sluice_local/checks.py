"""What a machine must have before anything is downloaded or started.

It exists so that a missing program is named at once, and not after minutes in the words of whatever needed it first.
Only the standard library is used: the checks run before there is an environment to import from. Functions without
state.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sluice_local.errors import MissingPrerequisite, UnusableState

PYTHON_AT_LEAST = (3, 11)
JAVA_AT_LEAST = 17
FREE_AT_LEAST_BYTES = 1024**3


def require_python() -> None:
    """Raise MissingPrerequisite unless this Python is new enough for the code that follows."""
    if sys.version_info < PYTHON_AT_LEAST:
        wanted, found = (".".join(map(str, one[:2])) for one in (PYTHON_AT_LEAST, sys.version_info))
        raise MissingPrerequisite(f"Python is too old: {sys.executable} has version {found}, {wanted} is needed")


def require_java() -> str:
    """Return what the Java that runs says of its version; raise MissingPrerequisite unless that is at least 17."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    hint = f"install a Java runtime of version {JAVA_AT_LEAST} or newer (on Debian: openjdk-17-jre-headless)"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        where = f"at {java}, where JAVA_HOME points" if home else "on the path"
        raise MissingPrerequisite(f"Java is missing: there is no java {where}; {hint}") from None
    version = java_version(done.stdout + done.stderr)
    if version is None:
        raise MissingPrerequisite(f"`java -version` answers nothing useful: {done.stderr.strip()!r}; {hint}")
    if version < JAVA_AT_LEAST:
        raise MissingPrerequisite(f"Java is too old: {java} has version {version}; {hint}")
    return done.stdout + done.stderr


def java_version(output: str) -> int | None:
    """Return the major version in what `java -version` prints: 8 for "1.8.0_292", 17 for "17.0.15"."""
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def require_maven() -> None:
    """Raise MissingPrerequisite unless there is a Maven."""
    if shutil.which("mvn") is None:
        raise MissingPrerequisite(
            "Maven is missing: there is no mvn on the path, and the jars of Kafka and Pravega are fetched with it; "
            "install Maven 3.6 or newer (on Debian: maven)"
        )


def require_folders(*folders: Path, least_bytes: int = FREE_AT_LEAST_BYTES) -> None:
    """Make the state folder, and that of the data, which may be on another disk.

    Raises UnusableState if one cannot be written or its disk is nearly full.
    """
    hint = "or name another folder with SLUICE_HOME"
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(b"\0")
                probe.flush()
            free = shutil.disk_usage(folder).free
        except OSError as error:
            raise UnusableState(
                f"the state folder {folder} cannot be written ({error.strerror}): make it writable, {hint}"
            ) from error
        if free < least_bytes:
            raise UnusableState(
                f"the disk of the state folder {folder} is nearly full: {free // 2**20} MiB are free, "
                f"{least_bytes // 2**20} MiB are needed; make room, {hint}"
            )
