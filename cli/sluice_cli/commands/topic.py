"""`sluice topic`: the topics, and what passes through them."""

from typing import Annotated

import typer

from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Topics: what passes through Kafka, decoded.")


@command(app, "list")
def list_topics(session: Session) -> None:
    """List the topics with what they hold."""
    from sluice_cli.records.tailing import topic_documents

    session.items(
        topic_documents(session.records.topics()),
        ("topic", ">partitions", ">records", "key", "holds"),
        lambda t: (t["topic"], t["partitions"], t["records"], t.get("key"), t.get("holds")),
        empty="there is no topic",
    )


@command(app, "sizes")
def sizes(session: Session) -> None:
    """Show what grows: records, bytes (estimated from a few records), and the oldest record of each topic."""
    from sluice_cli.records.sizes import topic_sizes
    from sluice_cli.units import show_age, show_size

    def offsets(partitions: list[dict[str, int]]) -> str:
        """Of all partitions together; JSON has each."""
        return f"{min(p['begin'] for p in partitions)}..{max(p['end'] for p in partitions)}"

    session.items(
        topic_sizes(session.records),
        ("topic", ">records", ">bytes", ">oldest", ">offsets", "bound"),
        lambda t: (
            t["topic"],
            t["records"],
            show_size(t["bytes"]),
            show_age(t["oldest"], session.now_ms) if t["oldest"] is not None else None,
            offsets(t["partitions"]),
            t["bound"],
        ),
        empty="there is no topic",
    )


@command(app, "tail")
def tail(
    session: Session,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Its name; `sluice.` may be left out: journal.", show_default=False)
    ],
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="start|end|TIME", help="Where to begin; TIME as in --at of `stream show`."),
    ] = None,
    stream: Annotated[
        str | None, typer.Option("--stream", metavar="SCOPE/STREAM", help="Only what is about that name.")
    ] = None,
    request: Annotated[
        str | None, typer.Option("--request", metavar="ID", help="Only what belongs to that request.")
    ] = None,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="NAME", help="Only that type of command or event; repeated, or with commas."),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="End after so many.")] = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Go on with what comes.")] = True,
) -> None:
    """Follow a topic, decoded; it begins at the end, with --no-follow at the start.

    Whatever cannot be decoded is shown as it is, with the reason. JSON: one object per line.
    """
    from sluice.lookback.filters import record_types
    from sluice.lookback.wording import document
    from sluice_cli.records.tailing import Filter, full_name, line_of, tailed

    wanted = Filter(stream=stream, request=request, types=record_types(type or ()))
    name = full_name(topic, session.records)
    start = begin or ("end" if follow else "start")
    try:
        for found in tailed(session.records, name, start, session.now_ms, wanted, count, follow=follow):
            if session.json:
                session.out.line(document(found))
            else:
                session.out.text(line_of(found))
    except KeyboardInterrupt:
        return
