"""Run a program of the set-up so that a person sees that it moves, and sees everything if it fails.

Only the standard library is used. Functions without state.
"""

import subprocess
from collections import deque
from collections.abc import Callable, Sequence

from sluice_local.errors import LocalError

_KEPT_LINES = 40
_SHOW_EVERY = 20


def run_quietly(command: Sequence[str], failure: str) -> None:
    """Run a program and show nothing; if it fails, raise LocalError with its last lines."""
    run_counting(command, counted="\0", show=lambda _count: None, failure=failure)


def run_counting(command: Sequence[str], *, counted: str, show: Callable[[int], None], failure: str) -> None:
    """Run a program and show now and then how many of its lines contain a text; a failure is as in `run_quietly`."""
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    count = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            kept.append(line.rstrip())
            if counted in line:
                count += 1
                if count % _SHOW_EVERY == 0:
                    show(count)
    if process.returncode != 0:
        raise LocalError(f"{failure}\n" + "\n".join(f"    {line}" for line in kept))
