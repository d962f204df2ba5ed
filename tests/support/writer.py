"""A writer in a process of its own, for tests that break things under it.

The client `pravega` keeps Python's lock while it waits for a segment store: in the process of the tests nothing else
would run as long as one is away. The process says on its output how many events are acknowledged; a line on its input
tells a steady writer, which waits for each event, to hurry.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

from sluice_local import launch


class WriterProcess:
    """Writes `count` events as a WriterThread does; begins at once. As a context it is gone after."""

    def __init__(self, address: str, scope: str, stream: str, name: str, count: int, *, steady: bool = True) -> None:
        self.name = name
        self.acknowledged = 0
        self._count = count
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        arguments = [address, scope, stream, name, str(count), str(int(steady))]
        tests = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "support.writer", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tests,
        )
        self._reader = threading.Thread(target=self._read, name=f"writer-{name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip().isdigit():
                self.acknowledged = int(line)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def hurry(self) -> None:
        """Write the rest as fast as it goes."""
        assert self._process.stdin is not None
        self._process.stdin.write("hurry\n")
        self._process.stdin.flush()

    def finish(self, deadline_s: float) -> None:
        """Wait for the end; fail if there is none in time or if writing failed."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name}: {self.acknowledged} of {self._count} acknowledged in {deadline_s} s"
            ) from None
        self._reader.join(5)
        assert status == 0 and self.acknowledged == self._count, f"{self.name}: {status}, {self.acknowledged}"

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    from support.pravega import WriterThread, manager

    address, scope, stream, name, count, steady = sys.argv[1:]
    # The client's threads end with its manager.
    streams = manager(address)
    writer = WriterThread(streams, scope, stream, name, int(count), steady=steady == "1")
    writer.told = lambda acknowledged: print(acknowledged, flush=True)

    def listen() -> None:
        if sys.stdin.readline():
            writer.hurry()

    threading.Thread(target=listen, daemon=True).start()
    writer.run()


if __name__ == "__main__":
    main()
