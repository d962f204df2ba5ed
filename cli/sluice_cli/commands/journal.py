"""`sluice journal`, and `sluice stream history`: what happened, as an api-gateway finds it in the journal."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import Begin, End, EventTypes, Stream
from sluice_cli.command import command, group
from sluice_cli.commands.stream import path
from sluice_cli.session import Session

app = group("The journal: what happened, the latest first.")
streams = typer.Typer()

_Most = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most so many events.")]
_LONGEST = 120


@command(app, "list")
def list_events(
    session: Session,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Only what happened to this: SCOPE, SCOPE/NAME, or an aggregate as stream:SCOPE/NAME or cluster.",
            show_default=False,
        ),
    ] = None,
    type: EventTypes = None,
    begin: Begin = None,
    end: End = None,
    limit: _Most = 100,
) -> None:
    """List the events of the journal; `void` says of one that did not count why not."""
    from sluice_cli.api import path_of

    _show(session, path_of("journal"), limit, {"key": key, **_parameters(type, begin, end)})


@command(streams, "history")
def history(
    session: Session, stream: Stream, type: EventTypes = None, begin: Begin = None, end: End = None, limit: _Most = 100
) -> None:
    """List what happened to a stream, its transactions and commits, the latest first; also after its end."""
    _show(session, path(stream, "history"), limit, _parameters(type, begin, end))


def _parameters(types: list[str] | None, begin: str | None, end: str | None) -> dict[str, object]:
    from sluice_cli.units import listed

    return {"types": ",".join(listed(types or [])) or None, "from": begin, "to": end}


def _show(session: Session, path: str, limit: int, parameters: dict[str, object]) -> None:
    session.items(
        session.rest.pages(path, limit, **parameters),
        ("at", "what", "event", "void", "where", "principal", "by", "request"),
        _row,
        empty="nothing of that happened",
    )


def _row(event: dict[str, Any]) -> tuple[object, ...]:
    from sluice.lookback.times import show_time

    where = f"{event['partition']}@{event['offset']}"
    what, by = event["aggregate"], event["by"].rpartition("/")[2]
    return (
        show_time(event["at"]),
        what if len(what) <= _LONGEST else f"{what[: _LONGEST - 1]}…",
        event["type"],
        event.get("why"),
        where,
        event.get("principal"),
        by,
        event.get("request"),
    )
