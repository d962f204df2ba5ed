"""Where a local system keeps everything, and what stays the same whatever its settings say.

It exists so that `down`, `status` and `clean` need no valid setting but the state folder, and nothing but the standard
library: they must work when the set-up has failed. Functions without state.
"""

import os
from pathlib import Path

HOST = "127.0.0.1"
NAME = "localhost"
"""The same as a name: where TLS needs one."""
CLONE = Path(__file__).resolve().parents[3]
IS_CLONE = (CLONE / "requirements.lock").exists()
"""Otherwise this package was installed from a wheel."""
COMMAND = "make" if IS_CLONE else "sluice"
"""What people have before `up`, `down` and `status`."""


def default_home() -> Path:
    """Return the state folder that is used if none is named: in the clone, or where the user's programs keep theirs."""
    if IS_CLONE:
        return CLONE / ".sluice"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "sluice")


def home_of_environment() -> Path:
    """Return the state folder that the environment names."""
    return Path(os.environ.get("SLUICE_HOME") or default_home()).absolute()


def run_dir(home: Path) -> Path:
    """Return the folder that tells which processes run."""
    return (home / "run").absolute()


def logs_dir(home: Path) -> Path:
    """Return the folder that holds one log file per part."""
    return (home / "logs").absolute()
