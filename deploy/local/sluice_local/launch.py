"""Become another program, tied to the life of the process that started it.

Run as a script: `python launch.py PARENT_PID PROGRAM ARGUMENT...`. It exists because a supervisor that is killed with
-9 can clean up nothing: the kernel has to. The request to be killed with one's parent survives the exec that follows.
Doing this here, and not between fork and exec of the supervisor, keeps Python code out of a forked copy of a process
with many threads.

The kernel means the *thread* that forked, not the process: see `sluice_local.process`.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process the signal when its parent ends, or has ended already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal_number)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
