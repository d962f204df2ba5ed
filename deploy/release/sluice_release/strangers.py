"""Uses what was built as a user without a clone does: in new environments, from nothing but the wheels."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

from sluice_release.commands import ReleaseError, run

VERSIONS = ("3.11", "3.12", "3.13")
FIRST_EVENT = Path(__file__).with_name("first_event.py")
NOT_EVERYWHERE = ("sluice_streams_retention_spark", "sluice_streams_local")
"""They need Java, and Spark takes 400 MB: the environment of the bill of materials has them, on the first Python."""
READY_S = 120.0


def interpreters(versions: Sequence[str] = VERSIONS) -> dict[str, Path]:
    """The Pythons on the path that run, by version."""
    found = {}
    for version in versions:
        for folder in os.environ["PATH"].split(os.pathsep):
            python = Path(folder, f"python{version}")
            if python.exists() and subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0:
                found[version] = python
                break
    return found


def install_locked(python: Path, folder: Path, wheels: Path, lock: Path) -> Path:
    """Make an environment of all wheels in a folder and the locked packages they need, alone; return its Python."""
    run([python, "-m", "venv", "--without-pip", folder], wheels)
    made = folder / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", made]
    names = [path.name.partition("-")[0] for path in sorted(wheels.glob("*.whl"))]
    run([*pip, "install", "--quiet", "--no-deps", "--require-hashes", "-r", lock], folder)
    # By name: of a path pip would note where it was.
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--find-links", wheels, *names], folder)
    run([*pip, "check"], folder)
    return made


def try_wheels(python: Path, folder: Path, wheels: Path) -> str:
    """Install the wheels, call the command line, start `sluice dev`, write and read an event: what that printed.

    The packages of others are those that the index gives today. Raises ReleaseError.
    """
    ours = sorted(path for path in wheels.glob("*.whl") if not path.name.startswith(NOT_EVERYWHERE))
    run([python, "-m", "venv", folder], wheels)
    bin_folder = folder / "bin"
    run([bin_folder / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *ours], folder)
    empty = folder / "empty"
    empty.mkdir()
    if "dev" not in run([bin_folder / "sluice", "--help"], empty):
        raise ReleaseError("sluice --help does not name sluice dev")
    command = [str(bin_folder / "sluice"), "dev", "--grpc-port", "0", "--rest-port", "0", "--store-port", "0"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(empty)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=empty) as process:
        late = Timer(READY_S, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise ReleaseError(f"sluice dev ended before it was ready, or was not within {READY_S:.0f} s")
            said = run([bin_folder / "python", FIRST_EVENT, json.loads(line)["controller"]], empty)
        finally:
            late.cancel()
            process.terminate()
    if left := [path.name for path in empty.iterdir()]:
        raise ReleaseError(f"sluice dev has written {', '.join(left)}")
    return said.strip()
