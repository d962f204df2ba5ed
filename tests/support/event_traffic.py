"""Writers on a stream of four segments while a test does things to the system; in the end all is there once."""

import asyncio
from functools import partial
from typing import Self

from harness import eventually
from support.controller import Controller, unique
from support.pravega import check_exactly_once, manager, read_from_the_start
from support.writer import WriterProcess

GOES_ON_S = 120.0


class EventTraffic:
    """Two writers that go on writing, event by event, until `ends_exactly_once`. As a context they are gone after.

    What was written is read by way of `reads_at`, which must be no thread of this process: the client that reads keeps
    Python's lock while it waits.
    """

    def __init__(self, gateway: Controller, address: str, reads_at: str = "") -> None:
        self._address, self._reads_at = address, reads_at or address
        self._scope, self._stream = unique("traffic"), "st"
        self._writers: list[WriterProcess] = []
        self._failed: list[WriterProcess] = []
        assert gateway.create_scope(self._scope) == "SUCCESS"
        assert gateway.create_stream(self._scope, self._stream, 4) == "SUCCESS"
        for name in ("a", "b"):
            self.begin(name)

    def begin(self, name: str, count: int | None = None) -> WriterProcess:
        """One more writer; one with a count is through after so many events."""
        writer = WriterProcess(self._address, self._scope, self._stream, name, count)
        self._writers.append(writer)
        return writer

    def goes_on(self) -> None:
        """All writers get some more events acknowledged. In the place of one whose client has failed another begins."""
        for writer in [each for each in self._writers if each.has_failed and each not in self._failed]:
            print(f"the client of writer {writer.name} has failed, {writer.progress()}")
            self._failed.append(writer)
            self.begin(f"{writer.name}'")
        before = [(writer, writer.acknowledged) for writer in self._writers if writer.running]
        for writer, so_far in before:
            eventually(partial(_goes_on, writer, so_far + 5), GOES_ON_S, f"{writer.name} goes on after {so_far}")
        if any(writer.has_failed for writer, _ in before):
            self.goes_on()

    async def ends_exactly_once(self, deadline_s: float = GOES_ON_S) -> int:
        """Writing ends; then all events are read once, in the order of their keys. Returns how many."""
        for writer in self._writers:
            writer.stop()
        for writer in self._writers:
            if writer not in self._failed:
                await asyncio.to_thread(writer.finish, deadline_s)
        written = {writer.name: writer.acknowledged for writer in self._writers}
        count = sum(written.values())
        events = await read_from_the_start(manager(self._reads_at), self._scope, self._stream, count, deadline_s)
        for writer in self._failed:
            # Whether its last event is there is not known.
            written[writer.name] += f"{writer.name}:{writer.acknowledged}" in events
        check_exactly_once(events, written)
        return count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers:
            writer.close()


def got_beyond(writer: WriterProcess, number: int) -> bool:
    return writer.acknowledged > number


def _goes_on(writer: WriterProcess, number: int) -> bool:
    return writer.has_failed or got_beyond(writer, number)
