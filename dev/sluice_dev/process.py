"""`sluice dev` in a process of its own, for a program that needs a Pravega for a while."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import msgspec

from sluice_dev.addresses import Addresses

READY_S = 60.0
ENDS_S = 30.0


class NotReadyError(Exception):
    """`sluice dev` has ended, or was not ready within a minute; its standard error says why."""


@contextmanager
def dev_process(*options: str) -> Iterator[Addresses]:
    """A `sluice dev` on free ports, which ends with the block, or with this process; `options` are of its command line.

    Raises NotReadyError.
    """
    ports = ("--grpc-port", "0", "--rest-port", "0", "--store-port", "0", "--until-input-ends")
    command = (sys.executable, "-m", "sluice_dev", *ports, *options)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        late = Timer(READY_S, process.kill)
        late.start()
        try:
            line = process.stdout.readline()
            late.cancel()
            if not line:
                raise NotReadyError(f"`{' '.join(command[1:])}` has ended, or was not ready within {READY_S:.0f} s")
            yield msgspec.json.decode(line, type=Addresses)
        finally:
            late.cancel()
            # Its end, in order on every system.
            process.stdin.close()
            try:
                process.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
