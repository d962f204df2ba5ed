"""The set-up: everything a clone needs before it can run, made once and renewed when its inputs change.

Run as `python3.11 -m sluice_local.setup` by a Python that has nothing installed; so this module, and what it imports,
uses only the standard library. One set-up runs at a time per state folder (a file lock); a second one waits.
"""

import fcntl
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sluice_local import checks, jars, progress, stamp
from sluice_local.errors import LocalError

CLONE = Path(__file__).resolve().parents[3]
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
    checks.require_java()
    checks.require_maven()
    checks.require_state_folder(home)
    with (home / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Both wait for the network most of the time.
        with ThreadPoolExecutor(max_workers=1) as beside:
            fetched = beside.submit(jars.fetch, Path(os.environ.get("SLUICE_JARS") or home / "jars").absolute(), say)
            environment(home / "venv")
            fetched.result()
    say(f"done in {time.monotonic() - began:.1f} s")


def environment(venv: Path) -> None:
    """Make the virtual environment with exactly the locked packages and the project's own."""
    projects = [CLONE / name / "pyproject.toml" for name in PROJECTS]
    packages = stamp.digest([LOCK_FILE], sys.version)
    own = stamp.digest(projects, packages, str(CLONE))
    if stamp.is_current(venv / _STAMP, own):
        return
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    if not stamp.is_current(venv / f"{_STAMP}-packages", packages):
        say("virtual environment: creating")
        shutil.rmtree(venv, ignore_errors=True)
        progress.run_quietly(
            [sys.executable, "-m", "venv", str(venv)],
            "the virtual environment could not be made (on Debian, Python's venv is a package: python3.11-venv)",
        )
        count = sum("==" in line and not line.startswith((" ", "#")) for line in LOCK_FILE.read_text().splitlines())
        progress.run_counting(
            [*pip, "--require-hashes", "--progress-bar", "off", "-r", str(LOCK_FILE)],
            counted="Collecting",
            show=lambda done: say(f"virtual environment: {done} of {count} locked packages"),
            failure="the locked packages could not be installed: is a Python package index reachable from here?",
        )
        say(f"virtual environment: {count} locked packages installed")
        stamp.set_current(venv / f"{_STAMP}-packages", packages)
    say("virtual environment: linking the project's own packages")
    editable = [argument for name in PROJECTS for argument in ("--editable", str(CLONE / name))]
    progress.run_quietly(
        [*pip, "--no-deps", "--no-build-isolation", *editable], "the project's own packages could not be linked"
    )
    stamp.set_current(venv / _STAMP, own)


def main() -> int:
    """Set up the state folder that the environment names."""
    home = Path(os.environ.get("SLUICE_HOME") or CLONE / ".sluice").absolute()
    try:
        set_up(home)
    except LocalError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next one goes on where this one was", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
