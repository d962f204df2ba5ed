"""The set-up: everything a clone needs before it can run, made once and renewed when its inputs change.

Run as `python3.11 -m sluice_local.setup` by a Python that has nothing installed; so this module, and what it imports,
uses only the standard library. One set-up runs at a time per state folder, and per folder of jars, which state folders
may share; a second one waits.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sluice_local import checks, jars, progress, stamp
from sluice_local.errors import LocalError
from sluice_local.home import CLONE, home_of_environment
from sluice_local.ownership import SupervisorRecord

LOCK_FILE = CLONE / "requirements.lock"
PROJECTS = (
    "shared",
    "shared/client",
    "shared/coordination",
    "services/api-gateway",
    "services/stream-workflows",
    "services/txn-manager",
    "services/cluster-manager",
    "services/retention-spark",
    "cli",
    "dev",
    "deploy/local",
    "examples/at_least_once",
    "examples/distributed_ingest",
)
_STAMP = ".sluice-stamp"


def say(line: str) -> None:
    """Show progress."""
    print(f"setup: {line}", flush=True)


def set_up(home: Path) -> None:
    """Bring environment and jars up to date."""
    began = time.monotonic()
    checks.require_python()
    version = _require_machine(home)
    folder = _jars_folder(home)
    with stamp.alone(home), stamp.alone(folder):
        # Both wait for the network most of the time.
        with ThreadPoolExecutor(max_workers=1) as beside:
            fetched = beside.submit(jars.fetch, folder, say, _programs())
            environment(home)
            fetched.result()
        class_archives(home, folder, version, home / "venv" / "bin" / "python")
    say(f"done in {time.monotonic() - began:.1f} s")


def set_up_programs(home: Path) -> None:
    """Bring the jars up to date where this Python has all packages, as one has that wheels were installed for."""
    version = _require_machine(home)
    folder = _jars_folder(home)
    with stamp.alone(folder):
        jars.fetch(folder, say, _programs())
        class_archives(home, folder, version, Path(sys.executable))


def _require_machine(home: Path) -> str:
    """Return what Java says of its version. Raises MissingPrerequisite, UnusableState."""
    version = checks.require_java()
    checks.require_maven()
    checks.require_folders(home)
    return version


def _jars_folder(home: Path) -> Path:
    return Path(os.environ.get("SLUICE_JARS") or home / "jars").absolute()


def _programs() -> Sequence[str]:
    """The programs whose jars are needed: a small system has no Spark."""
    return [program for program in jars.PROGRAMS if program != jars.SPARK or os.environ.get("PROFILE") != "small"]


def environment(home: Path) -> None:
    """Have the link `venv` lead to an environment with exactly the locked packages and the project's own.

    A new one is built in a folder of its own below `venvs`; when it is complete the link is replaced, at once. So a
    failure leaves the environment that worked. Former ones go, unless a system is up, which may run in one of them.
    """
    projects = [CLONE / name / "pyproject.toml" for name in PROJECTS]
    wanted = stamp.digest([LOCK_FILE, *projects], sys.version, str(CLONE))
    venv = home / "venvs" / wanted[:16]
    if not ((venv / "bin" / "python").exists() and stamp.is_current(venv / _STAMP, wanted)):
        shutil.rmtree(venv, ignore_errors=True)
        _build(venv)
        stamp.set_current(venv / _STAMP, wanted)
    _put_in_place(venv, home / "venv")
    if SupervisorRecord.read(home) is None:
        for former in venv.parent.iterdir():
            if former != venv:
                shutil.rmtree(former)


def class_archives(home: Path, jars_dir: Path, java_version: str, python: Path) -> None:
    """Have an archive of the classes of every Java program, made by this Java of these jars; see `archives`.

    Where none can be made that is said, and not tried once more with the same Java and jars: all runs without them.
    """
    stamped = jars_dir / "classes" / _STAMP
    descriptions = [jars.DESCRIPTIONS / f"{program}.pom.xml" for program in jars.PROGRAMS]
    wanted = stamp.digest(descriptions, java_version)
    if not stamp.is_current(stamped, wanted):
        say("archives of classes: running every Java program once; they start in half the time from then on")
        try:
            progress.run_quietly(
                [str(python), "-m", "sluice_local.archives", str(home), str(jars_dir)],
                "the archives of classes could not be made; Java programs take longer to start",
            )
        except LocalError as error:
            say(f"{error} (to have it tried again, remove {stamped.parent})")
            stamped.parent.mkdir(exist_ok=True)
        stamp.set_current(stamped, wanted)


def _build(venv: Path) -> None:
    say("virtual environment: creating")
    progress.run_quietly(
        [sys.executable, "-m", "venv", str(venv)],
        "the virtual environment could not be made (on Debian, Python's venv is a package: python3.11-venv)",
    )
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    count = sum("==" in line and not line.startswith((" ", "#")) for line in LOCK_FILE.read_text().splitlines())
    progress.run_counting(
        [*pip, "--require-hashes", "--progress-bar", "off", "-r", str(LOCK_FILE)],
        counted="Collecting",
        show=lambda done: say(f"virtual environment: {done} of {count} locked packages"),
        failure="the locked packages could not be installed: is a Python package index reachable from here?",
    )
    say(f"virtual environment: {count} locked packages installed; linking the project's own")
    editable = [argument for name in PROJECTS for argument in ("--editable", str(CLONE / name))]
    progress.run_quietly([*pip, "--no-build-isolation", *editable], "the project's own packages could not be linked")


def _put_in_place(venv: Path, link: Path) -> None:
    target = venv.relative_to(link.parent)
    if link.is_symlink() and link.readlink() == target:
        return
    new = link.with_name("venv.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)


def main(do: Callable[[Path], None] = set_up) -> int:
    """Set up the state folder that the environment names; return the exit code."""
    try:
        do(home_of_environment())
    except LocalError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; what was there is as it was", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
