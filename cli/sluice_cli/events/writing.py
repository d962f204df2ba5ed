"""Writing events: those of the command line, or each line of stdin as it comes.

A batch is what is there at the moment; it is stored before more is read, so a line that is typed is stored at once and
a file goes in large blocks. Between two batches the event loop stands still: reading stdin blocks, and Ctrl-C then ends
the command as anywhere else.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import takewhile
from typing import BinaryIO, NoReturn

from sluice.pravega.event_frames import MAX_EVENT_BYTES
from sluice_cli.errors import CommandError, UsageError
from sluice_cli.events.failures import as_command_errors
from sluice_client import Client, EventWriter

READ_BYTES = 256 * 1024
PATIENCE_S = 30.0


def write(
    opened: AbstractAsyncContextManager[Client],
    controller: str,
    stream: tuple[str, str],
    batches: Iterable[list[bytes]],
    key: str | None,
) -> int:
    """Store the events of each batch; return how many there are. Raises CommandError."""
    name, stored = "/".join(stream), 0
    with as_command_errors(controller, name), asyncio.Runner() as runner:
        client = runner.run(opened.__aenter__())
        try:
            writer = EventWriter(client.store, partial(client.controller.key_ranges, *stream), PATIENCE_S)
            for batch in batches:
                for event in batch:
                    writer.add(key, event)
                try:
                    with as_command_errors(controller, name):
                        runner.run(writer.flush())
                except CommandError as error:
                    _fail(error, stored, len(batch))
                stored += len(batch)
        except UsageError as error:
            error.hint = f"{error.hint}; {stored} events before it are stored"
            raise
        finally:
            runner.run(opened.__aexit__(None, None, None))
    return stored


def lines(source: BinaryIO) -> Iterator[list[bytes]]:
    """The lines that are there, without their ends, until the input ends. Raises UsageError behind those before it for
    one that is too long.
    """
    rest = b""
    while data := source.read1(READ_BYTES):  # type: ignore[attr-defined]
        *whole, rest = (rest + data).split(b"\n")
        fitting = list(takewhile(lambda line: len(line) <= MAX_EVENT_BYTES, whole))
        if fitting:
            yield fitting
        if len(fitting) < len(whole) or len(rest) > MAX_EVENT_BYTES:
            raise UsageError(f"a line is longer than {MAX_EVENT_BYTES} bytes", "an event has 8 MiB at most")
    if rest:
        yield [rest]


def _fail(error: CommandError, stored: int, unknown: int) -> NoReturn:
    """Raise the error with what became of the events."""
    fate = f"{stored} events are stored; of the {unknown} after them it is not known"
    error.hint = f"{error.hint}; {fate}" if error.hint else fate
    raise error
