"""`sluice overview`, `sluice about`, `sluice follow`, `sluice partition`: how the system is, and what happens in it."""

from typing import Annotated

import typer

from sluice_cli.command import command, group
from sluice_cli.session import Session

partitions = group("Partitions of requests: who owns each, and what waits there.")


def overview(
    session: Session,
    hour: Annotated[bool, typer.Option("--hour", help="What happened in each minute of the last hour.")] = False,
) -> None:
    """Say whether anything is wrong, in one sentence and in numbers."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering_overview import draw_hour, draw_overview

    if hour:
        session.show(session.rest.get(path_of("overview", "hour")), draw_hour)
        return
    session.show(session.rest.get(path_of("overview")), draw_overview)


def about(session: Session) -> None:
    """Say which gateway answers, what its page may do, and who you are to it."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering_overview import draw_about

    found = {**session.rest.get(path_of("about")), "me": session.rest.get(path_of("me"))}
    session.show(found, draw_about)


def follow(
    session: Session,
    of: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="What to follow: stream:demo/orders, group:demo/rg, table:demo/kv, scope:demo or cluster; demo/orders "
            "is a stream, demo a scope. Left out: everything.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="POSITION", help="Go on behind the position of an event.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="End after so many changes.")] = None,
) -> None:
    """Follow what changes, as it changes; it begins with the next change, or behind --since.

    JSON: one event per line.
    """
    from sluice_cli.commands.workflow import aggregate_of
    from sluice_cli.following import changes
    from sluice_cli.rendering_overview import lines_of_event

    names = ["cluster" if name == "cluster" else aggregate_of(name) for name in of or ()]
    try:
        for event in changes(session.rest, ",".join(names) or "*", since, count):
            if session.json:
                session.out.line(event)
            else:
                for line in lines_of_event(event):
                    session.out.text(line)
    except KeyboardInterrupt:
        return


@command(partitions, "list")
def list_partitions(session: Session) -> None:
    """List the partitions of requests with their owners and what is not acknowledged."""
    from sluice_cli.api import path_of
    from sluice_cli.units import show_age

    found = session.rest.get(path_of("partitions"))
    session.items(
        found["items"],
        ("topic", ">partition", "owner", ">lag", ">oldest", ">end"),
        lambda p: (
            p["topic"],
            p["partition"],
            p.get("owner"),
            p["lag"],
            show_age(0, p["oldestOpenMs"]) if "oldestOpenMs" in p else None,
            p["end"],
        ),
        empty="there are no partitions",
    )
