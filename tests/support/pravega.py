"""A user of the PyPI client `pravega`: writes numbered events, reads them all through a reader group.

The client's calls block; where a loop of the caller must go on, use threads. Events are `writer:number` texts; the
routing key of an event follows from its number, so that order per key can be checked.
"""

import asyncio
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pravega_client

from support.controller import unique

KEYS = 8
BURST = 100
_PAUSE_S = 0.02


def manager(address: str) -> Any:
    """A StreamManager for a controller at host:port, or at tls://host:port.

    It has credentials, and so tokens, if the environment has some. Without credentials it wants no tokens either.
    """
    uri = address if "://" in address else f"tcp://{address}"
    is_known = "pravega_client_auth_method" in os.environ
    return pravega_client.StreamManager(uri, auth_enabled=is_known, tls_enabled=uri.startswith("tls://"))


class WriterThread(threading.Thread):
    """Writes `count` events of its own; `acknowledged` is how many are known to be stored, `on_progress` gets it.

    Without a count it writes, one event after the other with a short pause, until `stop()`.
    """

    def __init__(self, streams: Any, scope: str, stream: str, name: str, count: int | None = None) -> None:
        super().__init__(name=f"writer-{name}", daemon=True)
        self._writer = streams.create_writer(scope, stream, BURST)
        self._id = name
        self._count = count
        self._stopped = threading.Event()
        self.acknowledged = 0
        self.error: BaseException | None = None
        self.on_progress: Callable[[int], None] = lambda _acknowledged: None

    def run(self) -> None:
        try:
            while not self._stopped.wait(_PAUSE_S if self._count is None else 0) and self.acknowledged != self._count:
                first = self.acknowledged
                last = first + 1 if self._count is None else min(first + BURST, self._count)
                for number in range(first, last):
                    self._writer.write_event(f"{self._id}:{number}", f"{self._id}-key-{number % KEYS}")
                self._writer.flush()
                self.acknowledged = last
                self.on_progress(last)
        except BaseException as error:
            self.error = error
            raise

    def stop(self) -> None:
        """Have it end after the present event, or burst."""
        self._stopped.set()

    def finish(self, deadline_s: float) -> None:
        """Wait for the end; fail if there is none in time or if writing failed."""
        self.join(deadline_s)
        assert not self.is_alive(), f"{self.name} acknowledged {self.acknowledged} in {deadline_s} s"
        assert self.error is None, f"{self.name}: {self.error!r}"


async def read_all(group: Any, count: int | Callable[[], float], deadline_s: float) -> list[str]:
    """Read through one reader of the group until `count` events came, then look whether more come.

    A count that is not known yet is read anew after each part that was read.
    """
    reader = group.create_reader("reader")
    events = await _read(reader, count, deadline_s)
    try:
        async with asyncio.timeout(1.0):
            events += await _slice(reader)
    except TimeoutError:
        pass
    reader.reader_offline()
    return events


async def read(group: Any, count: int, deadline_s: float) -> list[str]:
    """Read through one reader of the group until `count` events came.

    The reader is not taken offline: that may last 30 s, until the client gives up what waits at the end of a segment.
    """
    return await _read(group.create_reader("reader"), count, deadline_s)


async def _read(reader: Any, count: int | Callable[[], float], deadline_s: float) -> list[str]:
    events: list[str] = []
    async with asyncio.timeout(deadline_s):
        while len(events) < (count() if callable(count) else count):
            events += await _slice(reader)
    return events


async def read_from_the_start(streams: Any, scope: str, stream: str, count: int, deadline_s: float) -> list[str]:
    """What `read_all` reads through a new group; where things die or stand still.

    The client panics when its group's segment is away for longer than its retries. Then it reads all again.
    """
    async with asyncio.timeout(deadline_s):
        while True:
            group = streams.create_reader_group(unique("rg"), scope, stream)
            try:
                return await read_all(group, count, deadline_s)
            except Exception as error:
                # The extension does not export its type.
                if type(error).__name__ != "RustPanic":
                    raise
                print(f"the client panicked while it read {scope}/{stream}; once more from the start")


async def _slice(reader: Any) -> list[str]:
    part = await reader.get_segment_slice_async()
    events = [event.data().decode() for event in part]
    reader.release_segment(part)
    return events


def check_exactly_once(events: list[str], writers: dict[str, int]) -> None:
    """Every event of every writer once, and in order per writer and routing key."""
    seen: dict[str, list[int]] = defaultdict(list)
    for event in events:
        writer, _, number = event.partition(":")
        seen[writer].append(int(number))
    for writer, count in writers.items():
        numbers = seen.pop(writer, [])
        missing, doubled = set(range(count)) - set(numbers), len(numbers) - len(set(numbers))
        assert not missing and not doubled, f"{writer}: {len(missing)} missing, {doubled} doubled"
        for key in range(KEYS):
            of_key = [n for n in numbers if n % KEYS == key]
            assert of_key == sorted(of_key), f"{writer}: key {key} out of order"
    assert not seen, f"events of unknown writers: {sorted(seen)}"
