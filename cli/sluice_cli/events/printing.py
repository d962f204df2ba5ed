"""Printing the events of a stream: a line each for users, an object each for programs."""

import sys
from base64 import b64encode
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from sluice.domain.segment import parse_segment_name
from sluice_cli.events.failures import as_command_errors
from sluice_cli.events.reading import ReadEvent, Reading
from sluice_cli.events.selection import Selection
from sluice_cli.output import harmless
from sluice_cli.session import Session
from sluice_cli.units import segment_text
from sluice_client import Client


async def print_events(
    session: Session,
    opened: AbstractAsyncContextManager[Client],
    controller: str,
    selection: Selection,
    count: int | None,
    *,
    follow: bool,
) -> None:
    """Print what is selected, at most `count` events; followed, for ever. Raises CommandError."""
    printed = 0
    with as_command_errors(controller, f"{selection.scope}/{selection.stream}"):
        async with opened as client:
            reading = Reading(client, await selection.start(client), selection.wanted, follow=follow)
            async with aclosing(reading.events()) as events:
                async for found in events:
                    if session.json:
                        session.out.line(document(found))
                    else:
                        write_line(found.event.data)
                    printed += 1
                    if printed == count:
                        return


def document(found: ReadEvent) -> dict[str, Any]:
    """`text` if the event is UTF-8, else `base64`; `next` is the offset where the segment's next event begins."""
    segment = segment_text(parse_segment_name(found.segment)[2])
    return {
        "segment": segment,
        "offset": found.event.start,
        "next": found.event.end,
        **text_or_base64(found.event.data),
    }


def text_or_base64(data: bytes) -> dict[str, str]:
    """`text` if the bytes are UTF-8, else `base64`."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def write_line(data: bytes) -> None:
    """The bytes as they are, with a line's end; on a terminal without what would command it."""
    sys.stdout.buffer.write((as_line(data) if sys.stdout.isatty() else data) + b"\n")
    sys.stdout.buffer.flush()


def as_line(event: bytes) -> bytes:
    """The event as text of one line, without what would command a terminal."""
    return harmless(event.decode(errors="backslashreplace")).replace("\n", "\\n").encode()
