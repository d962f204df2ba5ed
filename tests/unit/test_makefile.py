"""How commands end that are run through make; scripts rely on it."""

import os
import subprocess
from pathlib import Path

CLONE = Path(__file__).parents[2]


def test_make_ends_with_2_and_names_the_commands_own_exit_code(tmp_path: Path) -> None:
    environment = {**os.environ, "SLUICE_HOME": str(tmp_path), "LC_ALL": "C"}
    run = subprocess.run(
        ["make", "status"], cwd=CLONE, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 2 and "Error 3" in run.stderr, "nothing is up"
