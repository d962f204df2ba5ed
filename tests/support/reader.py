"""A reader in a process of its own: the PyPI client `pravega` reads a stream from the start, and prints every event."""

import asyncio
import sys
from typing import TextIO

from support.writing_process import WritingProcess, own_output, program


class ReaderProcess(WritingProcess):
    """Reads in a new group until it is closed. It ends by itself where the client panics: when its group is away."""

    def __init__(self, address: str, scope: str, stream: str) -> None:
        self.events: list[str] = []
        super().__init__("reader", program("reader", address, scope, stream))

    def receive(self, line: str) -> None:
        self.events.append(line.rstrip())

    def progress(self) -> str:
        return f"{len(self.events)} read"


async def _read(output: TextIO, address: str, scope: str, stream: str) -> None:
    from support.controller import unique
    from support.pravega import manager

    # The client's threads end with its manager.
    streams = manager(address)
    reader = streams.create_reader_group(unique("rg"), scope, stream).create_reader("reader")
    while True:
        part = await reader.get_segment_slice_async()
        for event in part:
            print(event.data().decode(), file=output)
        output.flush()
        reader.release_segment(part)


if __name__ == "__main__":
    asyncio.run(_read(own_output(), *sys.argv[1:]))
