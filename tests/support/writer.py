"""A writer in a process of its own, for tests that break things under it; it prints its acknowledged events."""

import sys

from support.writing_process import WritingProcess, on_stop, own_output, program


class WriterProcess(WritingProcess):
    """Writes as a WriterThread does: `count` events, or until it is stopped."""

    def __init__(self, address: str, scope: str, stream: str, name: str, count: int | None = None) -> None:
        self.acknowledged = 0
        self._count = count
        counted = [] if count is None else [str(count)]
        super().__init__(name, program("writer", address, scope, stream, name, *counted))

    def receive(self, line: str) -> None:
        self.acknowledged = int(line)

    def progress(self) -> str:
        return f"{self.acknowledged} acknowledged"

    def finish(self, deadline_s: float) -> int:
        """Wait for the end; fail if there is none in time or if writing failed. Returns how many events it wrote."""
        self.wait(deadline_s)
        assert self._count in (None, self.acknowledged), f"{self.name}: {self.progress()}"
        return self.acknowledged


def main() -> None:
    from support.pravega import WriterThread, manager

    address, scope, stream, name, *count = sys.argv[1:]
    output = own_output()
    # The client's threads end with its manager.
    streams = manager(address)
    writer = WriterThread(streams, scope, stream, name, *map(int, count))
    writer.on_progress = lambda acknowledged: print(acknowledged, file=output, flush=True)
    on_stop(writer.stop)
    writer.run()


if __name__ == "__main__":
    main()
