"""A writer in a process of its own, for tests that break things under it.

The client `pravega` keeps Python's lock while it waits for a segment store: in the process of the tests nothing else
would run as long as one is away. The process says on its output how many events are acknowledged; a line on its input
ends it after the present event.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

from sluice_local import launch


class WriterProcess:
    """Writes as a WriterThread does: `count` events, or until it is told to stop. As a context it is gone after."""

    def __init__(self, address: str, scope: str, stream: str, name: str, count: int | None = None) -> None:
        self.name = name
        self.acknowledged = 0
        self._count = count
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        arguments = [address, scope, stream, name, *([] if count is None else [str(count)])]
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

    def stop(self) -> None:
        """Have it end after the present event."""
        assert self._process.stdin is not None
        self._process.stdin.write("stop\n")
        self._process.stdin.flush()

    def finish(self, deadline_s: float) -> int:
        """Wait for the end; fail if there is none in time or if writing failed. Returns how many events it wrote."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name}: {self.acknowledged} acknowledged in {deadline_s} s") from None
        self._reader.join(5)
        assert status == 0 and self._count in (None, self.acknowledged), f"{self.name}: {status}, {self.acknowledged}"
        return self.acknowledged

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    address, scope, stream, name, *count = sys.argv[1:]
    # The client's threads end with its manager.
    streams = manager(address)
    writer = WriterThread(streams, scope, stream, name, *map(int, count))
    writer.told = lambda acknowledged: print(acknowledged, flush=True)

    def listen() -> None:
        if sys.stdin.readline():
            writer.stop()

    threading.Thread(target=listen, daemon=True).start()
    writer.run()


if __name__ == "__main__":
    main()
