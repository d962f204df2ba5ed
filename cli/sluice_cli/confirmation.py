"""Whether a command that destroys data goes on: at a terminal the user says so, elsewhere nothing is waited for.

The question stands on stderr and says in numbers what will go, and where. It takes further requests, so it is put
together only where a user sees it. A pipe or a job has no user who could answer: there, as with --yes, the command goes
on at once. So a script never hangs, and one that was written before there was a question still works.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from sluice_cli.output import harmless
from sluice_cli.session import Session

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go on without a question; only a terminal gets one.")]

COUNTED_STREAMS = 50
"""Of how many streams of a scope the open transactions are counted: each takes a request."""


def is_terminal() -> bool:
    """Whether a user can see a question and reply to it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(session: Session, action: str, losses: Callable[[], Sequence[str]], *, yes: bool) -> None:
    """Return if the command goes on; `losses` are the lines that say what goes. Raises DeclinedError."""
    if yes or not is_terminal():
        return
    from sluice.security.hiding import shown

    lines = losses()
    sys.stderr.write(f"{action} at {shown(session.api)}. It cannot be undone. What goes:\n")
    sys.stderr.writelines(f"  {harmless(line)}\n" for line in lines)
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    try:
        reply = sys.stdin.readline()
    except KeyboardInterrupt:
        reply = ""
    if not reply.endswith("\n"):
        sys.stderr.write("\n")
    if reply.strip().lower() not in ("y", "yes"):
        from sluice_cli.errors import DeclinedError

        raise DeclinedError("nothing was done", "reply with y to go on; a script goes on with --yes")


def scope_losses(session: Session, scope: str) -> list[str]:
    """What a scope holds. Raises RefusedError, UnreachableError."""
    from sluice_cli.api import path_of

    found = session.rest.get(path_of("scopes", scope))
    streams = list(session.rest.pages(path_of("scopes", scope, "streams"), internal=True))
    named = [stream for stream in streams if not stream["name"].startswith("_")]
    internal = len(streams) - len(named)
    segments = sum(stream["segments"] for stream in streams)
    lines = [f"{counted(len(named), 'stream')} with all events, {counted(segments, 'segment')} open for writing"]
    if internal:
        lines.append(f"{counted(internal, 'internal stream')}, of watermarks and reader groups")
    lines.append(_transactions(session, scope, [stream["name"] for stream in named]))
    lines.append(f"{counted(found['readerGroups'], 'reader group')}, {counted(found['tables'], 'table')}")
    return lines


def _transactions(session: Session, scope: str, streams: list[str]) -> str:
    from sluice_cli.api import path_of

    known = streams[:COUNTED_STREAMS]
    count = sum(unended(session.rest.get(path_of("scopes", scope, "streams", stream))) for stream in known)
    if len(known) < len(streams):
        return f"{counted(count, 'open transaction')} of the first {len(known)} streams; the rest is not counted"
    return counted(count, "open transaction")


def stream_losses(session: Session, path: str) -> list[str]:
    """What a stream holds. Raises RefusedError, UnreachableError."""
    found = session.rest.get(path)
    # A sealed stream shows no segments of its own accord: those of its last epoch are what it ends with.
    segments = list(session.rest.pages(f"{path}/segments", epoch=found["epoch"]))
    lines = [f"all events: {counted(len(segments), 'segment')} in its last epoch, {found['epoch']}, and those before"]
    lines.append(counted(unended(found), "open transaction"))
    lines += [f"what reader group {one['name']} has not read yet" for one in found["subscribers"]]
    return lines


def truncation_losses(session: Session, path: str, cut: Mapping[str, int]) -> list[str]:
    """What lies before a cut. Raises RefusedError, UnreachableError."""
    from sluice_cli.units import show_size

    head: dict[str, int] = session.rest.get(path)["headCut"]
    size = sum(max(0, offset - max(0, head.get(segment, 0))) for segment, offset in cut.items())
    passed = sum(1 for segment, offset in head.items() if offset >= 0 and segment not in cut)
    if not passed:
        return [f"{show_size(size)} of events before the cut"]
    return [
        f"{show_size(size)} of events in the segments of the cut",
        f"all that {counted(passed, 'segment')} before it still hold",
    ]


def group_losses(session: Session, path: str) -> list[str]:
    """What a reader group is. Raises RefusedError, UnreachableError."""
    streams = session.rest.get(path)["config"]["streams"]
    return [f"how far it has read in {counted(len(streams), 'stream')}; the events stay"]


def table_losses(session: Session, path: str) -> list[str]:
    """What a table is. Raises RefusedError, UnreachableError."""
    found = session.rest.get(path)
    return [f"all entries in {counted(found['config']['partitionCount'], 'partition')}"]


def letter_losses(letter: Mapping[str, Any]) -> list[str]:
    """What a dead letter is."""
    from base64 import b64decode

    value = letter["value"]
    size = len(value.encode() if letter["encoding"] == "text" else b64decode(value))
    key = f" with the key {letter['key']}" if letter["key"] else ""
    return [
        f"a record of {size} bytes from {letter['topic']}{key}, which is never handled then",
        f"reason: {letter['reason']}",
    ]


def counted(count: int, noun: str) -> str:
    """`1 stream`, `2 streams`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def unended(stream: Mapping[str, Any]) -> int:
    """How many transactions of a stream have not ended."""
    return sum(int(stream["transactions"][kind]) for kind in ("open", "waiting", "aborting"))
