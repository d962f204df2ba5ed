"""`sluice stream write`, `read` and `events`: the events of a stream."""

import sys
from typing import Annotated, Any

import typer

from sluice_cli.arguments import Controller, Stream
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Events of streams.")


@command(app, "write")
def write(
    session: Session,
    stream: Stream,
    event: Annotated[
        list[str] | None, typer.Argument(metavar="[EVENT]...", help="Else each line of stdin.", show_default=False)
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The routing key of all; else they are spread.")
    ] = None,
    controller: Controller = None,
) -> None:
    """Write events to a stream: those that are given, or each line of stdin."""
    from sluice_cli import session as opening
    from sluice_cli.events import writing
    from sluice_cli.units import scoped

    target, address = scoped(stream), session.controller(controller)
    given = [[one.encode(errors="surrogateescape") for one in event]] if event else writing.lines(sys.stdin.buffer)
    count = writing.write(opening.open_client(address), address, target, given, key)
    session.said(f"{count} events written to {stream}", {"stream": stream, "events": count})


@command(app, "read")
def read(
    session: Session,
    stream: Stream,
    begin: Annotated[
        str, typer.Option("--from", metavar="head|tail|CUT", help="Where to begin; CUT as in `truncate`: 0=1024,1=0.")
    ] = "head",
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Only the segments that events of this key go to.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="End after so many.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes.")] = False,
    controller: Controller = None,
) -> None:
    """Print the events of a stream, each on a line; those of one routing key come in their order.

    Without --follow it ends with what is there now. JSON: one object per line.
    """
    import asyncio

    from sluice_cli import session as opening
    from sluice_cli.events.printing import print_events
    from sluice_cli.events.selection import Selection

    selection, address = Selection(session, stream, begin, key), session.controller(controller)
    opened = opening.open_client(address)
    try:
        asyncio.run(print_events(session, opened, address, selection, count, follow=follow))
    except KeyboardInterrupt:
        return


@command(app, "events")
def events(
    session: Session,
    stream: Stream,
    segment: Annotated[
        str | None,
        typer.Option("--segment", metavar="SEGMENT", help="Only this segment, of any epoch.", show_default=False),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Only the segment that events of this key go to.")
    ] = None,
    begin: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="CUT", help="From this cut on, as in `truncate`: 0=1024,1=0.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, metavar="N", help="How many events.")] = 20,
) -> None:
    """Show the last events of a stream, by segment, with offsets and sizes: their beginnings, 16 KiB at most.

    `stream read` prints whole events, all of them.
    """
    from sluice_cli.api import path_of
    from sluice_cli.rendering_events import draw_events
    from sluice_cli.units import cut_of, scoped, segment_of

    query: dict[str, Any] = {"limit": limit}
    if segment is not None:
        query["segment"] = segment_of(segment)
    if key is not None:
        query["key"] = key
    if begin:
        query["from"] = ",".join(f"{id}={offset}" for id, offset in cut_of(begin).items())
    scope, name = scoped(stream)
    session.show(session.rest.get(path_of("scopes", scope, "streams", name, "events"), **query), draw_events)
